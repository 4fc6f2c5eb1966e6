"""A whole controller over the embedded server in memory, with nodes whose kubelet answers Pods by a script.

Nodes keep a clock of their own that runs ahead: each beat of `heart` is one second later. The controller compares
times of a node only with times of the same node, so seconds of verifying pass as fast as the heart beats.
"""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from remediator import clock
from remediator.app import elector
from remediator.controller.run import Controller
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader
from remediator.kube.wire import errors
from remediator.kube.wire.client import Kind
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator.prometheus.alerts import Alertmanagers
from remediator.prometheus.source import Source
from remediator.settings import Settings
from remediator_sim.apiserver import EmbeddedServer
from tests.harness.cluster import MemoryCluster, at_once
from tests.harness.kinds import BUDGETS, CASES, NAMESPACES, NODES, PODS, POLICIES, SECRETS, TEMPLATES
from tests.harness.replica import at_work
from tests.harness.waiting import until

Object = dict[str, Any]
GPU = "GpuLost"
ELSEWHERE = "system-1"  # where Pods with rights in the API have their place
WORKERS = {"matchExpressions": [{"key": "role", "operator": "DoesNotExist"}]}
OPERATIONS, SYSTEM = names.OPERATIONS_NAMESPACE, names.SYSTEM_NAMESPACE
BEAT = 0.02
MOST_AHEAD = timedelta(minutes=4)  # heartbeats further in the future prove nothing; from there nodes beat in real time


@dataclass(frozen=True)
class Answer:
    """What a Pod does: run for ever (`exit` None), or end with this; `does` happens first. It may never start."""

    exit: int | None = 0
    message: str = ""
    does: Callable[["ControllerHarness", str], Awaitable[None]] | None = None
    starts: bool = True


async def nothing(harness: "ControllerHarness", node: str) -> None:
    """No effect at all."""


async def reboot(harness: "ControllerHarness", node: str) -> None:
    """A new boot, after which the fault is gone."""
    await harness.boot(node)
    await harness.condition(node, "False")


async def reboot_in_vain(harness: "ControllerHarness", node: str) -> None:
    """A new boot that cures nothing."""
    await harness.boot(node)


async def cure(harness: "ControllerHarness", node: str) -> None:
    """The fault is gone, in the same boot."""
    await harness.condition(node, "False")


DIAGNOSED = Answer(message='{"kernel": "NVRM: Xid 79"}')
DONE, REBOOTED = Answer(message="no pods left"), Answer(exit=137, does=reboot)
RUNS = Answer(exit=None)


async def make_template(cluster: MemoryCluster, name: str, **spec: Any) -> None:
    """Create a template, which drains nothing unless told to."""
    pod = {"spec": {"containers": [{"name": "main", "image": "operations"}]}}
    await cluster.make(TEMPLATES, name, **{"drain": {"strategy": "None"}, "podTemplate": pod} | spec)


@cache
def furnished(namespaces: names.Namespaces) -> EmbeddedServer:
    """A server with CRDs, namespaces and templates; made once in a process, for others to be like it."""
    cluster = MemoryCluster()
    success = {"bootIDChanged": True, "nodeReady": True}
    for space in (namespaces.system, namespaces.operations):
        at_once(cluster.client.create(NAMESPACES, {"metadata": {"name": space}}))
    at_once(make_template(cluster, names.DIAGNOSTICS_TEMPLATE))
    at_once(make_template(cluster, names.DRAIN_TEMPLATE, runOn="Elsewhere"))
    drain = {"strategy": "Evict", "timeout": "30s"}
    at_once(make_template(cluster, "reboot", drain=drain, timeout="20s", success=success))
    at_once(cluster.client.create(NODES, {"metadata": {"name": ELSEWHERE, "labels": {"role": "system"}}}))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    at_once(cluster.client.patch(NODES, ELSEWHERE, {"status": ready}, subresource="status"))
    return cluster.server


