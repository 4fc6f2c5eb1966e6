"""I4: where a policy says `requireSpareGPUs`, a node is taken only while its Pods find GPUs elsewhere."""

from collections.abc import Iterator
from datetime import datetime

from remediator_sim.invariants import contract, disturbances
from remediator_sim.invariants.contract import CASES, PODS, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

GPU = "nvidia.com/gpu"


def claimed(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each claim under such a policy: the GPUs that its Pods hold are free elsewhere."""
    for uid, what in disturbances.claims(event):
        tracked = history.tracked.get(uid)
        policy = history.policy(tracked.last) if tracked is not None and tracked.kind == CASES else None
        asks = part(policy, "spec").get("requireSpareGPUs") is True
        if policy is not None and asks and not history.lately_edited(contract.name(policy)):
            lacking = _lacking(history, event.key)
            yield f"{what} at {clock(history.at)}, and {lacking}" if lacking else HELD


def _lacking(history: History, node: str) -> str:
    """What of a node fits nowhere else, "" where all may fit: of Pods of a size, more than there is room for."""
    held = _held(history)
    needed = [gpus for gpus, deleted in held.get(node, ()) if not deleted]
    free = [_free(history, name, held) for name in history.nodes if name != node and _takes_pods(history, name)]
    for size in sorted(set(needed)):
        count, room = sum(gpus >= size for gpus in needed), sum(left // size for left in free)
        if count > room:
            return f"{count} of its Pods hold {size} GPUs or more, and there is room for {room} elsewhere"
    return ""


def _held(history: History) -> dict[str, list[tuple[int, bool]]]:
    """By node, how many GPUs each Pod holds, and whether it was deleted: Pods of which everybody has heard."""
    heard, held = history.at - history.limits.silence, dict[str, list[tuple[int, bool]]]()
    for pod in history.objects[PODS].values():
        gpus = gpus_of(pod)
        if gpus and not contract.pod_ended(pod) and _made(history, pod) <= heard:
            deleted = contract.deleted(pod)
            held.setdefault(part(pod, "spec").get("nodeName", ""), []).append((gpus, deleted))
    return held


def _made(history: History, pod: Obj) -> datetime:
    return history.tracked[contract.uid(pod)].made


def gpus_of(pod: Obj) -> int:
    """How many GPUs a Pod holds."""
    return sum(map(_asked, part(pod, "spec", "containers") or ()))


def _asked(container: Obj) -> int:
    wanted = part(container, "resources", "limits") | part(container, "resources", "requests")
    return int(wanted.get(GPU, 0))


def _free(history: History, name: str, held: dict[str, list[tuple[int, bool]]]) -> int:
    """How many GPUs nothing holds; one that fell off the bus may not be known of yet, and counts."""
    shown = part(history.nodes[name], "metadata", "labels").get("nvidia.com/gpu.count", "0")
    return max(0, int(shown) - sum(gpus for gpus, _ in held.get(name, ())))


def _takes_pods(history: History, name: str) -> bool:
    """Whether somebody may take a node for one that takes Pods: what we have cordoned ourselves we know at once."""
    ours = bool(contract.held_by(history.nodes[name]))
    unheard = history.limits.grace if ours else history.limits.silence
    return history.at - history.down.get(name, history.at) <= unheard
