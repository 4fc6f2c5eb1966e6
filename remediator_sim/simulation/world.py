"""One seed at work: a server, a fleet, two replicas, and the steps of the plan."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from remediator.core.breaker import Breaker
from remediator.core.device_count import DEVICES_MISSING
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.node_versions import NODE_DRIFT
from remediator.core.reboot_loop import REBOOT_LOOP
from remediator.core.stuck_pods import STUCK_PODS
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Key
from remediator_sim.invariants.contract import (
    CASES,
    INVENTORIES,
    LEASES,
    OPERATIONS,
    OURS,
    PAUSED,
    POLICIES,
    REQUESTS,
    SYSTEM,
    ended,
    finished,
    name,
    part,
    phase,
    uid,
)
from remediator_sim.invariants.event import BAD, HARM, LED, RENEWED, Event
from remediator_sim.invariants.tracked import Limits
from remediator_sim.plain import NODES, PODS
from remediator_sim.simulation import cluster, looks, variants
from remediator_sim.simulation.alerts import AlertList, Alertmanager
from remediator_sim.simulation.backups import Backups
from remediator_sim.simulation.clock import HostClock, now, until
from remediator_sim.simulation.ending import SeedEnding, ending_of
from remediator_sim.simulation.fault import KNOWN
from remediator_sim.simulation.fleet import set_up
from remediator_sim.simulation.hosts import ReplicaHost
from remediator_sim.simulation.hub import Hub
from remediator_sim.simulation.intervals import set_intervals, stretch
from remediator_sim.simulation.journal import Journal
from remediator_sim.simulation.judge import Judge
from remediator_sim.simulation.leading import Leading
from remediator_sim.simulation.node import NodeModel
from remediator_sim.simulation.plan import Plan, Step
from remediator_sim.simulation.pods import PodModels
from remediator_sim.simulation.probes import probe
from remediator_sim.simulation.replica import SOUND, ReplicaModel
from remediator_sim.simulation.reporters import Reporters
from remediator_sim.simulation.schedule import KINDS
from remediator_sim.simulation.second_source import SecondSource, confirm
from remediator_sim.simulation.slurm import Slurm
from remediator_sim.simulation.steps.clocks import REPLICA_CLOCK
from remediator_sim.simulation.telling import told
from remediator_sim.simulation.wire import Network, Wire, WireFault
from remediator_sim.simulation.work import Trainers

KUBELETS = "kube-node-lease"
# Conditions that no detector writes
OF_OTHERS = {"Ready", DEVICES_MISSING, IDLE_TEST_FAILED, NODE_DRIFT, REBOOT_LOOP, STUCK_PODS}
ATTACHMENTS = "volumeattachments.storage.k8s.io"
LONGEST, REST = 9.0 * 3600, 60.0  # seconds that cases may take after the last step, and between two looks
# Seconds for which a case waits for one and the same thing: by then its policy's longest time is over, and a person
# was told that it is held long.
STILL = 3660.0
LOOK = 5.0  # seconds between two looks at who leads
FAR, SELDOM = 6.0, 3.0  # from that stretch of intervals on, no step is near: then is looked so many times as seldom
TICKETS = 7200.0  # seconds that issues may take after the last case
BUSY, PROVES = ("Draining", "Operating", "Verifying", ""), ("Verifying",)
READ_BY_DRAINS = ("pods", "namespaces", CASES, OPERATIONS, POLICIES)
LIMITS = Limits(
    Breaker().starts,
    Breaker().window,
    bound=timedelta(hours=4),
    settle=timedelta(minutes=40),
    grace=timedelta(seconds=20),
    silence=timedelta(seconds=100),  # a watch says nothing for 75 s before it is opened anew
)


def _limits(plan: Plan) -> Limits:
    """Where clocks of replicas are wrong, one may be slow by what still leads, and the next one fast."""
    wrong = any(step.kind == REPLICA_CLOCK for step in plan.steps)
    clocks = timedelta(seconds=2 * SOUND if wrong else 0)
    return replace(LIMITS, clocks=clocks, quiet=variants.quiet(plan).period)


def where_it_is(case: Obj | None) -> object:
    """How far a case is, and what it waits for; not for how long, which it says now and then. Comparable."""
    reasons = [block["reason"] for block in part(case, "status").get("blockedBy") or ()]
    return part(case, "spec"), phase(case) if case else "", part(case, "status").get("attempts"), reasons


@dataclass(frozen=True, slots=True)
class SeedOutcome:
    """What came of one seed."""

    plan: Plan
    journal: str
    broken: tuple[str, ...]
    checks: Mapping[str, int]
    requests: int
    ending: SeedEnding


class World:
    """Everything that one seed is about. `run` it once, in a VirtualLoop."""

    def __init__(self, plan: Plan) -> None:
        random.seed(plan.seed)  # the product's own jitter
        self._renewals = 0
        self.plan, self.journal, self.network, self.ended = plan, Journal(), Network(), False
        self.armed_crashes = 0  # crashes that wait for their request
        self.clock = HostClock()
        self.server = self._fresh_server()
        self.looks = looks.Looks(self.server.cluster.store)
        self._chance = Random(f"world {plan.seed}")
        self.client = self._new_client()
        self.broken: list[str] = []
        self.judge = self._new_judge()
        if variants.REQUESTS in plan.shows:
            self.judge.follow(*REQUESTS)
        if variants.IDLE_TESTS in plan.shows:
            self.judge.follow(INVENTORIES)
        if variants.NODE_LEASES in plan.shows:
            self.judge.follow(LEASES)
        self.leading = Leading(self.server.cluster, self.clock, self._led)
        self.hub = Hub(self.judge.issues, self.note)
        self.conditions = sorted({KNOWN[name][0] for name, _ in plan.policies} - OF_OTHERS)
        self.nodes = {name: self._node(name) for name in (*plan.nodes, *cluster.SYSTEM)}
        self.pods = PodModels(self.server, self.client, self.nodes, self._chance, self.note, self._mark)
        self.second_source = SecondSource(self.nodes, lambda *about: self.judge.confirmed(*about))
        self.trainers = Trainers(self.server, self.client, self.plan.seed)
        self.slurm = Slurm(self.server, self.client, self.plan.seed)
        self.reporters = Reporters(self.server, self.client, {name: self.nodes[name] for name in plan.nodes})
        self.replicas = {name: self._replica(name) for name in ("A", "B")}
        self.backups = Backups(self.server.cluster.store)
        self.mends: list[Callable[[], None]] = []  # of objects that could not be read for a while
        self.alerts = Alertmanager(list(self.replicas.values()), Random(f"alerts {plan.seed}"), self.note)
        self._busy: dict[str, set[str]] = {name: set() for name in self.nodes}
        self._proves: dict[str, set[str]] = {}  # cases whose node has to show that it is well, by node
        self._handed: dict[str, set[str]] = {}  # cases that a person has, by node
        self._wrote: defaultdict[str, float] = defaultdict(float)  # since when each case is where it is

    # --- of what it is made: a plane that is not virtual overrides these ---------------------------------------------

    def _fresh_server(self) -> EmbeddedServer:
        return cluster.fresh(self.clock.clock, self.plan.seed)

    def _new_client(self) -> Client:
        return Client(Wire(self.server.transport(), self.network, Random(f"wire {self.plan.seed}"), lambda: None))

    def _new_judge(self) -> Judge:
        return Judge(self.server.cluster, _limits(self.plan), self._hear, self._report)

    async def settle(self) -> None:
        """Wait until everything that was written is seen."""

    def _mark(self, node: str) -> object:
        """Equal to an earlier one where all that a drain of the node reads is as it was then."""
        store = self.server.cluster.store
        others = [store.collection(kind).newest for kind in READ_BY_DRAINS]
        return self.network.away, store.collection("nodes").entries.get(("", node)), others

    def _node(self, name: str) -> NodeModel:
        gpus = name not in cluster.SYSTEM
        node = NodeModel(name, self.client, self.conditions, self._chance, self.note, gpus=gpus)
        node.board = f"board-of-{name}" if gpus else ""
        node.labels, node.kernel = variants.labels(self.plan, name), variants.kernel(self.plan, name)
        node.on_change = variants.on_change(self.plan)
        if gpus:
            variants.furnish(self.plan, node)
        return node

    def _replica(self, name: str) -> ReplicaHost:
        chance = Random(f"replica {name} {self.plan.seed}")
        return ReplicaModel(
            name,
            self.server,
            self.network,
            self.hub,
            chance,
            self.note,
            self.judge.killed,
            self._crashed,
            self.second_source if self.plan.confirmed else None,
            api_pods=cluster.api_pods(self.plan),
            wrote=self.leading.wrote,
            settings=variants.settings(self.plan),
            alertmanager=lambda *given, **named: AlertList(lambda: self.alerts),
        )

    # --- what is told ------------------------------------------------------------------------------------------------

    def note(self, who: str, text: str) -> None:
        """One more line of the story."""
        self.journal.note(who, text)

    def _report(self, sentence: str) -> None:
        self.broken.append(sentence)
        self.note("JUDGE", sentence)

    def logged(self, level: str, text: str, failed: bool) -> None:
        """What the product has logged: a pass that fails is harm done by one object to all."""
        self.note("log", f"{level}: {text}")
        if failed:
            self.judge.put(HARM, None, {"text": text})

    def _led(self, lease: str, clock: str) -> None:
        self.judge.put(LED, None, {"lease": lease, "clock": clock})

    def _crashed(self, sentence: str) -> None:
        self.judge.put(HARM, None, {"text": sentence})

    def _hear(self, event: Event) -> None:
        for who, text in told(event):
            self.note(who, text)
        if event.kind == CASES:
            self._follow(event)

    def _follow(self, event: Event) -> None:
        """Heartbeats of a node matter while one of its cases does something."""
        node, name = event.obj["spec"]["nodeName"], event.key
        if where_it_is(event.old) != where_it_is(event.new):
            self._wrote[name] = now()
        goes_on = event.new is not None and not ended(event.new)
        for cases, phases in ((self._busy, BUSY), (self._proves, PROVES), (self._handed, ("Escalated",))):
            if goes_on and phase(event.new) in phases:
                cases.setdefault(node, set()).add(name)
            else:
                cases.setdefault(node, set()).discard(name)
        if model := self.nodes.get(node):
            model.wake()

    # --- what steps ask for ------------------------------------------------------------------------------------------

    def look(self, storage: str, name: str) -> Obj:
        """One object as it is stored."""
        entry = self.server.cluster.find(storage, "", name)
        return entry.obj if entry else {"metadata": {}, "spec": {}, "status": {}}

    def policy(self, name: str, mode: str = "Enforce") -> Obj:
        """A policy of the plan, as it is created."""
        second = confirm(KNOWN[name].condition) if name in self.plan.confirmed else None
        ticket = dict(self.plan.tickets).get(name, "Never")
        parts = (self.plan.recurrence, dict(self.plan.specs).get(name, ()), dict(self.plan.gates).get(name, ()))
        more = {word: value for words in parts for word, value in words}
        return cluster.policy(name, mode, ticket, self.plan.seed, second, more)

    def open_cases(self, node: str) -> list[str]:
        """The names of the open cases of a node."""
        return list(self.looks.of(CASES, looks.open_cases).get(node, ()))

    def case_phases(self) -> list[tuple[str, str]]:
        """The node and the phase of every case."""
        return self.looks.of(CASES, looks.case_phases)

    def open_operations(self, node: str) -> list[str]:
        """The names of the operations on a node that have not ended."""
        return list(self.looks.of(OPERATIONS, looks.open_operations).get(node, ()))

    def replica(self, word: str) -> ReplicaHost | None:
        """A replica by its name, or the one that leads ("leader") or does not ("follower") now."""
        if word in self.replicas:
            return self.replicas[word]
        leads = word == "leader"
        return next((model for model in self.replicas.values() if model.is_leader == leads), None)

    def wire(self, word: str) -> Wire | None:
        """How that replica reaches the server, None where it does not run."""
        model = self.replica(word)
        return model.wire if model else None

    def fault(self, word: str, fault: WireFault) -> None:
        """Plan something for the requests of that replica."""
        if wire := self.wire(word):
            wire.faults.append(fault)

    # --- what steps do -----------------------------------------------------------------------------------------------

    def note_bad_write(self) -> None:
        """Note that something was written that cannot be read, or cannot be."""
        self.judge.put(BAD, None, {})

    def write_raw(self, storage: str, key: Key, part: str, value: Obj, *, mended: bool = False) -> None:
        """Write a part of an object as etcd would hold it, whatever the schema says."""
        obj = self.server.cluster.store.collection(storage).entries[key].copy()
        obj[part] = value
        self.note("etcd", f"{storage} {key[1]} {'is mended' if mended else 'cannot be read'}")
        self.server.cluster.put(storage, obj)
        if not mended:
            self.note_bad_write()

    def made_long_ago(self, policy: str) -> None:
        """Let a policy be older than what is new in the release that runs."""
        obj = self.server.cluster.store.collection(POLICIES).entries["", policy].copy()
        obj["metadata"] = obj["metadata"] | {"creationTimestamp": stamp(cluster.MADE)}
        self.server.cluster.put(POLICIES, obj)

    def restore(self, ago: float, jump: int) -> None:
        """Set the server back to its newest backup that is so old; see Backups.restore."""
        self.backups.restore(ago, jump)
        self.network.forget()
        self.judge.restored()
        self.leading.restored()
        self.pods.restored()
        for node in self.nodes.values():
            node.speak()

    async def renew_lease(self, node: str) -> None:
        """A kubelet renews its Lease."""
        self._renewals += 1
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "leaseTransitions": self._renewals}
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        self.server.cluster.put(LEASES, kind | {"metadata": {"name": node, "namespace": KUBELETS}, "spec": spec})
        self.judge.put(RENEWED, None, {"node": node})

    async def attach_volume(self, node: str) -> None:
        """A volume hangs on a node."""
        spec = {"attacher": "csi.example.com", "nodeName": node, "source": {"persistentVolumeName": f"pv-{node}"}}
        kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment"}
        self.server.cluster.put(ATTACHMENTS, kind | {"metadata": {"name": f"volume-{node}"}, "spec": spec})

    def running_pods(self) -> list[tuple[str, str, str]]:
        """Our Pods that run: the node that each works for, its template and its name."""
        return self.looks.of("pods", looks.running_pods)

    def running_tests(self) -> list[tuple[str, str]]:
        """The tests of idle nodes that run: the node of each, and its name."""
        return self.looks.of("pods", looks.running_tests)

    def running_drains(self) -> list[str]:
        """The names of the drain Pods that run."""
        return self.looks.of("pods", looks.running_drains)

    def blocked_drains(self) -> list[str]:
        """The names of the operations whose drain says that something is in the way."""
        return list(self.looks.of(OPERATIONS, looks.blocked_drains))

    def pods_in_the_way(self) -> set[str]:
        """The Pods, namespace/name, that drains name."""
        return {pod["pod"] for pods in self.looks.of(OPERATIONS, looks.blocked_drains).values() for pod in pods}

    async def delete_pod(self, name: str) -> None:
        """Delete a Pod of ours, its grace kept."""
        with suppress(errors.ApiError):
            await self.client.delete(PODS, name, namespace=OURS)

    async def replace_machine(self, name: str, seconds: float) -> None:
        """Take a node away, and register another machine under its name later."""
        node = self.nodes[name]
        if not (node.alive and node.registered):
            return
        node.registered = False
        node.faults.clear()
        with suppress(errors.ApiError):
            await self.client.delete(NODES, name)
        down = asyncio.ensure_future(node.go_down(seconds))
        await asyncio.sleep(min(30.0, seconds / 2))
        await self._answered(lambda: self.pods.collect(name))
        await down
        await self._answered(node.register)

    async def _answered(self, ask: Callable[[], Awaitable[None]]) -> None:
        """Ask again until the server, which may be away, has answered."""
        while not self.ended:
            try:
                await ask()
                return
            except errors.Unavailable:
                await asyncio.sleep(LOOK)

    # --- at work -----------------------------------------------------------------------------------------------------

    async def run(self) -> SeedOutcome:
        """All steps, and what came of them."""
        await set_up(self, self._chance)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in self._parts()]
            await asyncio.sleep(max(0.0, self.plan.until - now()))
            await until(lambda: not self._under_way() or now() > self.plan.until + LONGEST, REST)
            patience = now() + TICKETS
            await until(lambda: self.judge.tickets_at_rest(self.alerts.taken()) or now() > patience, REST)
            self.ended = True
            await self.settle()
            self.alerts.stop()
            self.judge.end(self.alerts.taken())
            for task in tasks:
                task.cancel()
        for model in self.replicas.values():
            model.crash()
        self.hub.close()
        ending = ending_of(self.server.cluster.store)
        checks, requests = self.judge.checks(), len(self.server.audit)
        return SeedOutcome(self.plan, self.journal.text, tuple(self.broken), checks, requests, ending)

    def _under_way(self) -> bool:
        """Whether some case holds its node and is not yet handed to a person, or some operation has not ended.

        What is stopped, as everybody can see, is waited for until nothing of its case has been written for STILL.
        """
        store = self.server.cluster.store
        cases = [entry.obj for entry in store.collection(CASES).entries.values()]
        operations = [entry.obj for entry in store.collection(OPERATIONS).entries.values()]
        still = {uid(case) for case in cases if not ended(case) and self._stands_still(case)}
        busy = {uid(case) for case in cases if not ended(case) and phase(case) in BUSY[:3]}
        running = {operation["spec"].get("caseUID", "") for operation in operations if not finished(operation)} - {""}
        return bool((busy | running) - still)

    def _stands_still(self, case: Obj) -> bool:
        return self.judge.waits(case) and now() - self._wrote[name(case)] >= STILL

    def _parts(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield self.judge.run(self._pace)
        yield self._watch_leaders()
        yield self.backups.run()
        yield probe(self.replicas.values(), self.judge, self._pace)
        yield set_intervals(self)
        if variants.REPORTERS in self.plan.shows:
            yield self.reporters.run()
        for node in self.nodes.values():
            node.busy, node.rebooted = partial(self._is_busy, node.name), self.judge.rebooted
            node.proves, node.handed = partial(self._has_to_prove, node.name), partial(self._is_handed, node.name)
            yield node.run()
            yield node.watch_over()
        for step in self.plan.steps:
            yield self._perform(step)

    def _pace(self) -> float:
        """How many times as seldom as usual something need be looked at: what is written is judged at once."""
        return 1.0 if stretch(self.plan.steps, now()) < FAR else SELDOM

    def _is_busy(self, node: str) -> bool:
        return bool(self._busy[node])

    def _has_to_prove(self, node: str) -> bool:
        return bool(self._proves.get(node))

    def _is_handed(self, node: str) -> bool:
        return bool(self._handed.get(node))

    async def _watch_leaders(self) -> None:
        """Tell the judge when nobody can act: no leader, no server, or a user has paused everything."""
        while True:
            acts = any(model.acts for model in self.replicas.values())
            self.judge.absent(self.network.away or not acts or self.paused())
            await asyncio.sleep(LOOK)

    def paused(self) -> bool:
        """Whether a user has paused everything."""
        namespace = self.look("namespaces", SYSTEM)
        return PAUSED in (namespace["metadata"].get("annotations") or {})

    async def _perform(self, step: Step) -> None:
        await asyncio.sleep(max(0.0, step.at - now()))
        if awaited := dict(step.words).get("case"):
            await until(lambda: self.ended or awaited in self.case_phases(), 1.0)
        self.note("plan", str(step))
        await KINDS[step.kind].perform(self, step)