class ControllerHarness(MemoryCluster):
    """The server, its nodes, and what was scripted. Answers by template are used up one by one; the last one stays."""

    def __init__(self, namespaces: names.Namespaces | None = None) -> None:
        self.namespaces = namespaces or names.Namespaces()
        super().__init__(EmbeddedServer(like=furnished(self.namespaces)))
        self.answers: dict[str, deque[Answer]] = defaultdict(deque)
        self.dead: set[str] = set()  # nodes whose kubelet ends no Pod
        self.answer(names.DIAGNOSTICS_TEMPLATE, DIAGNOSED)
        self.answer(names.DRAIN_TEMPLATE, DONE)
        self.answer("reboot", REBOOTED)
        self.beating = True
        self.silent: set[str] = set()  # conditions whose detector has stopped
        self.ran: list[str] = []
        self._ahead: dict[str, timedelta] = defaultdict(timedelta)
        self._boots = 1
        self._began: set[str] = set()

    # --- what stands in the cluster --------------------------------------------------------------------------------

    async def template(self, name: str, **spec: Any) -> None:
        """A template; it drains nothing unless told to."""
        await make_template(self, name, **spec)

    async def policy(self, name: str = "gpu-lost", **spec: Any) -> None:
        """A policy on GpuLost that reboots, twice at most, and verifies in a second of the node's time."""
        usual = {
            "mode": "Enforce",
            "nodeSelector": WORKERS,
            "when": [{"condition": GPU, "for": "0s"}],
            "ladder": [{"operation": "reboot", "attempts": 2}],
            "verify": {"settle": "1s", "fresh": "1s", "timeout": "30s"},
            "cooldown": "0s",
        }
        await self.make(POLICIES, name, **usual | spec)

    async def budget(self, name: str, most: int | str) -> None:
        """A budget over all nodes but that for Pods with rights in the API."""
        await self.make(BUDGETS, name, selector=WORKERS, maxUnavailable=most)

    # --- nodes -----------------------------------------------------------------------------------------------------

    async def node(self, name: str, gpu: str = "False", **labels: str) -> None:
        """A node that is Ready, with GpuLost as said; labels are those of remediator.dev/."""
        marks = {f"{names.GROUP}/{key}": value for key, value in labels.items()}
        await self.client.create(NODES, {"metadata": {"name": name, "labels": marks}})
        await self._node_status(name, {"nodeInfo": {"bootID": "boot-1"}})
        await self.condition(name, "True", "Ready")
        await self.condition(name, gpu)

    async def condition(self, node: str, status: str, type: str = GPU, since: datetime | None = None) -> None:
        """Let a condition turn. True is stamped with the real time, so that a tolerance may be over."""
        turned = since or (now() if status == "True" else self._clock(node))
        said = {"type": type, "status": status, "reason": "Said", "message": f"{type} is {status}"}
        times = {"lastTransitionTime": stamp(turned), "lastHeartbeatTime": stamp(self._clock(node))}
        await self._node_status(node, {"conditions": [said | times]})

    def set_clock(self, node: str, ahead: timedelta) -> None:
        """How far the node's clock, which stamps its heartbeats, is before ours."""
        self._ahead[node] = ahead

    async def boot(self, node: str) -> None:
        """Another bootID."""
        self._boots += 1
        await self.report_boot(node)

    async def report_boot(self, node: str) -> None:
        """The bootID of the latest boot, which the API server may have forgotten."""
        await self._node_status(node, {"nodeInfo": {"bootID": f"boot-{self._boots}"}})

    async def machine(self, node: str, machine: str, board: str = "board-1") -> None:
        """What the kubelet says of the machine that it runs on: another one has another board or installation."""
        await self._node_status(node, {"nodeInfo": {"machineID": machine, "systemUUID": board}})

    async def _node_status(self, node: str, status: Object) -> None:
        await self.client.patch(NODES, node, {"status": status}, subresource="status", content_type=STRATEGIC_PATCH)

    def _clock(self, node: str) -> datetime:
        return now() + self._ahead[node]

    async def heart(self) -> None:
        """Every node's conditions are written anew, a second later each time."""
        while True:
            await asyncio.sleep(BEAT)
            for node in self.all(NODES) if self.beating else ():
                name = node["metadata"]["name"]
                if name == ELSEWHERE:
                    continue
                self._ahead[name] = max(self._ahead[name], min(self._ahead[name] + timedelta(seconds=1), MOST_AHEAD))
                beat = {"lastHeartbeatTime": stamp(self._clock(name))}
                written = [one["type"] for one in node.get("status", {}).get("conditions", ())]
                conditions = [{"type": kind} | beat for kind in written if kind not in self.silent]
                with contextlib.suppress(errors.NotFound):
                    await self._node_status(name, {"conditions": conditions})

    # --- Pods ------------------------------------------------------------------------------------------------------

    def answer(self, template: str, *answers: Answer) -> None:
        """What the next Pods of a template do; the last answer stays."""
        self.answers[template] = deque(answers)

    async def kubelets(self) -> None:
        """Run every Pod of ours by its script, and let go of those that are deleted."""
        while True:
            await asyncio.sleep(BEAT)
            for uid in [pod["metadata"]["uid"] for pod in self.pods()]:
                with contextlib.suppress(errors.NotFound):
                    await self._play(uid)

    async def _play(self, uid: str) -> None:
        pod = next((pod for pod in self.pods() if pod["metadata"]["uid"] == uid), None)
        if pod is None:
            return
        meta, phase = pod["metadata"], pod["status"].get("phase")
        if meta["uid"] not in self._began and self._has_secrets(pod):
            self._began.add(meta["uid"])
            await self._begin(pod)
        elif meta.get("deletionTimestamp") and not self._is_on_dead(pod):
            if phase in ("Running", "Pending"):
                await self._end(pod, Answer(exit=143, message="killed"))
            if meta.get("deletionGracePeriodSeconds") != 0:  # else only a finalizer keeps it
                path = PODS.path(meta["name"], self.namespaces.operations)
                await self.client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')

    def forget_pods(self) -> None:
        """Kubelets start each Pod again that the API server still has."""
        self._began.clear()

    def _has_secrets(self, pod: Object) -> bool:
        """Whether what its variables are filled from is there; until then a kubelet waits."""
        sources = [entry.get("valueFrom", {}) for entry in pod["spec"]["containers"][0]["env"]]
        wanted = {source["secretKeyRef"]["name"] for source in sources if source}
        return wanted <= {secret["metadata"]["name"] for secret in self.all(SECRETS)}

    def _is_on_dead(self, pod: Object) -> bool:
        return pod["spec"].get("nodeName") in self.dead

    async def _begin(self, pod: Object) -> None:
        template, name = pod["metadata"]["labels"][names.OPERATION_LABEL], pod["metadata"]["name"]
        env = environment(pod)
        script = self.answers[template]
        answer = script.popleft() if len(script) > 1 else script[0]
        if not answer.starts:
            return
        await self._pod_status(name, {"phase": "Running"})
        self.ran.append(f"{template} {env['NODE_NAME']}")
        if answer.does is not None:
            await answer.does(self, env["NODE_NAME"])
        if answer.exit is not None:
            await self._end(pod, answer)

    async def finish(self, template: str, answer: Answer = DONE) -> None:
        """Let the first Pod of this template that runs end, once one runs."""
        pod = (await until(lambda: self.pods(template, "Running")))[0]
        if answer.does is not None:
            await answer.does(self, environment(pod)["NODE_NAME"])
        await self._end(pod, answer)

    async def _end(self, pod: Object, answer: Answer) -> None:
        phase = "Succeeded" if answer.exit == 0 else "Failed"
        ended = {"terminated": {"exitCode": answer.exit, "message": answer.message, "reason": "Ended"}}
        state = {"name": pod["spec"]["containers"][0]["name"], "state": ended}
        await self._pod_status(pod["metadata"]["name"], {"phase": phase, "containerStatuses": [state]})

    async def _pod_status(self, name: str, status: Object) -> None:
        await self.client.patch(
            PODS, name, {"status": status}, namespace=self.namespaces.operations, subresource="status"
        )

    # --- looking ---------------------------------------------------------------------------------------------------

    def all(self, kind: Kind[Any]) -> list[Object]:
        """All objects of a kind as they are stored now."""
        entries = self.server.cluster.store.collection(self.storage(kind)).entries
        return [entry.copy() for entry in entries.values()]

    def storage(self, kind: Kind[Any]) -> str:
        """The name under which the server stores a kind."""
        return f"{kind.plural}.{kind.group}" if kind.group else kind.plural

    def pods(self, template: str = "", phase: str = "") -> list[Object]:
        """The operation Pods, of one template and in one phase if given."""
        pods = [pod for pod in self.all(PODS) if pod["metadata"]["namespace"] == self.namespaces.operations]
        pods = [pod for pod in pods if template in ("", pod["metadata"]["labels"][names.OPERATION_LABEL])]
        return [pod for pod in pods if phase in ("", pod.get("status", {}).get("phase"))]

    def look(self, node: str) -> Object:
        """One node."""
        return next(found for found in self.all(NODES) if found["metadata"]["name"] == node)

    def taints(self, node: str) -> list[str]:
        """The keys of a node's taints, those of Kubernetes itself left out."""
        found = [taint["key"] for taint in self.look(node).get("spec", {}).get("taints") or ()]
        return [key for key in found if not key.startswith("node.kubernetes.io/")]

    def cases(self, node: str) -> list[Object]:
        """The cases of a node, oldest first."""
        return [case for case in self.all(CASES) if case["spec"]["nodeName"] == node]

    def phase(self, node: str) -> str:
        """The phase of a node's newest case, "" where there is none."""
        found = self.cases(node)
        return found[-1].get("status", {}).get("phase", "") if found else ""

    def reasons(self, node: str) -> list[str]:
        """What stands against a node's newest case."""
        found = self.cases(node)
        return [one["reason"] for one in found[-1].get("status", {}).get("blockedBy") or ()] if found else []

    def story(self, node: str) -> list[str]:
        """The reasons in the timeline of a node's newest case."""
        return [entry["reason"] for entry in self.cases(node)[-1]["status"]["timeline"]]

    def claims(self) -> list[str]:
        """The nodes that any ledger names."""
        return [claim["node"] for one in self.all(BUDGETS) for claim in one.get("status", {}).get("claims") or ()]

    def clean(self, node: str) -> bool:
        """Whether nothing of ours is left on a node but the memory of its case."""
        spec, meta = self.look(node).get("spec", {}), self.look(node)["metadata"]
        ours_left = [key for key in self.taints(node) if key.startswith(names.GROUP)]
        held = any(case["metadata"].get("finalizers") for case in self.cases(node))
        noted = names.CORDONED_BY in (meta.get("annotations") or {})
        return not (ours_left or held or noted or node in self.claims() or self.pods() or spec.get("unschedulable"))

    def ended(self, node: str, phase: str) -> bool:
        """Whether a node's newest case has ended so, with nothing of ours left."""
        return self.phase(node) == phase and self.clean(node)

    async def change(self, kind: Kind[Any], name: str, **body: Any) -> None:
        """What a person does with kubectl patch."""
        await self.client.patch(kind, name, body)

    async def edit_case(self, node: str, **spec: Any) -> None:
        """What a person says about the newest case of a node."""
        await self.change(CASES, self.cases(node)[-1]["metadata"]["name"], spec=spec)

    async def delete_case(self, node: str) -> None:
        """What a person does to cancel it."""
        await self.client.delete(CASES, self.cases(node)[-1]["metadata"]["name"])

    async def quiet(self) -> None:
        """Wait until the controller has let some beats pass without a write of its own."""

        def writes() -> int:
            return sum(not one.path.startswith("/api/v1/nodes") for one in self.server.audit)

        async def calm() -> bool:
            before = writes()
            await asyncio.sleep(10 * BEAT)
            return before == writes()

        await until(calm)


