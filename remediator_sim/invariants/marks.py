"""I6: what a person set on a node survives every write of it."""

from collections.abc import Iterator

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Mark


def survive(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts, where more than its status changed, each mark of a person that it had before."""
    mark = history.marks.get(event.key)
    if mark is None or event.new is None or event.old is None or not _touched(event.old, event.new):
        return
    had, has = _present(mark, event.old), _present(mark, event.new)
    for what in had:
        yield HELD if what in has else f"{event.key} lost {what}, which a person had set, at {clock(event.at)}"


def end(history: History, event: Event) -> Iterator[str]:
    """The end. Counts each mark of a person on a node that is still there."""
    for name, mark in history.marks.items():
        node = history.nodes.get(name)
        if node is not None:
            has = _present(mark, node)
            for what in _wanted(mark):
                yield HELD if what in has else f"{name} has lost {what}, which a person had set"


def _touched(old: Obj, new: Obj) -> bool:
    """Whether a write changed more than the node's status."""
    return old.get("spec") != new.get("spec") or any(
        part(old, "metadata", word) != part(new, "metadata", word) for word in ("labels", "annotations")
    )


def _wanted(mark: Mark) -> list[str]:
    """Each thing of a mark, in words."""
    return [
        *(f"the label {key}={value}" for key, value in mark.labels.items()),
        *(f"the annotation {key}={value}" for key, value in mark.annotations.items()),
        *(_taint(taint) for taint in mark.taints),
        *(["its cordon"] if mark.cordon else []),
    ]


def _present(mark: Mark, node: Obj) -> list[str]:
    """Those things of a mark that the node has."""
    labels, notes = (part(node, "metadata", word) for word in ("labels", "annotations"))
    has = Mark(
        {key: value for key, value in mark.labels.items() if labels.get(key) == value},
        {key: value for key, value in mark.annotations.items() if notes.get(key) == value},
        [taint for taint in mark.taints if _taint(taint) in map(_taint, contract.taints(node))],
        mark.cordon and bool(part(node, "spec").get("unschedulable")),
    )
    return _wanted(has)


def _taint(taint: Obj) -> str:
    return f"the taint {taint['key']}={taint.get('value', '')}:{taint['effect']}"
