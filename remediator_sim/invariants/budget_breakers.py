"""I4: the breaker of a budget stops starts on its nodes: by how many there were, and how many were in vain."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator_sim.invariants import contract, ledger
from remediator_sim.invariants.contract import BUDGETS, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.failures import COUNTS_FOR
from remediator_sim.invariants.history import History, begun
from remediator_sim.invariants.results import HELD


def rate(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt under a budget that bounds starts: no more than it lets through."""
    node = history.nodes.get(event.obj["spec"]["nodeName"])
    for attempt in begun(event):
        for budget, names in _over(history, node) if node else ():
            rule = part(budget, "spec", "breaker")
            limit, window = most_starts(rule, len(names)), contract.duration(rule.get("window", "10m"))
            count = _starts(history, attempt["operation"], names, window)
            sentence = f"{attempt['operation']} was start number {count} within {window} under budget"
            if limit is not None:
                allowed = f"{contract.name(budget)} at {clock(event.at)}; its breaker allows {limit}"
                yield HELD if count <= limit else f"{sentence} {allowed}"


def most_starts(rule: Obj, total: int) -> int | None:
    """How many starts a breaker lets through in its window; a percentage is rounded down, but not below one."""
    limits = [rule["starts"]] if "starts" in rule else []
    limits += [max(1, total * rule["percent"] // 100)] if "percent" in rule else []
    return min(limits, default=None)


def _starts(history: History, operation: str, names: set[str], window: timedelta) -> int:
    """How many attempts have started on these nodes in the window that ends with this one, and came to something."""
    at = next(start.at for start in reversed(history.starts) if start.operation == operation)
    since = at - window + history.limits.clocks
    recent = (start for start in history.starts if start.node in names and since < start.at <= at)
    return sum(not history.came_to_nothing(start) for start in recent)


def failing(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt, and the first claim, under a budget that goes by failures: none
    though too many were in vain, or though its status says that it is open.
    """
    starts = [f"{attempt['operation']} was begun" for attempt in begun(event)]
    if part(event.new, "status").get("startedAt") and not part(event.old, "status").get("startedAt"):
        starts.append(f"case {event.key} took {event.obj['spec']['nodeName']}")
    node = history.nodes.get(event.obj["spec"]["nodeName"])
    for what in starts:
        for budget, names in _over(history, node) if node else ():
            if "failures" in part(budget, "spec", "breaker"):
                why = _shown_open(history, budget) or _in_vain(history, budget, names)
                yield f"{what} at {clock(history.at)} though {why}" if why else HELD


def _shown_open(history: History, budget: Obj) -> str:
    """Since when its status says that it is open, where that was so for long and no user has closed it."""
    shown = part(budget, "status", "breaker").get("openedAt", "")
    opened = contract.moment(shown)
    if not shown or _closed(budget) >= opened or history.at - opened <= history.limits.grace:
        return ""
    return f"the breaker of budget {contract.name(budget)} is open since {clock(opened)}"


def _in_vain(history: History, budget: Obj, names: set[str]) -> str:
    """Why the breaker of a budget has to be open; an attempt in vain counts once everybody has heard of it."""
    rule = part(budget, "spec", "breaker", "failures")
    after = max(_closed(budget), history.at - COUNTS_FOR)
    made = history.tracked[contract.uid(budget)].made
    tries = [each for each in history.tries.values() if each.node in names and each.ended > after and each.known > made]
    newest = sorted(tries, key=lambda each: (each.ended, each.operation))[-rule.get("of", 8) :]
    vain = [each for each in newest if each.in_vain and _heard(history, each.known)]
    if len(vain) < rule.get("most", 4):
        return ""
    return f"{len(vain)} of the last {len(newest)} tries under budget {contract.name(budget)} were in vain"


def _heard(history: History, known: datetime) -> bool:
    return history.at - known - history.absent(known) > history.limits.grace


def _closed(budget: Obj) -> datetime:
    return contract.moment(part(budget, "metadata", "annotations").get(contract.BREAKER_CLOSED_AT) or "")


def _over(history: History, node: Obj) -> Iterator[tuple[Obj, set[str]]]:
    """The budgets over a node that have a breaker, with the names of their nodes: not where what they ask for has just
    changed, or where they are new.
    """
    budgets = list(history.objects[BUDGETS].values())
    for budget in budgets:
        newest = max(history.moved.get(contract.name(budget), history.shrunk), history.shrunk)
        young = history.at - max(newest, history.tracked[contract.uid(budget)].made) < history.limits.grace
        if part(budget, "spec", "breaker") and not young:
            names = {contract.name(each) for each in ledger.under(budget, history.nodes.values(), budgets)}
            if contract.name(node) in names:
                yield budget, names