def environment(pod: Object) -> dict[str, str]:
    """What a Pod's program is told, as far as the Pod says it."""
    return {entry["name"]: entry.get("value", "") for entry in pod["spec"]["containers"][0]["env"]}


def now() -> datetime:
    """The real time, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def stamp(at: datetime) -> str:
    """As Kubernetes writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def running(
    harness: ControllerHarness,
    identity: str = "one",
    *,
    beside: Callable[[Informers, Leader], Any] | None = None,
    source: Source | None = None,
    alertmanagers: Alertmanagers | None = None,
    **settings: Any,
) -> AsyncIterator[Controller]:
    """A controller at work, until the block is left; `beside` makes what else the replica runs, `source` answers
    what policies want confirmed, `alertmanagers` list which alerts fire.
    """
    told = {
        "breaker": Breaker(starts=100),
        "namespace": harness.namespaces.system,
        "operations_namespace": harness.namespaces.operations,
    } | settings
    asked = Settings(identity=identity, **told)
    informers = Informers(harness.client, clock.SYSTEM, asked.namespaces)
    leader = Leader(elector(harness.client, asked, clock.SYSTEM, informers.list_anew), clock.SYSTEM)
    controller = Controller(harness.client, asked, informers, leader, clock.SYSTEM, source, alertmanagers)
    if beside is not None:
        beside(informers, leader)
    async with at_work(informers.run(), leader.run()):
        yield controller


@asynccontextmanager
async def controller_harness(namespaces: names.Namespaces | None = None) -> AsyncIterator[ControllerHarness]:
    """A server with CRDs and templates, whose nodes beat and whose kubelets work."""
    harness = ControllerHarness(namespaces)
    tasks = [asyncio.ensure_future(work) for work in (harness.heart(), harness.kubelets())]
    try:
        yield harness
    finally:
        for task in tasks:
            task.cancel()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(found, asyncio.CancelledError), found


__all__ = ["Answer", "ControllerHarness", "controller_harness", "running", "until"]
