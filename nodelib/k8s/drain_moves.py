"""What a drain does with each Pod of its node, now. Pure: a Pod, the orders and the scene in, a move out."""

from collections import namedtuple
from collections.abc import Sequence

from nodelib.k8s.drain_orders import Orders, Rule
from nodelib.k8s.pod_wishes import LET_GO
from nodelib.k8s.pods import Pod

EVICT, DELETE, FORCE, WAIT, SKIP, LEAVE = "evict", "delete", "delete at once", "wait for", "not wait for", "leave"
KEEP = "evict nobody because of"  # somebody must act before this Pod goes: until then no other one goes for nothing
ASKS = (EVICT, DELETE, FORCE)  # each is one request
OVERDUE_SECONDS = 60.0  # seconds after its grace at which a Pod that is still there is worth a word
MOST_NAMED = 5  # volumes of a Pod
MOST_TEXT = 300  # characters of what a Pod says of itself
OVERDUE = "its end is overdue"
COMPLETES = "WaitForCompletion: it is waited for until it ends by itself"
REPORTS = "ForceDelete is for a node that is silent, and its kubelet reports: choose Delete, or power the node off"
BARE = f"no controller makes it again: {LET_GO}, or set drain.deleteBarePods in the template"
MOST_RETURNS = 10  # Pods of one maker that have come since the drain began, and were asked to go
RETURNS = (
    f"{{}} has made {MOST_RETURNS} Pods on this node since the drain began: take the toleration or nodeName off that "
    "puts them here, or leave them to a rule with strategy None"
)
SILENT = f"{OVERDUE} and the kubelet does not report: its process ends with the node's power, ForceDelete forgets it"
HANGS = f"{OVERDUE}: its process cannot end, or the kubelet is stuck; a reboot ends it (drain.skipWaitForDelete)"


class Scene(
    namedtuple(
        "Scene",
        "silent deletes overrides insistent judged",
        defaults=[False, False, False, frozenset(), frozenset()],
    )
):
    """What matters beside the Pod. `silent`: nobody hears of its kubelet. `deletes`: the time for evictions is over.

    `overrides`: annotations that keep a Pod have had their time. `insistent`: makers of Pods (Pod.maker) that have made
    MOST_RETURNS on this node again. `judged`: uids of Pods of which a budget has refused an eviction: they may be
    deleted once that time is over. Of others nobody has said to us yet that they may not be evicted.
    """

    __slots__ = ()


class Move(namedtuple("Move", "verb why budgets", defaults=["", ""])):
    """What to do with one Pod. `why`: what keeps one that stays for now, with the remedy, where there is one.

    `budgets`: the names of those that keep it for good.
    """

    __slots__ = ()


def moves(pods: Sequence[Pod], orders: Orders, scene: Scene) -> list[tuple[Pod, Move]]:
    """Return each Pod with its move. Pods that must go together are for this function to bring together."""
    return [(pod, move(pod, orders, scene)) for pod in pods]


def move(pod: Pod, orders: Orders, scene: Scene) -> Move:
    """Return what to do with one Pod; the first of these that holds."""
    strategy = strategy_of(pod, orders)
    if strategy == "None":
        return Move(LEAVE)
    if pod.overdue > orders.skip:
        return Move(SKIP, f"{OVERDUE}: not waited for")
    if pod.ending:
        return _of_ending(pod, strategy, scene)
    if strategy == "WaitForCompletion":
        return Move(WAIT, COMPLETES)
    why = why_kept(pod, orders, scene)
    return Move(KEEP, why) if why else _asked(pod, strategy, scene)


def _of_ending(pod: Pod, strategy: str, scene: Scene) -> Move:
    """Somebody has asked this Pod to go already."""
    if pod.finalizers:
        return Move(WAIT, f"finalizers keep it: {', '.join(pod.finalizers)}"[:MOST_TEXT])
    if strategy == "ForceDelete" and scene.silent:
        return Move(FORCE)
    if pod.overdue <= OVERDUE_SECONDS:
        return Move(WAIT)
    return Move(WAIT, SILENT if scene.silent else HANGS)


def _asked(pod: Pod, strategy: str, scene: Scene) -> Move:
    """Nothing keeps the Pod: ask it to go."""
    if strategy == "ForceDelete":
        return Move(FORCE) if scene.silent else Move(KEEP, REPORTS)
    late = scene.deletes and pod.uid in scene.judged
    deletes = strategy == "Delete" or (strategy == "EvictThenDelete" and late)
    return Move(DELETE if deletes else EVICT)


def why_kept(pod: Pod, orders: Orders, scene: Scene) -> str:
    """Return why nobody may ask this Pod to go, with the remedy; "" where nothing keeps it."""
    if pod.maker in scene.insistent:
        return RETURNS.format(owned_by(pod))
    by_owner = why_owner_keeps(pod, scene)
    if by_owner or pod.wish.declared:
        return by_owner
    lost = []
    if not pod.owner and not orders.bare:
        lost.append(BARE)
    if pod.data and not orders.empty_dirs:
        names = ", ".join(pod.data[:MOST_NAMED]) + (", …" if len(pod.data) > MOST_NAMED else "")
        lost.append(f"data in emptyDir ({names}) would be lost: {LET_GO}, or set drain.deleteEmptyDirData")
    return "; ".join(lost)


def why_owner_keeps(pod: Pod, scene: Scene) -> str:
    """Return which annotation keeps this Pod, and who owns it; "" where none does, or the template overrides it."""
    return f"{pod.wish.kept}; its owner is {owned_by(pod)}" if pod.wish.kept and not scene.overrides else ""


def owned_by(pod: Pod) -> str:
    """Name the controller of a Pod, or who makes bare Pods of its namespace."""
    return f"{pod.owner} {pod.owner_name}".strip() or f"whoever makes Pods in {pod.namespace}"


def strategy_of(pod: Pod, orders: Orders) -> str:
    """Return the strategy of the first rule that applies to a Pod, else that of the drain."""
    return next((rule.strategy for rule in orders.rules if _applies(rule, pod)), orders.strategy)


def _applies(rule: Rule, pod: Pod) -> bool:
    return (
        (not rule.namespaces or pod.namespace in rule.namespaces)
        and (not rule.owners or pod.owner in rule.owners)
        and all(pod.labels.get(key) == value for key, value in rule.labels.items())
    )
