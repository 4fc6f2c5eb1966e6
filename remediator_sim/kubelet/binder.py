"""A tiny scheduler for the embedded API server: binds Pods to nodes that take them, and says why it cannot.

It looks at readiness, cordons, taints, node selectors, required node affinity and GPUs; not at other resources. Like
kube-scheduler it asks an extender about Pods that want GPUs, and goes on without one that does not answer.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from remediator.clock import SYSTEM, Clock
from remediator.core import names
from remediator.kube.runtime.reflector import Reflector
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.kubelet.node import GPU
from remediator_sim.plain import NODES, PAUSE, PODS, Object, condition_status, whole
from remediator_sim.stamps import transitioned

SCHEDULER = "default-scheduler"
REPELLING = ("NoSchedule", "NoExecute")
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
PASS_PAUSE = 0.05  # seconds; many events make one pass
log = logging.getLogger(__name__)


class Bind(NamedTuple):
    """This node takes the Pod."""

    node: str


class Unschedulable(NamedTuple):
    """No node takes the Pod now; `message` counts the nodes by reason."""

    message: str


class Advice(NamedTuple):
    """What an extender says of nodes: why it turns some down, and what it gives the others. None is no opinion."""

    refused: Mapping[str, str] = {}
    scores: Mapping[str, int] = {}


NO_ADVICE = Advice()
# Called for each Pod that wants GPUs: the Pod, its node, and the node that it would have without extender, taints and
# cordons of ours, None where it would have none.
OnBind = Callable[[Object, str, Object | None], None]
Extender = Callable[[Object, Sequence[str]], Awaitable[Advice]]


def choose(
    pod: Mapping[str, Any], nodes: Sequence[Object], load: Mapping[str, int], advice: Advice = NO_ADVICE
) -> Bind | Unschedulable:
    """The node that takes `pod`: of all that may, the best by advice, with the fewest Pods in `load`, first by name."""
    refusals = {node["metadata"]["name"]: refusal(pod, node) for node in nodes}
    refusals |= {name: why for name, why in advice.refused.items() if not refusals[name]}
    open_nodes = [name for name, why in refusals.items() if not why]
    if open_nodes:
        return Bind(min(open_nodes, key=lambda name: (-advice.scores.get(name, 0), load.get(name, 0), name)))
    counts = Counter(refusals.values())
    reasons = ", ".join(f"{count} node(s) {why}" for why, count in sorted(counts.items()))
    return Unschedulable(f"0/{len(nodes)} nodes are available: {reasons or 'there are none'}.")


def choose_alone(
    pod: Mapping[str, Any], nodes: Sequence[Object], load: Mapping[str, int], advice: Advice
) -> Object | None:
    """The node that takes `pod` where nobody taints or cordons sick nodes, None for none."""
    chosen = choose(pod, [_unmarked(node) for node in nodes], load, advice)
    name = chosen.node if isinstance(chosen, Bind) else ""
    return next((node for node in nodes if node["metadata"]["name"] == name), None)


def _unmarked(node: Object) -> Object:
    spec = node.get("spec", {})
    cordoned = names.CORDONED_BY in node["metadata"].get("annotations", {})
    taints = [taint for taint in spec.get("taints", ()) if not _is_of_mark(taint, cordoned)]
    return {**node, "spec": {**spec, "taints": taints, "unschedulable": spec.get("unschedulable") and not cordoned}}


def _is_of_mark(taint: Mapping[str, str], cordoned: bool) -> bool:
    """Whether a taint comes from us, or from a cordon of ours."""
    return taint["key"].startswith(f"{names.GROUP}/") or (cordoned and taint["key"] == CORDONED["key"])


def gpus(pod: Mapping[str, Any]) -> int:
    """How many GPUs a Pod holds."""
    limits = (container.get("resources", {}).get("limits", {}) for container in pod["spec"]["containers"])
    return sum(int(limit.get(GPU, 0)) for limit in limits)


def full(pod: Mapping[str, Any], nodes: Sequence[Object], used: Mapping[str, int]) -> dict[str, str]:
    """The nodes that have too few GPUs left, each with why."""
    wanted = gpus(pod)
    left = {node["metadata"]["name"]: _allocatable(node) - used.get(node["metadata"]["name"], 0) for node in nodes}
    return {name: f"had insufficient {GPU}" for name, free in left.items() if free < wanted} if wanted else {}


def _allocatable(node: Mapping[str, Any]) -> int:
    return int(node.get("status", {}).get("allocatable", {}).get(GPU, 0))


def refusal(pod: Mapping[str, Any], node: Object) -> str:
    """Why `node` does not take `pod`; empty if it does."""
    return next((why for why, holds in CHECKS if not holds(pod, node)), "")


def _is_ready(pod: Mapping[str, Any], node: Object) -> bool:
    return condition_status(node, "Ready") == "True"


def _is_open(pod: Mapping[str, Any], node: Object) -> bool:
    return not node.get("spec", {}).get("unschedulable") or _tolerated(pod, CORDONED)


def _is_selected(pod: Mapping[str, Any], node: Object) -> bool:
    return bool(pod["spec"].get("nodeSelector", {}).items() <= node["metadata"].get("labels", {}).items())


def is_wanted(pod: Mapping[str, Any], node: Object) -> bool:
    """Whether the Pod's required node affinity chooses the node."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_term_holds(term, node) for term in required["nodeSelectorTerms"])


def _is_tolerated(pod: Mapping[str, Any], node: Object) -> bool:
    taints = node.get("spec", {}).get("taints", ())
    return all(_tolerated(pod, taint) for taint in taints if taint["effect"] in REPELLING)


