"""What disturbs a node: each as the uid of the case that does it, and a sentence for those who judge it."""

from collections.abc import Iterator

from remediator_sim.invariants import contract, pod_words
from remediator_sim.invariants.contract import part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import begun

Disturbance = tuple[str, str]


def claims(event: Event) -> Iterator[Disturbance]:
    """A node was written: our case taint appeared on it."""
    case = contract.held_by(event.new)
    if case and case != contract.held_by(event.old):
        yield case, f"{event.key} was taken"


def starts(event: Event) -> Iterator[Disturbance]:
    """A case was written: the attempts that are new."""
    for attempt in begun(event):
        yield contract.uid(event.obj), f"{attempt['operation']} was begun"


def intents(event: Event) -> Iterator[Disturbance]:
    """An operation was written: its intent is new, the point of no return."""
    if part(event.new, "status").get("intent") and not part(event.old, "status").get("intent"):
        yield event.obj["spec"].get("caseUID", ""), f"the intent of {event.key} was written"


def pods(event: Event) -> Iterator[Disturbance]:
    """A Pod was written: a new one of ours that disturbs a node, a drain or an operation."""
    if event.old is None and pod_words.template(event.obj) not in ("", contract.LOOKS):
        yield part(event.obj, "metadata", "labels").get(contract.CASE_UID, ""), f"Pod {event.key} was made"
