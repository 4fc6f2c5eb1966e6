"""I12: cases that wait for the same budgets get them in their order: the most severe first, then the oldest."""

from collections.abc import Iterator
from datetime import datetime

from remediator_sim.invariants import causes, clauses, contract, ledger
from remediator_sim.invariants.contract import BUDGETS, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked

SEVERITIES = ("Critical", "Warning", "Info")
# What a policy may ask about a start besides: a case that waits for an answer lets others pass.
ASKS = ("confirm", "maxBlastRadius", "requireSpareGPUs")


def fair(history: History, event: Event) -> Iterator[str]:
    """A budget was written. Counts each entry that is new while cases wait for nothing but budgets over its node: none
    of them goes before it.
    """
    before, after = ledger.claims(event.old), ledger.claims(event.new)
    if any(contract.PLACE in part(node, "metadata", "labels") for node in history.nodes.values()):
        return  # few nodes take our Pods, and who waits for one of these lets others pass
    entered = {history.tracked[uid].name for uid in after if uid in history.tracked}  # one write may enter several
    for uid, node in after.items():
        tracked = history.tracked.get(uid)
        if uid in before or tracked is None or _place(history, tracked) is None or _was_down(history, node):
            continue
        waiting = [other for other in _waiting(history, node) if other.name not in entered]
        waiting = [other for other in waiting if not _node_taken(history, other, before, after)]
        passed = [other.name for other in waiting if _goes_first(history, other, tracked)]
        sentence = f"case {tracked.name} was entered in budget {event.key} at {clock(event.at)} before"
        if waiting:
            yield f"{sentence} {passed[0]}, which goes first" if passed else HELD


def _goes_first(history: History, case: Tracked, other: Tracked) -> bool:
    first, second = _place(history, case), _place(history, other)
    return first is not None and second is not None and first < second


def _node_taken(history: History, case: Tracked, before: dict[str, str], after: dict[str, str]) -> bool:
    """Whether another case has the node of a case that waits: it had before, or it is entered now, and goes first."""
    own, node = contract.uid(case.last), case.last["spec"]["nodeName"]
    holders = [history.tracked.get(uid) for uid, held in after.items() if held == node and uid != own]
    return any(
        holder is None or contract.uid(holder.last) in before or not _goes_first(history, case, holder)
        for holder in holders
    )


def _place(history: History, case: Tracked) -> tuple[int, str] | None:
    """Where a case stands in the queue; None where no policy says it, or somebody has just changed that."""
    policy = history.policy(case.last) if part(case.last, "spec") else None
    severity = part(policy, "spec").get("severity", "Warning")
    if policy is None or severity not in SEVERITIES:
        return None
    edited = history.edited.get(contract.name(policy))
    if edited is not None and edited > _heard(history):
        return None
    return SEVERITIES.index(severity), part(case.last, "metadata").get("creationTimestamp", "")


def _heard(history: History) -> datetime:
    """What was written before then is known to whoever decides now."""
    return history.at - history.limits.grace - history.limits.silence


def _waiting(history: History, node: str) -> Iterator[Tracked]:
    """The cases that have waited for budgets alone for so long that everybody knows, for none that is not over this
    node, and that nothing else may hold now.
    """
    budgets = _over(history, node)
    for case in history.open.values():
        if case.queued is None or case.queued > _heard(history) or case.deleted or case.released:
            continue
        if not _over(history, case.last["spec"]["nodeName"]) <= budgets or history.stopped(case.last):
            continue
        if not _asks_more(history, case) and _is_clearly_sick(history, case):
            yield case


def _asks_more(history: History, case: Tracked) -> bool:
    """Whether something else than budgets may hold it: an answer that it waits for, or a cause that others showed."""
    policy, timeline = history.policy(case.last), part(case.last, "status", "timeline") or ()
    grouped = any(entry.get("reason") == "SharedCause" for entry in timeline)
    asks = policy is None or any(part(policy, "spec").get(word) for word in ASKS)
    return asks or grouped or bool(causes.in_common(history, case.last))


def _is_clearly_sick(history: History, case: Tracked) -> bool:
    """Whether its node has shown the fault all the while, and nobody has taken it out of service."""
    name, policy = case.last["spec"]["nodeName"], history.policy(case.last)
    fresh = history.limits.stale - history.limits.grace
    states = history.lately(name)
    sick = policy is not None and all(clauses.sick(state, policy, history.at, fresh) for state in states)
    return sick and bool(states) and not _was_down(history, name)


def _over(history: History, node: str) -> set[tuple[str, str]]:
    """The budgets over a node, and its group in each."""
    budgets, seen = list(history.objects[BUDGETS].values()), history.nodes.get(node)
    over = (budget for budget in budgets if seen is not None and seen in ledger.under(budget, [seen], budgets))
    return {(contract.name(budget), ledger.group(budget, seen)) for budget in over}


def _was_down(history: History, node: str) -> bool:
    """Whether it was out of service at any time within the grace: then its claim costs a budget nothing more."""
    return any(contract.down(state) for state in history.lately(node))