Check = Callable[[Mapping[str, Any], Object], bool]
CHECKS: tuple[tuple[str, Check], ...] = (
    ("were not ready", _is_ready),
    ("were unschedulable", _is_open),
    ("didn't match the Pod's node selector", _is_selected),
    ("didn't match the Pod's node affinity", is_wanted),
    ("had untolerated taints", _is_tolerated),
)


def _term_holds(term: Mapping[str, Any], node: Object) -> bool:
    # A term without requirements matches no node, as in the API.
    labels, fields = node["metadata"].get("labels", {}), {"metadata.name": node["metadata"]["name"]}
    asked = [(expression, labels) for expression in term.get("matchExpressions", ())]
    asked += [(field, fields) for field in term.get("matchFields", ())]
    return bool(asked) and all(_requirement_holds(one, found) for one, found in asked)


Operator = Callable[[str | None, Sequence[str]], bool]
OPERATORS: Mapping[str, Operator] = {
    "In": lambda value, wanted: value in wanted,
    "NotIn": lambda value, wanted: value not in wanted,
    "Exists": lambda value, wanted: value is not None,
    "DoesNotExist": lambda value, wanted: value is None,
}


def _requirement_holds(requirement: Mapping[str, Any], fields: Mapping[str, str]) -> bool:
    holds = OPERATORS.get(requirement["operator"])
    return holds is not None and holds(fields.get(requirement["key"]), requirement.get("values", ()))


def _tolerated(pod: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in pod["spec"].get("tolerations", ()))


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    key, effect = toleration.get("key", ""), toleration.get("effect", "")
    if effect not in ("", taint["effect"]) or key not in ("", taint["key"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(key) and str(toleration.get("value", "")) == taint.get("value", "")


class Binder:
    """Binds the Pods of the default scheduler. `run` it as a task; cancel it to end it."""

    def __init__(
        self,
        client: Client,
        *,
        extender: Extender | None = None,
        on_bind: OnBind | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._client, self._extender, self._on_bind, self._clock = client, extender, on_bind, clock
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """One pass over all waiting Pods whenever a Pod waits or a node changes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(PODS, "spec.nodeName=").run())
            group.create_task(self._follow(NODES, "").run())
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._pass()
                await asyncio.sleep(PASS_PAUSE)

    def _follow(self, kind: Kind[Object], fields: str) -> Reflector[Object, Object]:
        return Reflector(self._client, kind, whole, lambda key, old, new: self._wake.set(), fields=fields)

    async def _pass(self) -> None:
        try:
            waiting = await self._client.list_all(PODS, fields="spec.nodeName=")
            ours = [pod for pod in waiting if _is_ours(pod)]
            if ours:
                await self._place(ours)
        except errors.ApiError as error:
            log.info("binder: again in %s s: %s", PAUSE, error)
            await asyncio.sleep(PAUSE)
            self._wake.set()

    async def _place(self, waiting: Iterable[Object]) -> None:
        nodes = await self._client.list_all(NODES)
        bound = [pod for pod in await self._client.list_all(PODS) if _is_placed(pod)]
        load = Counter(pod["spec"]["nodeName"] for pod in bound)
        used = Counter(dict.fromkeys(load, 0))
        for pod in bound:
            used[pod["spec"]["nodeName"]] += gpus(pod)
        for pod in waiting:
            chosen = choose(pod, nodes, load, await self._advice(pod, nodes, used))
            if isinstance(chosen, Bind):
                alone = choose_alone(pod, nodes, load, Advice(full(pod, nodes, used)))
                load[chosen.node] += 1
                used[chosen.node] += gpus(pod)
                await self._bind(pod, chosen.node)
                if self._on_bind is not None and gpus(pod):
                    self._on_bind(pod, chosen.node, alone)
            else:
                await self._tell(pod, chosen.message)

    async def _advice(self, pod: Object, nodes: Sequence[Object], used: Mapping[str, int]) -> Advice:
        refused = full(pod, nodes, used)
        candidates = [node["metadata"]["name"] for node in nodes if not refusal(pod, node)]
        candidates = [name for name in candidates if name not in refused]
        if self._extender is None or not gpus(pod) or not candidates:
            return Advice(refused)
        advice = await self._extender(pod, candidates)
        return Advice({**refused, **advice.refused}, advice.scores)

    async def _bind(self, pod: Object, node: str) -> None:
        meta = pod["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._client.send("POST", PODS.path(meta["name"], meta["namespace"], "binding"), dict, body)

    async def _tell(self, pod: Object, message: str) -> None:
        meta, before = pod["metadata"], pod.get("status", {}).get("conditions", [])
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        if any(condition.items() <= earlier.items() for earlier in before):
            return
        body = {
            "metadata": {"uid": meta["uid"]},
            "status": {"conditions": transitioned(before, [condition], self._clock.wall())},
        }
        await self._client.patch(
            PODS,
            meta["name"],
            body,
            namespace=meta["namespace"],
            subresource="status",
            content_type=STRATEGIC_PATCH,
        )


def _is_placed(pod: Mapping[str, Any]) -> bool:
    """Whether the Pod takes up room on a node."""
    return bool(pod["spec"].get("nodeName")) and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def _is_ours(pod: Mapping[str, Any]) -> bool:
    """Whether this Pod waits for us: not being deleted, not held by a gate, not another scheduler's."""
    spec = pod["spec"]
    return (
        spec.get("schedulerName", SCHEDULER) == SCHEDULER
        and not spec.get("schedulingGates")
        and not pod["metadata"].get("deletionTimestamp")
        and pod.get("status", {}).get("phase", "Pending") not in ("Succeeded", "Failed")
    )
