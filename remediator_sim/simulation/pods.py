"""What kubelets, the scheduler and the garbage collector do with Pods, as models."""

import asyncio
import contextvars
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from math import inf
from random import Random
from typing import TypeVar

from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.apiserver.store import Change, Listener
from remediator_sim.invariants.contract import moment
from remediator_sim.kubelet.binder import is_wanted
from remediator_sim.kubelet.node import GPU
from remediator_sim.kubelet.podstatus import EXPIRED
from remediator_sim.plain import PODS, Object, of_node
from remediator_sim.simulation.clock import true_time, until
from remediator_sim.simulation.node import NodeModel, Note
from remediator_sim.simulation.programs import PROGRAMS, WATCHDOG, Ended, Run, plainly

T = TypeVar("T")
RETRY = 2.0  # seconds
KILLED, LOST = 143, 137  # exit codes: ended by SIGTERM, and with the machine
TEMPLATE = "remediator.dev/operation"
USUAL = plainly(5, 30)
# The scheduler that the order of a watchdog names; how long before the end of its time it has to end.
ORDERED_BY, MARGIN = "remediator-watchdog", 60.0


def _variables(pod: Object) -> dict[str, str]:
    """What the container of a Pod is told."""
    return {entry["name"]: entry.get("value", "") for entry in pod["spec"]["containers"][0].get("env") or ()}


def _gpus(pod: Object) -> int:
    """How many GPUs it asks for."""
    limits = (container.get("resources", {}).get("limits", {}) for container in pod["spec"]["containers"])
    return sum(int(each.get(GPU, 0)) for each in limits)


def _seconds(pod: Object) -> float | None:
    """How long a Pod may run: from now on, or, of an order, since it was made, and it has to end a little earlier."""
    seconds: float | None = pod["spec"].get("activeDeadlineSeconds")
    if pod["spec"].get("schedulerName") != ORDERED_BY or seconds is None:
        return seconds
    return seconds - MARGIN - (true_time() - moment(pod["metadata"]["creationTimestamp"])).total_seconds()


