"""A judge beside the running system: it sees every write, and says which of the ten promises were put to the test."""

from remediator.sim.invariants.observer import Observer
from remediator.sim.invariants.outside import SeenIssue
from remediator.sim.invariants.tally import Checked
from remediator.sim.invariants.tracker import issues

__all__ = ["Checked", "Observer", "SeenIssue", "issues"]
