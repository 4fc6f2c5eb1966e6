"""One thing that happened, as every check is told of it."""

from dataclasses import dataclass
from datetime import datetime

from remediator_sim.invariants.contract import Obj, name

# Beside the kinds of objects: the passing of time, the end, a kill of the controller, a person's mark on a node, a line
# in a machine's journal, the issues as they are now, an answer of the extender, whether anybody could act, an object
# that cannot be read, harm that is done by more than its own object, the alerts that were taken and fire, and a second
# source that says yes, a kubelet that reports no status and renews its Lease, and a write that only a leader may send.
TICK, FINAL, KILLED, PERSON = "tick", "final", "killed", "person"
REBOOT, ISSUES, PROBE = "reboot", "issues", "probe"
ABSENT, BAD, HARM, ALERTS = "absent", "bad", "harm", "alerts"
CONFIRMED, RENEWED, LED = "confirmed", "renewed", "led"


@dataclass(frozen=True, slots=True)
class Event:
    """A write (`kind` is a kind of objects; `old` is None for a new object, `new` for one that is gone), or another
    happening, told in `new`. `at` is the server's clock.
    """

    kind: str
    at: datetime
    old: Obj | None = None
    new: Obj | None = None

    @property
    def obj(self) -> Obj:
        """What it is about."""
        return self.new or self.old or {}

    @property
    def key(self) -> str:
        """The object's name, with its namespace where it has one."""
        space = self.obj["metadata"].get("namespace")
        return f"{space}/{name(self.obj)}" if space else name(self.obj)
