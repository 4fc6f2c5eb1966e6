"""How a node stands, as one letter of the page: the first row of the table that is true. Pure."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from remediator.core import keep_out
from remediator.core.actors import Actor
from remediator.core.case import Case
from remediator.core.node import Node, Status, Taint
from remediator.core.open_cases import wait_of


class NodeStanding(Enum):
    """A letter, and what it stands for. The most urgent first."""

    PERSON = "P", "needs a person"
    REPAIR = "R", "in repair"
    WAITS = "W", "waits for repair"
    TAKEN_OUT = "T", "taken out by a user"
    NOT_READY = "N", "not Ready, no case"
    UNKNOWN = "U", "unknown whether Ready"
    GATED = "G", "new, at a gate"
    CORDONED = "C", "cordoned, no case"
    TAINTED = "K", "kept free by a taint, no case"
    EXCLUDED = "X", "excluded from repairs"
    IN_SERVICE = "S", "in service"

    @property
    def letter(self) -> str:
        """What a cell shows."""
        return self.value[0]

    @property
    def word(self) -> str:
        """What it means."""
        return self.value[1]


def state_of(node: Node, open_cases: Iterable[Case]) -> NodeStanding:
    """Where a node has several cases, the most urgent one counts."""
    return min((case_state(case) for case in open_cases), key=RANKS.__getitem__, default=None) or _without_case(node)


def case_state(case: Case) -> NodeStanding:
    """What an open case makes of its node: the words of `remediator status`, as one letter."""
    if keep_out.is_out(case):
        return NodeStanding.TAKEN_OUT
    if wait_of(case)[0].actor is not Actor.NOBODY:
        return NodeStanding.PERSON
    return NodeStanding.REPAIR if case.claimed else NodeStanding.WAITS


def _keeps_free(taint: Taint, node: Node) -> bool:
    """Whether a taint keeps Pods off that the node is for.

    Not so one that a node has by design: of its GPUs, with the name of their resource as key, or of its pool, which a
    label with the same key and value names.
    """
    by_design = taint.key.endswith("/gpu") or node.labels.get(taint.key) == taint.value
    return taint.effect in _REPELLING and not by_design


_REPELLING = frozenset({"NoSchedule", "NoExecute"})
RANKS: Mapping[NodeStanding, int] = {state: rank for rank, state in enumerate(NodeStanding)}
_TABLE: tuple[tuple[NodeStanding, Callable[[Node], object]], ...] = (
    (NodeStanding.NOT_READY, lambda node: node.ready is Status.FALSE),
    (NodeStanding.UNKNOWN, lambda node: node.ready is Status.UNKNOWN),
    (NodeStanding.GATED, lambda node: node.gates),
    (NodeStanding.CORDONED, lambda node: node.unschedulable),
    (NodeStanding.TAINTED, lambda node: any(_keeps_free(taint, node) for taint in node.taints)),
    (NodeStanding.EXCLUDED, lambda node: node.opted_out),
)


def _without_case(node: Node) -> NodeStanding:
    return next((state for state, holds in _TABLE if holds(node)), NodeStanding.IN_SERVICE)
