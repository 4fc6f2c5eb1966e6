"""I2: a disruptive Pod runs once per attempt, a node reboots once per intent. I10: attempts come to an end."""

from collections.abc import Iterator

from remediator_sim.invariants import contract, pod_words
from remediator_sim.invariants.contract import OPERATIONS, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History, begun, followed
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Start

# --- I2 --------------------------------------------------------------------------------------------------------------


def one_pod(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each new disruptive one: the first of its operation, made after the intent."""
    if event.old is not None or pod_words.template(event.obj) in ("", contract.LOOKS, contract.DRAINS):
        return
    uid = part(event.obj, "metadata", "labels").get(contract.OPERATION_UID, "")
    operation = history.tracked.get(uid)
    sentence = f"Pod {event.key} of operation {operation.name if operation else uid} was made at {clock(event.at)}"
    earlier = [tracked.name for tracked in history.pods_of[uid] if tracked.first is not event.obj]
    intent = part(operation.last, "status").get("intent") if operation else None
    if operation is None:
        yield f"{sentence} for an operation that does not exist"
    elif earlier:
        yield f"{sentence} though {earlier[0]} had been made before"
    elif not intent:
        yield f"{sentence} before the intent was written"
    elif pod_words.environment(event.obj).get("EXPECTED_BOOT_ID", "") != intent.get("bootID", ""):
        yield f"{sentence} for another boot than the intent names"
    else:
        yield HELD


def of_the_attempt(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Tells of each new one that disturbs, and whose operation is not what its case tries now."""
    if event.old is not None or pod_words.template(event.obj) in ("", contract.LOOKS):
        return
    labels = part(event.obj, "metadata", "labels")
    operation = history.tracked.get(labels.get(contract.OPERATION_UID, ""))
    case = history.tracked.get(labels.get(contract.CASE_UID, ""))
    if case and case.emptied and history.at - case.emptied <= history.limits.grace:
        return  # somebody has just emptied its status
    newest = (contract.attempts(case.last) if case else [])[-1:]
    if operation and [attempt["operation"] for attempt in newest if not attempt.get("outcome")] != [operation.name]:
        made = f"Pod {event.key} of operation {operation.name} was made at {clock(event.at)}"
        yield f"{made}, which is not what case {case.name if case else ''} tries"


def one_operation(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each new one: the only one of its case with its number."""
    if event.old is not None or not event.obj["spec"].get("caseUID"):  # a user asks, and a case carries it out
        return
    case, number = event.obj["spec"].get("caseUID", ""), event.obj["spec"].get("attempt", 1)
    same = [
        tracked.name
        for tracked in history.operations_of[case]
        if tracked.first is not event.obj and tracked.first["spec"].get("attempt", 1) == number
    ]
    sentence = f"operation {event.key} was made at {clock(event.at)} as attempt {number} of case {case}"
    yield f"{sentence}, and so was {same[0]} before" if same else HELD


def one_intent(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each write after its intent: the intent stays as it was."""
    before, after = (part(obj, "status").get("intent") for obj in (event.old, event.new))
    if before and part(event.new, "status"):  # an empty status is never written by us
        yield HELD if before == after else f"the intent of operation {event.key} was changed at {clock(event.at)}"


def present_boot(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Tells of each new intent that names no boot that its node has lately shown."""
    before, after = (part(obj, "status").get("intent") for obj in (event.old, event.new))
    node = event.obj["spec"].get("nodeName", "")
    shown = {part(state, "status", "nodeInfo").get("bootID", "") for state in history.lately(node)}
    if after and not before and shown and after.get("bootID", "") not in shown:
        named = after.get("bootID") or "no boot"
        yield f"the intent of {event.key} names {named} at {clock(event.at)}, and {node} shows {', '.join(shown)}"


def one_reboot(history: History, event: Event) -> Iterator[str]:
    """A machine was asked to reboot. Counts each time: one per attempt, in the boot of the intent.

    In one boot another attempt may ask only once the one before is over: two wishes in one boot are one reboot.
    """
    record, before = event.obj, history.reboots[:-1]
    attempt, boot = record["attemptID"], record["bootID"]
    operation = history.objects[OPERATIONS].get(attempt)
    intended = part(operation, "status", "intent").get("bootID")
    sentence = f"{record['node']} was asked to reboot by attempt {attempt} at {record.get('time', '')[11:19]}"
    if any(other["attemptID"] == attempt for other in before):
        yield f"{sentence}, which had asked before"
    elif any(reboots(history, other) for other in before if (other["node"], other["bootID"]) == (record["node"], boot)):
        yield f"{sentence} in a boot in which another attempt had asked"
    elif operation is None or boot != intended:
        yield f"{sentence} in boot {boot}, and the intent names {intended or 'none'}"
    else:
        yield HELD


def reboots(history: History, record: Obj) -> bool:
    """Whether the attempt that has asked for a reboot goes on."""
    operations = [tracked for tracked in history.tracked.values() if tracked.kind == OPERATIONS]
    return not any(tracked.name == record["attemptID"] and contract.finished(tracked.last) for tracked in operations)


# --- I10 -------------------------------------------------------------------------------------------------------------


def finite(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt: within its rung, the policy's maximum, and before the hand-over."""
    policy = history.policy(event.obj)
    for attempt in begun(event) if policy and not history.lately_edited(contract.name(policy)) else ():
        yield _allowed(history, event, policy or {}, attempt)
    for attempt in followed(event):
        yield _completes(event, attempt)


def _completes(event: Event, attempt: Obj) -> str:
    """What calls itself a follow-up must follow a try that worked: else it would be a try that nobody counts."""
    tried = {one["operation"]: one.get("outcome") for one in contract.attempts(event.new) if not one.get("follows")}
    sentence = f"case {event.key} began {attempt['operation']} at {clock(event.at)} to follow {attempt['follows']}"
    return HELD if tried.get(attempt["follows"]) == "Succeeded" else f"{sentence}, which had not worked"


def _allowed(history: History, event: Event, policy: Obj, attempt: Obj) -> str:
    spec, case, node = policy["spec"], event.obj, event.obj["spec"]["nodeName"]
    sentence = f"case {event.key} began {attempt['operation']} on {node} at {clock(event.at)}"
    if contract.phase(event.old) == "Escalated" or contract.ended(event.old):
        return f"{sentence} after it was {contract.phase(event.old)}"
    ladder, rungs = spec.get("ladder") or [], _rungs(history, case)
    rung = attempt["rung"]
    if rung > len(ladder) or rungs.count(rung) > ladder[rung - 1].get("attempts", 1):
        return f"{sentence} though rung {rung} of policy {contract.name(policy)} was used up"
    if rungs != sorted(rungs):
        return f"{sentence} on rung {rung}, below one that it had tried"
    limit = spec.get("attempts") or {}
    recent = [
        start
        for start in history.starts_within(contract.duration(limit.get("window", "168h")))
        if (start.node, start.policy) == (node, contract.name(policy))
        and _tried(history, start)
        and not _idle(history, start)
    ]
    if len(recent) > limit.get("max", 4):
        return f"{sentence} as number {len(recent)} of its node, where {limit.get('max', 4)} are allowed"
    return HELD


def _tried(history: History, start: Start) -> bool:
    """Whether what was begun counts: its case is still there, and it was not cancelled before it had a Pod."""
    tracked = history.tracked[start.case]
    begun_then = [attempt for attempt in contract.attempts(tracked.last) if attempt["operation"] == start.operation]
    return tracked.gone is None and not any(_came_to_nothing(history, tracked.last, attempt) for attempt in begun_then)


def _rungs(history: History, case: Obj) -> list[int]:
    again = part(case, "status").get("retriedAfter", 0)  # what a user lets try again has all tries of its rung anew
    tried = (attempt for attempt in contract.attempts(case)[again:] if contract.is_try(attempt))
    return [attempt["rung"] for attempt in tried if not _came_to_nothing(history, case, attempt)]


def _came_to_nothing(history: History, case: Obj, attempt: Obj) -> bool:
    """Whether an attempt was cancelled before its Pod had started: that is no try of its rung, drained or not."""
    operations = history.operations_of[contract.uid(case)]
    same = (tracked.last for tracked in operations if tracked.name == attempt["operation"])
    return attempt.get("outcome") == "Cancelled" and all(map(history.not_started, same))


def _idle(history: History, start: Start) -> bool:
    """Whether a start came to nothing."""
    case = history.tracked[start.case].last
    same = (attempt for attempt in contract.attempts(case) if attempt["operation"] == start.operation)
    return any(_came_to_nothing(history, case, attempt) for attempt in same)


def handed_over(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that a person is called for: its attempts have ended, and its node stays out."""
    if contract.phase(event.new) in ("Draining", "Operating", "Verifying") and contract.phase(event.old) == "Escalated":
        asked, answered = part(event.new, "spec").get("retry", 0), part(event.old, "status").get("retries", 0)
        yield (
            HELD if asked > answered else f"case {event.key} went on at {clock(event.at)}, and no user had asked for it"
        )
    if contract.phase(event.new) != "Escalated":
        return
    if contract.phase(event.old) == "Escalated":
        yield from _told_again(event)
        return
    running = [attempt["operation"] for attempt in contract.attempts(event.new) if not attempt.get("outcome")]
    held = contract.held_by(history.nodes.get(event.obj["spec"]["nodeName"])) == contract.uid(event.obj)
    sentence = f"case {event.key} was handed to a person at {clock(event.at)}"
    yield f"{sentence} while {running[0]} ran" if running else HELD if held else f"{sentence} without holding its node"


def _tells_until(event: Event, newest: list[Obj]) -> bool:
    """Whether a case whose user keeps the node says that this time is over, or that they want it for longer."""
    until = contract.kept_until(event.new)
    over = bool(until) and contract.moment(until) <= event.at
    return bool(until and newest) and newest[0].get("reason") == contract.TAKEN_OUT[over]


def _told_again(event: Event) -> Iterator[str]:
    """What a case that waits for a person adds to its story though it goes on waiting."""
    before, after = (list(part(obj, "status").get("timeline") or ()) for obj in (event.old, event.new))
    probes = any(attempt.get("probe") for attempt in contract.attempts(event.new)[-1:])
    health = after[-1:] and after[-1].get("reason") == "HealthyAgain"
    first, last = (part(obj, "status").get("retries", 0) for obj in (event.old, event.new))
    answers = first < last <= part(event.new, "spec").get("retry", 0)  # to a user: nothing is left to try
    why_not = probes or health or answers or _tells_until(event, after[-1:])
    if after[-1:] != before[-1:] and not contract.ended(event.new) and not why_not:
        yield f"case {event.key}, which waits for a person, goes on with {after[-1].get('reason')} at {clock(event.at)}"