class PodModels:
    """Plays every Pod of the cluster. `mark` is that of Run, by node.

    `stuck` are nodes whose kubelets start no Pod now, `without_image` say why; for what works on those in `unplaced`
    the scheduler finds no node. In `endless` are nodes whose kubelets end no Pod of users that runs.
    """

    def __init__(
        self,
        server: EmbeddedServer,
        client: Client,
        nodes: dict[str, NodeModel],
        chance: Random,
        note: Note,
        mark: Callable[[str], object],
    ) -> None:
        self._server, self._client, self._nodes, self._chance, self._note = server, client, nodes, chance, note
        self._mark = mark
        self.stuck: set[str] = set()
        self.without_image: set[str] = set()
        self.unplaced: set[str] = set()
        self.endless: set[str] = set()
        self._deleted: dict[str, asyncio.Event] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._listener = Listener(None, self._hear, lambda: None)
        server.cluster.store.collection("pods").listen(self._listener)

    def _hear(self, change: Change) -> None:
        meta = change.entry.obj["metadata"]
        uid = meta["uid"]
        if change.type == "DELETED":
            if life := self._lives.pop(uid, None):
                life.cancel()
            self._deleted.pop(uid, None)
            return
        if uid not in self._lives:
            self._begin(meta, uid)
        if meta.get("deletionTimestamp"):
            self._deleted[uid].set()

    def restored(self) -> None:
        """What is stored was set back: kubelets end what they run for Pods that are gone, and go on with the others."""
        entries = self._server.cluster.store.collection("pods").entries.values()
        standing = {entry.obj["metadata"]["uid"]: entry.obj["metadata"] for entry in entries}
        for uid in [uid for uid in self._lives if uid not in standing]:
            self._lives.pop(uid).cancel()
            self._deleted.pop(uid, None)
        for uid, meta in standing.items():
            if uid not in self._lives:
                self._begin(meta, uid)

    def _begin(self, meta: Object, uid: str) -> None:
        self._deleted[uid] = asyncio.Event()
        life = self._live(meta["namespace"], meta["name"], uid)  # in no process of who made it: it outlives that
        self._lives[uid] = asyncio.get_running_loop().create_task(life, context=contextvars.Context())

    def _look(self, namespace: str, name: str) -> Object:
        entry = self._server.cluster.find("pods", namespace, name)
        return entry.obj if entry else {"metadata": {}, "spec": {}, "status": {}}

    async def _live(self, namespace: str, name: str, uid: str) -> None:
        """The life of one Pod, from its making until nothing of it is left."""
        await asyncio.sleep(self._chance.uniform(0.1, 1.5))
        pod = self._look(namespace, name)
        ordered = pod["spec"].get("schedulerName") == ORDERED_BY
        if not ordered:
            await self._bind(namespace, name)
            pod = self._look(namespace, name)
        node = self._nodes.get(_variables(pod)["NODE_NAME"] if ordered else pod["spec"].get("nodeName", ""))
        if node is None:
            return
        if pod["status"].get("phase") == "Running":
            await self._report(pod, Ended(LOST, "its container is not there"))
        if pod["status"].get("phase") == "Pending":
            await (self._until_taken if ordered else self._until_started)(node, pod, uid)
            if not self._deleted[uid].is_set():
                await self._play(node, pod, uid)
        await self._deleted[uid].wait()
        await node.booted.wait()
        await asyncio.sleep(self._chance.uniform(0.2, 2.0))
        path = PODS.path(name, namespace)
        body = b'{"gracePeriodSeconds": 0, "preconditions": {"uid": "%s"}}' % uid.encode()
        await self._patiently(lambda: self._client.transport.request("DELETE", path, body=body))

    async def _bind(self, namespace: str, name: str) -> None:
        """The scheduler: a Pod without a node gets one that is Ready and takes Pods."""
        while not (pod := self._look(namespace, name))["spec"].get("nodeName"):
            unplaced = bool(pod["metadata"]) and _variables(pod).get("NODE_NAME") in self.unplaced
            fit = [node for node in self._nodes if not unplaced and self._fits(node, pod)]
            if fit and pod["metadata"]:
                target = {"apiVersion": "v1", "kind": "Node", "name": self._chance.choice(fit)}
                body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
                path = f"{PODS.path(name, namespace)}/binding"
                with suppress(errors.ApiError):
                    await self._client.send("POST", path, dict, body)
                    continue
            await asyncio.sleep(RETRY)

    def _fits(self, name: str, pod: Object) -> bool:
        entry = self._server.cluster.find("nodes", "", name)
        if entry is None or entry.obj["spec"].get("unschedulable") or not is_wanted(pod, entry.obj):
            return False
        if not self._finds_gpus(name, entry.obj, pod):
            return False
        return not any(taint["effect"] != "PreferNoSchedule" for taint in entry.obj["spec"].get("taints") or ())

    def _finds_gpus(self, name: str, node: Object, pod: Object) -> bool:
        """Whether a node has as many GPUs that no other Pod holds as a Pod asks for."""
        if not (wanted := _gpus(pod)):
            return True
        others = of_node([entry.obj for entry in self._server.cluster.store.collection("pods").entries.values()], name)
        held = sum(_gpus(each) for each in others if each["status"].get("phase") not in ("Succeeded", "Failed"))
        return held + wanted <= int(node["status"].get("allocatable", {}).get(GPU, 0))

    async def _until_started(self, node: NodeModel, pod: Object, uid: str) -> None:
        await asyncio.sleep(self._chance.uniform(0.5, 5.0))
        deleted = self._deleted[uid]
        if node.name in self.without_image and node.alive:
            await self._until_pulled(node, pod, deleted)
        await until(lambda: deleted.is_set() or (node.alive and node.name not in self.stuck), 5.0)

    async def _until_pulled(self, node: NodeModel, pod: Object, deleted: asyncio.Event) -> None:
        """Its kubelet pulls no image, says so, and ends the Pod when its time is over, as one that runs."""
        state = {"waiting": {"reason": "ImagePullBackOff", "message": "no such host"}}
        containers = [{"name": pod["spec"]["containers"][0]["name"], "state": state}]
        await self._status(pod, {"phase": "Pending", "containerStatuses": containers})
        clock = asyncio.get_running_loop().time
        end = clock() + (_seconds(pod) or inf)

        def waits() -> bool:
            return node.alive and node.name in self.without_image and not deleted.is_set()

        await until(lambda: not waits() or clock() >= end, 5.0)
        if waits():
            await self._status(pod, {"phase": "Failed", "containerStatuses": containers, **EXPIRED})
            await deleted.wait()

    async def _until_taken(self, node: NodeModel, pod: Object, uid: str) -> None:
        """The watchdog of the node looks every few seconds, whatever its kubelet does. What has little time left it
        does not take; the controller gives that up, and deletes it.
        """
        deleted, seconds = self._deleted[uid], pod["spec"]["activeDeadlineSeconds"]
        made = moment(pod["metadata"]["creationTimestamp"])
        await asyncio.sleep(self._chance.uniform(0.5, 5.0))
        await until(lambda: deleted.is_set() or node.alive, 5.0)
        if (true_time() - made).total_seconds() > seconds - MARGIN:
            await deleted.wait()

    async def _play(self, node: NodeModel, pod: Object, uid: str) -> None:
        """Run its program to an end: its own, its deadline's, a deletion's, or that of its node."""
        await self._status(pod, {"phase": "Running", "startTime": stamp(true_time())})
        run = self._run(node, pod)
        program = asyncio.ensure_future(self._program(run))
        seconds = _seconds(pod)
        waits = [asyncio.ensure_future(event.wait()) for event in (self._deleted[uid], node.died)]
        try:
            done, _ = await asyncio.wait([program, *waits], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            ended = await self._ended(program, run, waits[1].done())
        finally:
            for future in (program, *waits):
                future.cancel()
        if run is None:
            await until(lambda: node.name not in self.endless, 5.0)
        await node.booted.wait()
        if run is not None:
            self._note(node.name, f"{pod['metadata']['name']} ended with {ended.code}: {ended.message}")
        await self._report(pod, ended, expired=not done)

    async def _ended(self, program: "asyncio.Future[Ended]", run: Run | None, node_died: bool) -> Ended:
        """How it has ended: by itself, with its machine, or by the SIGTERM that it is sent now."""
        sentence = run.sentence if run is not None else ""
        if not program.done() and run is not None and not node_died:
            run.stopped = True
            program.cancel()
            await asyncio.wait([program])
        if program.done() and not program.cancelled():
            return program.result()
        return Ended(LOST if node_died else KILLED, sentence)

    async def _report(self, pod: Object, ended: Ended, expired: bool = False) -> None:
        """`expired`: its kubelet has ended it; of the order of a watchdog no kubelet knows."""
        state = {"terminated": {"exitCode": ended.code, "message": ended.message, "reason": "Ended"}}
        containers = [{"name": pod["spec"]["containers"][0]["name"], "state": state}]
        late = expired and pod["spec"].get("schedulerName") != ORDERED_BY
        phase = "Failed" if ended.code or late else "Succeeded"
        await self._status(pod, {"phase": phase, "containerStatuses": containers, **(EXPIRED if late else {})})

    def _run(self, node: NodeModel, pod: Object) -> Run | None:
        """What is started for a Pod of ours; None for one of somebody else."""
        template = pod["metadata"].get("labels", {}).get(TEMPLATE)
        if template is None:
            return None
        env = _variables(pod)
        if fixed := WATCHDOG.get(template, ("", {}))[1]:
            env["PARAMETERS"] = json.dumps({**json.loads(env["PARAMETERS"]), **fixed})
        self._note(node.name, f"{pod['metadata']['name']} runs {template} for {env['NODE_NAME']}")
        target, mark = env["NODE_NAME"], partial(self._mark, env["NODE_NAME"])
        return Run(node, self._nodes.get(target), str(template), env, self._client, self._chance, mark=mark)

    async def _program(self, run: Run | None) -> Ended:
        if run is None:
            await asyncio.Event().wait()
        assert run is not None
        name = WATCHDOG.get(run.template, (run.template, {}))[0]
        return await PROGRAMS.get(name, USUAL)(run)

    async def _status(self, pod: Object, status: Object) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        await self._patiently(
            lambda: self._client.patch(PODS, name, {"status": status}, namespace=namespace, subresource="status")
        )

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T | None:
        while True:
            try:
                return await call()
            except errors.NotFound:
                return None
            except errors.ApiError:
                await asyncio.sleep(RETRY)

    async def collect(self, node: str) -> None:
        """The garbage collector: Pods of a node that is gone are taken away."""
        for entry in list(self._server.cluster.store.collection("pods").entries.values()):
            if entry.obj["spec"].get("nodeName") == node:
                meta = entry.obj["metadata"]
                path = PODS.path(meta["name"], meta["namespace"])
                await self._client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')
