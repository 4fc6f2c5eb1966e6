"""Nodes that have come to show the same thing close together: for the shared causes of I4."""

from datetime import datetime

from remediator_sim.invariants import clauses, contract
from remediator_sim.invariants.contract import CORDONED_BY, EXCLUDE, Obj, part
from remediator_sim.invariants.history import History
from remediator_sim.invariants.tracked import Tracked

DRIVER = "nvidia.com/cuda.driver-version.full"


def in_common(history: History, case: Obj) -> str:
    """Which other nodes show what a case is about, "" where too few do. Nodes count that have done so, with the same
    onset, for longer than a watch may be silent; cases that have ended lately do not."""
    policy = history.policy(case)
    rule, trigger = part(policy, "spec").get("correlation"), part(case, "spec", "trigger")
    if policy is None or not rule or not trigger.get("condition"):
        return ""
    waiting = {tracked.last["spec"]["nodeName"] for tracked in history.cases() if _waits(history, tracked)}
    compared = _compared(policy, trigger, history.nodes.get(case["spec"]["nodeName"]))
    onsets = {
        name: _onset(history, name, policy, trigger["condition"], compared) for name in history.nodes.keys() - waiting
    }
    known = {name: onset for name, onset in onsets.items() if onset is not None}
    own, within = known.get(case["spec"]["nodeName"]), contract.duration(rule.get("within", "10m"))
    for first in known.values():
        near = sorted(name for name, onset in known.items() if first <= onset and onset - first <= within)
        if own is not None and first <= own and own - first <= within and len(near) >= rule.get("nodes", 3):
            return f"{len(near)} nodes show the same ({', '.join(near)})"
    return ""


def _waits(history: History, tracked: Tracked) -> bool:
    """Whether a case has waited for a user at any time within the grace."""
    return tracked.escalated is not None and (tracked.over is None or history.at - tracked.over <= history.limits.grace)


def _onset(history: History, name: str, policy: Obj, kind: str, compared: list[str]) -> datetime | None:
    """Since when a node has shown what is `compared`, None where it did not for so long that everybody has heard."""
    seen = {_shown(history, state, policy, kind, compared) for state in history.lately(name)}
    onset = seen.pop() if len(seen) == 1 else None
    return onset if onset and onset <= history.at - history.limits.silence else None


def _shown(history: History, node: Obj, policy: Obj, kind: str, compared: list[str]) -> datetime | None:
    shown = clauses.shown(node, policy, kind, history.at, history.limits.stale)
    by_user = part(node, "spec").get("unschedulable") and not part(node, "metadata", "annotations").get(CORDONED_BY)
    excluded = part(node, "metadata", "labels").get(EXCLUDE, "false") != "false"
    if shown is None or by_user or excluded or not contract.selects(part(policy, "spec", "nodeSelector"), node):
        return None
    same = all(compared) and _compared(policy, shown, node) == compared
    return contract.moment(shown.get("lastTransitionTime") or "") if same else None


def _compared(policy: Obj, statement: Obj, node: Obj | None) -> list[str]:
    """What the policy compares of a condition, or of a trigger, and of its node."""
    labels = part(node, "metadata", "labels")
    by = policy["spec"]["correlation"].get("by") or ["message"]
    own = {word: statement.get(word) for word in ("reason", "message")}
    own |= {"kernelVersion": part(node, "status", "nodeInfo").get("kernelVersion"), "driverVersion": labels.get(DRIVER)}
    return [str(own.get(key, labels.get(key)) or "") for key in by]
