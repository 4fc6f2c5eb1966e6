"""I4, I5, I6: nothing begins on a node whose Lease another holds; theirs stays theirs, and ours is given back."""

from collections.abc import Iterator

from remediator_sim.invariants import contract, disturbances
from remediator_sim.invariants.contract import CASES, OUR_HOLDER, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD


def claimed(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each claim where controllers take Leases of nodes: ours was taken before."""
    for uid, what in disturbances.claims(event) if history.leases else ():
        yield from _begins(history, uid, what)


def disturbed(history: History, event: Event) -> Iterator[str]:
    """A Pod was written. Counts each drain and each Pod that works on a node, where Leases are taken: the same."""
    for uid, what in disturbances.pods(event) if history.leases else ():
        yield from _begins(history, uid, what)


def _begins(history: History, uid: str, what: str) -> Iterator[str]:
    """What is wrong with something that begins: a moment ago the Lease may have been ours still, or already."""
    tracked = history.tracked.get(uid)
    if tracked is None or tracked.kind != CASES:
        return
    node = tracked.last["spec"]["nodeName"]
    lease, unheard = history.leases.get(node), history.at - history.limits.grace
    if lease is not None and (lease.holder == f"{OUR_HOLDER}{tracked.name}" or lease.since > unheard):
        yield HELD
    elif lease is not None and lease.of_another and lease.until > history.at:
        since = clock(lease.since)
        yield f"{what} at {clock(history.at)} though {lease.holder} holds the Lease of {node} since {since}"
    else:
        yield f"{what} at {clock(history.at)} without the Lease of {node}"


def left_to_others(history: History, event: Event) -> Iterator[str]:
    """A Lease was written. Counts each that a case takes over from another system: it had expired."""
    node, before, after = contract.leased(event.key), part(event.old, "spec"), part(event.new, "spec")
    holders = [spec.get("holderIdentity") or "" for spec in (before, after)]
    if not node or not holders[0] or holders[0].startswith(OUR_HOLDER) or not holders[1].startswith(OUR_HOLDER):
        return
    seconds = contract.duration(f"{before.get('leaseDurationSeconds') or 0}s")
    until = contract.moment(before.get("renewTime") or "") + seconds
    text = f"the Lease of {node} was taken from {holders[0]} at {clock(event.at)}, which had it until {clock(until)}"
    yield text if until > event.at else HELD


def given_back(history: History, event: Event) -> Iterator[str]:
    """Time passed. Counts each case that is over for as long as clearing away may take: it holds no Lease."""
    for tracked in history.cases() if history.leases and history.acts() else ():
        if tracked.over and history.passed(tracked.over + history.limits.settle):
            lease = history.leases.get(tracked.last["spec"]["nodeName"])
            holds = lease is not None and lease.holder == f"{OUR_HOLDER}{tracked.name}"
            yield f"case {tracked.name} is over since {clock(tracked.over)} and holds its Lease" if holds else HELD
