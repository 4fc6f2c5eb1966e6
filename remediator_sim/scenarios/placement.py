"""Where a Pod is placed, and where it would be without Remediator: nobody would keep it off a sick node."""

from typing import NamedTuple

from remediator_sim.plain import Object, condition_status

FAULTS = ("GpuLost", "GpuEccFault", "NfsStale", "NfsUnavailable", "UnkillableProcess")


class Placement(NamedTuple):
    """One Pod. `without` is the node that the scheduler alone would take, "" where it finds none; `fault` is the
    Condition that shows that node to be unhealthy, "" where it is healthy or taken all the same: so many nodes are
    unhealthy that their health only scores.
    """

    pod: str
    node: str
    without: str
    fault: str

    @property
    def text(self) -> str:
        """The comparison in a sentence."""
        return f"on {self.node}; without Remediator it would be on {self.without}, where {self.fault} is True"


def fault(node: Object) -> str:
    """The Condition of a fault of the demo that is True on this node, "" for none."""
    return next((name for name in FAULTS if condition_status(node, name) == "True"), "")
