"""I3: what is new in a release is only shown for a while, and is believed on few nodes at once only."""

from collections.abc import Iterator
from datetime import timedelta

from remediator_sim.invariants import clauses, contract, disturbances
from remediator_sim.invariants.contract import POLICIES, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

MEANT = timedelta(minutes=10)  # a policy that was no older when we first knew the criterion was written for it
SHARE, FEWEST = 10, 3  # percent of the nodes of a policy, and nodes
# So long after the last time that many nodes have shown it nothing starts: an hour, since a look at it every ten
# minutes.
MUTED = timedelta(minutes=49)


def claimed(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each claim for what is new alone: it is neither only shown now, nor muted."""
    for case, sentence in disturbances.claims(event):
        tracked = history.tracked.get(case)
        policy = history.policy(tracked.last) if tracked else None
        if tracked is not None and policy is not None and _rests_on_new(policy) and _is_judged(history, tracked.last):
            why = _too_early(history, policy) or _crowded(history, policy)
            yield f"{sentence} at {clock(event.at)}, and {why}" if why else HELD


def _is_judged(history: History, case: Obj) -> bool:
    """Whether a policy has opened it for a fault, and nobody has changed that policy a moment ago."""
    edited = history.lately_edited(case["spec"].get("policyName", ""))
    return not (edited or contract.asked_for(case) or contract.gate(case))


def noted(history: History, event: Event) -> Iterator[str]:
    """Time passed. Notes which policies see what is new on many nodes; tells of cases that are held for too long."""
    for policy in history.objects[POLICIES].values():
        if _rests_on_new(policy) and contract.uid(policy) in history.learned:
            _note(history, policy)
            yield from _held_on(history, policy)


def shows_only(policy: Obj) -> bool:
    """Whether all that a policy asks for is new, and it says that it does not act on that."""
    rows = part(policy, "status").get("criteria") or ()
    return _rests_on_new(policy) and any(row.get("state") != "Acts" for row in rows)


def _rests_on_new(policy: Obj) -> bool:
    """Whether all that it asks for is new, and no user has said that it may act on that."""
    trusted = part(policy, "metadata", "annotations").get(contract.TRUSTED)
    return not trusted and set(clauses.watched(policy)) <= contract.NEW


def _too_early(history: History, policy: Obj) -> str:
    """Why a policy that is older than what it asks for does not act yet; "" where it may."""
    since = history.learned.get(contract.uid(policy))
    if since is None:
        return f"policy {contract.name(policy)} does not say since when it knows what it asks for, which is new"
    made = contract.moment(part(policy, "metadata").get("creationTimestamp", ""))
    slack = history.limits.grace + history.limits.clocks
    if since - made <= MEANT + slack or history.at >= since + history.limits.quiet - slack:
        return ""
    return f"policy {contract.name(policy)} knows what it asks for, which is new, only since {clock(since)}"


def _crowded(history: History, policy: Obj) -> str:
    """Why it believes nothing of that; "" where it may."""
    seen = history.crowds.get(contract.uid(policy))
    if seen is None:
        return ""
    begun, last = seen
    known = last - begun > history.limits.grace + history.limits.silence
    muted = known and history.at - last < MUTED
    return f"{contract.name(policy)} asks for what is new, and many nodes showed it at {clock(last)}" if muted else ""


def _note(history: History, policy: Obj) -> None:
    """Note since when many nodes have shown it, and when they did last; not while nobody of us can act."""
    uid = contract.uid(policy)
    begun, last = history.crowds.get(uid, (history.at, history.at))
    goes_on = uid in history.crowds and history.at - last < MUTED
    over = history.at >= history.learned[uid] + history.limits.quiet - history.limits.clocks
    away = bool(history.absences) and history.absences[-1][1] is None
    if (goes_on or not over) and not away and _many(history, policy):
        history.crowds[uid] = (begun if goes_on else history.at, history.at)


def _many(history: History, policy: Obj) -> bool:
    selector = part(policy, "spec").get("nodeSelector") or {}
    selected = [name for name, node in history.nodes.items() if contract.selects(selector, node)]
    showing = sum(_shows(history, name, policy) for name in selected)
    return showing >= FEWEST and showing * 100 > SHARE * len(selected)


def _shows(history: History, node: str, policy: Obj) -> bool:
    """Whether it has clearly shown it for all of the grace."""
    fresh = history.limits.stale - history.limits.grace
    return all(clauses.sick(state, policy, history.at, fresh) is True for state in history.lately(node))


def _held_on(history: History, policy: Obj) -> Iterator[str]:
    """Each case that is held for what is new though its time was over long ago."""
    due = history.learned[contract.uid(policy)] + history.limits.quiet + history.limits.settle
    if not (history.passed(due) and history.acts()):
        return
    for tracked in history.open.values():
        reasons = {block["reason"] for block in part(tracked.last, "status").get("blockedBy") or ()}
        if tracked.last["spec"].get("policyName") == contract.name(policy) and "NewCriterion" in reasons:
            yield f"case {tracked.name} is held for what is new, which policy {contract.name(policy)} knows for long"
