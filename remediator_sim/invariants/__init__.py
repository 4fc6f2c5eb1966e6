"""A checker beside the running system: it sees every write, and says which of the ten promises were put to the test."""

from remediator_sim.invariants.observer import Observer
from remediator_sim.invariants.outside import SeenIssue
from remediator_sim.invariants.results import Checked
from remediator_sim.invariants.tracker import issues

__all__ = ["Checked", "Observer", "SeenIssue", "issues"]
