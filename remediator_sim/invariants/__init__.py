"""A checker beside the running system: it sees every write, and counts how often each promise was put to the test."""

from remediator_sim.invariants.observer import Observer
from remediator_sim.invariants.results import Checked
from remediator_sim.invariants.table import SIMULATED
from remediator_sim.invariants.tickets import SeenIssue
from remediator_sim.invariants.tracker import issues

__all__ = ["SIMULATED", "Checked", "Observer", "SeenIssue", "issues"]
