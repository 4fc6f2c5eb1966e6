"""I3's exception has one of its own: where most nodes of a zone do not report, none of them counts as dead."""

from collections.abc import Iterator

from remediator_sim.invariants import contract, dead, disturbances
from remediator_sim.invariants.contract import CASES, CORDONED_BY, EXCLUDE, Obj, clock, part
from remediator_sim.invariants.disturbances import Disturbance
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

ZONE = "topology.kubernetes.io/zone"
LEAST, PERCENT = 3, 55


def claimed(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each claim of one whose kubelet does not report: its zone is not cut off."""
    yield from _judged(history, disturbances.claims(event))


def begins(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt on such a node in the same way."""
    yield from _judged(history, disturbances.starts(event))


def _judged(history: History, begun: Iterator[Disturbance]) -> Iterator[str]:
    for uid, what in begun:
        tracked = history.tracked.get(uid)
        policy = history.policy(tracked.last) if tracked is not None and tracked.kind == CASES else None
        if tracked is None or policy is None or not dead.asks_unknown(policy):
            continue
        node = tracked.last["spec"]["nodeName"]
        if _silent(history, node):
            why = _cut_off(history, part(history.nodes.get(node), "metadata", "labels").get(ZONE, ""))
            yield f"{what} at {clock(history.at)} though {why}" if why else HELD


def _cut_off(history: History, zone: str) -> str:
    """Why a zone counts as cut off, "" where it does not: nodes of which everybody has heard that they are silent."""
    names = [name for name, node in history.nodes.items() if part(node, "metadata", "labels").get(ZONE, "") == zone]
    heard = history.at - history.limits.silence
    silent = [name for name in names if _silent(history, name) and history.unreachable.get(name, history.at) <= heard]
    many = len(silent) >= LEAST and 100 * len(silent) >= PERCENT * len(names)
    return f"{len(silent)} of {len(names)} nodes of zone {zone or 'none'} do not report" if many else ""


def _silent(history: History, name: str) -> bool:
    """Whether a node has not reported for all of the grace, and no user has kept it out of service."""
    return name in history.nodes and all(_counts(state) for state in history.lately(name))


def _counts(node: Obj) -> bool:
    by_user = part(node, "spec").get("unschedulable") and CORDONED_BY not in part(node, "metadata", "annotations")
    excluded = part(node, "metadata", "labels").get(EXCLUDE, "false") != "false"
    return contract.says(node, "Ready") == "Unknown" and not (by_user or excluded)
