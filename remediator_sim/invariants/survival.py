"""I7: a killed controller loses nothing. What stood at the kill stays, is never set back, and moves on."""

from collections.abc import Callable, Iterator

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import CASES, OPERATIONS, TICKETS, Obj, clock, part
from remediator_sim.invariants.event import FINAL, Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked

TIMELINE, MOST_AT_ONCE = 50, 3  # entries that a case keeps, and that one write adds


def stays(history: History, event: Event) -> Iterator[str]:
    """A case, operation or ticket was written. Counts each write of one that stood at a kill."""
    survivor = history.survivors.get(contract.uid(event.obj))
    if survivor is None or event.old is None:
        return
    sentence = f"{_WORDS[event.kind]} {event.key}, there at the kill at {clock(survivor[0])},"
    if event.new is None:
        asked = contract.deleted(event.old) or _done(event.kind, event.old)
        asked = asked or (event.kind == OPERATIONS and _of_user(event.old))  # nothing keeps what a user has made
        yield HELD if asked else f"{sentence} disappeared at {clock(event.at)} before it was over"
    elif part(event.new, "status"):  # an empty one is never written by us
        lost = [word for word, holds in _KEEPS[event.kind] if not holds(event.old, event.new)]
        yield f"{sentence} lost {', '.join(lost)} at {clock(event.at)}" if lost else HELD


def moves_on(history: History, event: Event) -> Iterator[str]:
    """Time passed, or the end. Counts each claimed case, and each operation, that was unfinished at a kill."""
    for killed, tracked, then in history.survivors.values():
        due = killed + history.limits.bound
        if _unfinished(tracked.kind, then) and (history.passed(due) or (event.kind == FINAL and due > history.ticked)):
            moved = tracked.gone or _done(tracked.kind, tracked.last) or tracked.last is not then
            sentence = f"{_WORDS[tracked.kind]} {tracked.name} has not moved since the kill at {clock(killed)}"
            yield HELD if moved or _stopped(history, tracked) else sentence


def _done(kind: str, obj: Obj) -> bool:
    """Whether nothing more is to come of it."""
    return {CASES: contract.ended, OPERATIONS: contract.finished, TICKETS: _is_told}[kind](obj)


def _is_told(ticket: Obj) -> bool:
    """Whether no open issue hangs on the ticket."""
    return contract.phase(ticket) != "Open"


def _unfinished(kind: str, obj: Obj) -> bool:
    if kind == CASES:
        begun = part(obj, "status").get("startedAt")
        return bool(begun) and not contract.ended(obj) and contract.phase(obj) != "Escalated"
    return kind == OPERATIONS and not contract.finished(obj) and not _of_user(obj)


def _of_user(operation: Obj) -> bool:
    """Whether a user has made it: it moves when its case does."""
    return not operation["spec"].get("caseUID")


def _stopped(history: History, tracked: Tracked) -> bool:
    """Whether everybody can see why it stands still."""
    case = tracked if tracked.kind == CASES else history.tracked.get(tracked.last["spec"].get("caseUID", ""))
    return case is not None and bool(contract.gated(case.last, history.at) or history.stopped(case.last))


# --- what no write may take back -----------------------------------------------------------------------------------

Holds = Callable[[Obj, Obj], bool]


def _keeps(*path: str) -> Holds:
    """What once stood in the status stands there unchanged."""

    def holds(old: Obj, new: Obj) -> bool:
        before = part(old, "status", *path)
        return not before or part(new, "status", *path) == before

    return holds


def _keeps_issue(old: Obj, new: Obj) -> bool:
    """An issue that was closed may be followed by another; a user may delete one, or give it another address."""
    before, after = (part(ticket, "status", "issue") for ticket in (old, new))
    moved = after and before.get("repository") != after.get("repository")
    deleted = not after and part(new, "status").get("closedBy") == "User"
    return bool(_is_told(old) or moved or deleted or before.get("number") == after.get("number"))


def _keeps_attempts(old: Obj, new: Obj) -> bool:
    before, after = contract.attempts(old), contract.attempts(new)
    pairs = zip(before, after, strict=False)
    same = all(
        one["operation"] == other["operation"] and one.get("outcome", "") in ("", other.get("outcome", ""))
        for one, other in pairs
    )
    return same and len(after) >= len(before)


def _keeps_timeline(old: Obj, new: Obj) -> bool:
    before, after = (list(part(obj, "status", "timeline") or ()) for obj in (old, new))
    if len(after) < TIMELINE:
        return after[: len(before)] == before
    return any(after[: len(before) - cut] == before[cut:] for cut in range(MOST_AT_ONCE + 1))


_BEGUN = ("Draining", "Operating", "Verifying", "Recovered", "Escalated", "Cancelled")


def _keeps_phase(old: Obj, new: Obj) -> bool:
    return contract.phase(old) not in _BEGUN or contract.phase(new) in _BEGUN


_KEEPS: dict[str, tuple[tuple[str, Holds], ...]] = {
    CASES: (
        ("its phase", _keeps_phase),
        ("attempts", _keeps_attempts),
        ("its timeline", _keeps_timeline),
        ("the time of its claim", _keeps("startedAt")),
        ("its end", _keeps("endedAt")),
        ("its evidence", _keeps("evidence")),
    ),
    OPERATIONS: (("its intent", _keeps("intent")), ("its end", _keeps("finishedAt"))),
    TICKETS: (("its issue", _keeps_issue),),
}
_WORDS = {CASES: "case", OPERATIONS: "operation", TICKETS: "ticket"}
