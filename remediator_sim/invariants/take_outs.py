"""I1, I4, I5, I12: nodes that users have taken out are counted, left alone, and theirs until they put them back."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator_sim.invariants import budgets, contract, disturbances, endings, pod_words
from remediator_sim.invariants.contract import OPERATIONS, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked

SOON = timedelta(minutes=15)  # what may pass until somebody of us has acted

# --- I1: they are counted --------------------------------------------------------------------------------------------


def counted(history: History, event: Event) -> Iterator[str]:
    """Time passed. Counts, for each node that is out, each budget over it: so long after that it is in quarantine."""
    for tracked in _out(history):
        if _passed(history, tracked.out):
            node = _node(tracked)
            for verdict in budgets.counted(history, node, contract.uid(tracked.last)):
                yield HELD if verdict == HELD else f"{verdict}, which is out since {clock(tracked.out or history.at)}"


# --- I4: they are left alone -----------------------------------------------------------------------------------------


def left_alone(history: History, event: Event) -> Iterator[str]:
    """A node, an operation or a Pod was written. Counts what disturbs a node that a user had: they have it no more."""
    known = history.at - history.limits.grace
    for node, what in _disturbed(history, event):
        had = [(tracked, tracked.out) for tracked in history.cases() if tracked.out and _node(tracked) == node]
        has = [(tracked, since) for tracked, since in had if not tracked.over and since < known]
        if has:
            case, since = has[-1]
            yield f"{what} at {clock(event.at)} though a user has {node} since {clock(since)} by case {case.name}"
        elif had:
            yield HELD


def _disturbed(history: History, event: Event) -> Iterator[tuple[str, str]]:
    """The node and a sentence for each thing that begins."""
    if event.kind == contract.NODES:
        yield from ((event.key, what) for _, what in disturbances.claims(event))
        return
    begun = disturbances.intents(event) if event.kind == OPERATIONS else disturbances.pods(event)
    for uid, what in begun:
        case = history.tracked.get(uid)
        if case is not None and case.kind == contract.CASES:
            yield _node(case), what
    tested = pod_words.tested(event.new)[1] if event.kind == contract.PODS and event.old is None else ""
    if tested:
        yield tested, f"test {event.key} was made"


def in_its_time(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each that is taken for a user: they may still want it."""
    for uid, what in disturbances.claims(event):
        tracked = history.tracked.get(uid)
        until = contract.kept_until(tracked.last) if tracked else ""
        if until:
            late = contract.moment(until) + _slack(history) < event.at
            yield f"{what} at {clock(event.at)} for a user who wanted it until {until}" if late else HELD


# --- I5: nobody gives them back but their user -----------------------------------------------------------------------


def kept(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that ends where its user has the node, or its Pods have gone for them.

    A person has put the node back, or has taken our marks off, or the node is another one.
    """
    if not contract.ended(event.new) or contract.ended(event.old) or not contract.kept_until(event.new):
        return
    emptied = contract.phase(event.new) == "Recovered" and _emptied(event.new)
    if contract.is_out(event.old) or emptied:
        tracked = history.tracked[contract.uid(event.obj)]
        sentence = f"case {event.key} ended at {clock(event.at)}, and nobody had put {_node(tracked)} back"
        yield HELD if _given_up(history, tracked) else sentence


def _emptied(case: Obj | None) -> bool:
    """Whether what the user has asked for was done."""
    tries = [attempt for attempt in contract.attempts(case) if contract.is_try(attempt)][-1:]
    return any(attempt.get("outcome") == "Succeeded" for attempt in tries)


def _given_up(history: History, tracked: Tracked) -> bool:
    """Whether a person has done anything that lets the node go, or it is gone."""
    node = history.nodes.get(_node(tracked))
    another = part(node, "metadata").get("uid") != tracked.last["spec"].get("nodeUID")
    return bool(tracked.released or tracked.deleted or another or not _is_ours(node, contract.uid(tracked.last)))


def _is_ours(node: Obj | None, uid: str) -> bool:
    """Whether it has the taint of the case, and the cordon that we have set."""
    cordoned = part(node, "spec").get("unschedulable")
    return contract.held_by(node) == uid and cordoned is True


def given_back(history: History, event: Event) -> Iterator[str]:
    """Time passed. Counts each case whose user had the node, so long after its end: all that was ours is gone."""
    for tracked in history.cases():
        if tracked.out and tracked.over and _passed(history, max(tracked.over, tracked.silent or tracked.over)):
            yield endings.left(history, tracked)


def answered(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each take-out that says its end: it has succeeded if its user has the node."""
    asks = part(event.new, "spec", "keepOut") and not event.obj["spec"].get("caseUID")
    if not asks or not contract.finished(event.new) or contract.finished(event.old):
        return
    cases = [each for each in history.cases() if contract.asked_for(each.last).get("uid") == contract.uid(event.obj)]
    out = any(tracked.out or contract.was_out(tracked.last) for tracked in cases)
    says = contract.phase(event.new)
    wrong = (
        f"operation {event.key} is {says} at {clock(event.at)}, and its user {'has' if out else 'never had'} the node"
    )
    yield HELD if (says == "Succeeded") == out else wrong


# --- I12: everybody is told ------------------------------------------------------------------------------------------


def told(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each case that says for long what is no longer so of the time that its user has said."""
    for tracked in _out(history):
        until = contract.moment(contract.kept_until(tracked.last))
        since = max(filter(None, (until if until <= history.at else None, tracked.out, tracked.agreed)))
        if _says_over(tracked.last) != (until <= history.at) and history.at - since - history.absent(since) > SOON:
            yield f"case {tracked.name} says {_reason(tracked.last)} of a time that ends at {clock(until)}"


def says(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each that says anew that its user has the node: whether their time is over is true."""
    if not contract.is_out(event.new) or _reason(event.new) == _reason(event.old):
        return
    until, slack = contract.moment(contract.kept_until(event.new)), _slack(history)
    wrong = event.at < until - slack if _says_over(event.new) else event.at > until + slack
    sentence = f"case {event.key} says {_reason(event.new)} at {clock(event.at)} of a time that ends at {clock(until)}"
    yield sentence if wrong else HELD


def _reason(case: Obj | None) -> str:
    return str(part(case, "status").get("reason", ""))


def _says_over(case: Obj | None) -> bool:
    return _reason(case) == contract.TAKEN_OUT[1]


# --- looking ---------------------------------------------------------------------------------------------------------


def _node(tracked: Tracked) -> str:
    return str(tracked.last["spec"].get("nodeName", ""))


def _out(history: History) -> list[Tracked]:
    """The cases whose users have their nodes."""
    return [tracked for tracked in history.open.values() if tracked.out and contract.is_out(tracked.last)]


def _slack(history: History) -> timedelta:
    """By how much whoever reads a clock may be off, with what they have not heard of yet."""
    return history.limits.grace + history.limits.clocks


def _passed(history: History, since: datetime | None) -> bool:
    """Whether it has just been long enough since then, and somebody of us could act for all of it."""
    return since is not None and history.passed(since + SOON) and not history.absent(since)
