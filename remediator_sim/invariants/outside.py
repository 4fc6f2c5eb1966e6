"""I9: the extender names each node once, and no sick one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from remediator_sim.invariants import clauses, contract, quiet
from remediator_sim.invariants.contract import Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import PAUSE, History
from remediator_sim.invariants.results import HELD

# What an open case waits for that is about to be claimed: its node gets work after all others.
QUEUE = frozenset({"BudgetSpent", "BudgetUnready", "BudgetRefused", "BreakerOpen", "OutsideWindow"})


def each_once(history: History, event: Event) -> Iterator[str]:
    """The extender answered. Counts each answer: every name that was sent is in exactly one of its lists."""
    if "refused" in event.obj:
        yield f"the extender answered {event.obj['refused']} at {clock(event.at)}: a scheduler takes that for a failure"
        return
    asked, lists = event.obj["asked"], _lists(event.obj["answer"])
    counted = Counter(name for names in lists.values() for name in names)
    missing = [name for name in asked if name not in counted]
    twice = [name for name, count in counted.items() if count > 1]
    foreign = sorted(counted.keys() - set(asked))
    found = (("left out", missing), ("named more than once", twice), ("named unasked", foreign))
    wrong = [f"{what} {', '.join(names)}" for what, names in found if names]
    yield f"the extender has {' and '.join(wrong)} at {clock(event.at)}" if wrong else HELD


def no_sick_node(history: History, event: Event) -> Iterator[str]:
    """The extender answered. Counts each node that should get no work: it is not among those that may."""
    kept = set(_lists(event.obj.get("answer", {}))["nodenames"])
    asked = event.obj["asked"] if "answer" in event.obj else ()
    lately = {name: history.lately(name) for name in asked}
    held = {name: why for name in asked if (why := _held(lately[name]))}
    wanted = _wanted(history.objects[contract.POLICIES].values())
    free = [name for name in asked if name not in held]
    sick = {name: why for name in free if (why := _unhealthy(history, name, lately[name], wanted))}
    for name, why in (held | ({} if sick and _may_only_score(history) else sick)).items():
        yield f"the extender gives work to {name} at {clock(event.at)}, which {why}" if name in kept else HELD


def _wanted(policies: Iterable[Obj]) -> set[tuple[str, str]]:
    """What some of these policies look for: most nodes show nothing of it, and need no closer look."""
    return {pair for policy in policies for pair in clauses.wanted(policy)}


def _lists(answer: Mapping[str, Any]) -> dict[str, Iterable[str]]:
    """The names in each list of an answer; keys may be written in any case."""
    fields = {key.lower(): value or () for key, value in answer.items()}
    return {key: fields.get(key, ()) for key in ("nodenames", "failednodes", "failedandunresolvablenodes")}


def _may_only_score(history: History) -> bool:
    """Whether health may have refused no node within the grace: a pause, or too many nodes that it would refuse."""
    if PAUSE in history.stops or history.at - history.unpaused <= history.limits.grace:
        return True
    policies = list(history.policies_lately())
    wanted, kept_off = _wanted(policies), _kept_off_by_cases(history)
    count = sum(name in kept_off or _refusable(history, name, policies, wanted) for name in history.nodes)
    return count > 3 and count * 100 > 15 * len(history.nodes)


def _kept_off_by_cases(history: History) -> set[str]:
    """The nodes whose open case keeps work off, also where their health cannot be told any more: not those that it
    holds, those that wait for their turn, and those of which it says nothing.
    """
    lately = history.at - history.limits.grace
    cases = (tracked for tracked in history.cases() if tracked.over is None or tracked.over > lately)
    telling = (case.last for case in cases if not (case.claimed or contract.asked_for(case.last)))
    return {case["spec"]["nodeName"] for case in telling if _keeps_off(history, case)} & history.nodes.keys()


def _keeps_off(history: History, case: Obj) -> bool:
    """Whether an open case that holds no node keeps work off it."""
    policy = history.policy(case)
    dry = part(policy, "spec").get("mode") == "DryRun"
    reasons = {block["reason"] for block in part(case, "status").get("blockedBy") or ()}
    waits = bool(reasons) and reasons <= QUEUE
    return not (dry or waits or "TicketOnly" in reasons)


def _refusable(history: History, name: str, policies: Iterable[Obj], wanted: set[tuple[str, str]]) -> bool:
    """Whether health would have refused the node at any time within the grace; one that a case holds is not counted."""
    lately = history.lately(name)
    if _held(lately):
        return False
    if any(contract.says(node, "Ready") in ("False", "Unknown") for node in lately):
        return True
    shown = any(not wanted.isdisjoint(clauses.statuses(node)) for node in lately)
    return shown and any(history.sick(name, policy) for policy in policies)


def _held(lately: Sequence[Obj]) -> str:
    """Why the node should get no work whatever its health, and has not for the whole grace; "" where it may."""
    return "a case holds" if lately and all(map(contract.held_by, lately)) else ""


def _unhealthy(history: History, name: str, lately: list[Obj], wanted: set[tuple[str, str]]) -> str:
    """Why the node should get no work for its health, and has not for the whole grace; "" where it may."""
    if lately and all(contract.says(node, "Ready") in ("False", "Unknown") for node in lately):
        return "is not ready"
    shown = clauses.statuses(lately[-1]) if lately else []
    if wanted.isdisjoint(shown):  # as of nearly all nodes
        return ""
    asking = (policy for policy in history.objects[contract.POLICIES].values() if _asks_for(policy, shown))
    named = next((contract.name(policy) for policy in asking if _sick_throughout(history, lately, policy)), "")
    return f"is unhealthy as policy {named} says" if named and not _waits(history, name, lately) else ""


def _asks_for(policy: Obj, shown: list[tuple[str, str]]) -> bool:
    """Whether a policy looks for something that is shown."""
    return not set(clauses.wanted(policy)).isdisjoint(shown)


def _sick_throughout(history: History, lately: list[Obj], policy: Obj) -> bool:
    """Whether the node showed the fault all the while. What only calls a person is not in it; DryRun only scores."""
    refuses = part(policy, "spec", "urgency").get("mode") != "Never" and policy["spec"].get("mode") != "DryRun"
    refuses = refuses and not quiet.shows_only(policy)
    refuses = refuses and isinstance(policy["spec"].get("severity", ""), str)  # else nobody can read it
    covered = refuses and contract.selects(policy["spec"].get("nodeSelector") or {}, lately[-1])
    stale, before = history.limits.stale, history.at - history.limits.grace
    # The newest first: that settles it for all nodes that are well. Time alone may have made its heartbeat believable.
    return bool(covered) and all(
        clauses.sick(node, policy, at, stale) for node in reversed(lately) for at in (history.at, before)
    )


def _waits(history: History, name: str, lately: list[Obj]) -> bool:
    """Whether the node only waits for its turn: that alone keeps no work away."""
    marked = any(taint["key"] == contract.DEGRADED_TAINT for node in lately for taint in contract.taints(node))
    cases = (tracked for tracked in history.open.values() if tracked.last["spec"]["nodeName"] == name)
    return marked or any(not tracked.claimed for tracked in cases)
