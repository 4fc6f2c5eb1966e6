"""The world of the simulation before a real control plane: its nodes, Pods, users, judge, and shipped controllers."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp

from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.times import micro_stamp
from remediator_sim.accounts import token
from remediator_sim.controller import start_controller
from remediator_sim.extender import HttpExtender
from remediator_sim.invariants.contract import CASES, KINDS, ended, phase
from remediator_sim.invariants.observer import PROBE_POD
from remediator_sim.invariants.tracked import Limits
from remediator_sim.kubeconfig import write_kubeconfig
from remediator_sim.kubelet.program import RunningProgram
from remediator_sim.manifests import Document, deploy
from remediator_sim.plain import LEASES, NODES, PDBS, PODS, plain
from remediator_sim.ports import free_port
from remediator_sim.scenarios import timescale
from remediator_sim.simulation.clock import HostClock, true_time
from remediator_sim.simulation.hosts import ReplicaHost
from remediator_sim.simulation.judge import Judge
from remediator_sim.simulation.line import Line
from remediator_sim.simulation.plan import Plan
from remediator_sim.simulation.wire import Wire
from remediator_sim.simulation.world import SeedOutcome, World
from tests.cluster.control_plane import ControlPlane
from tests.cluster.simulation.hasty import HastyLoop, Outside, OutsideTransport
from tests.cluster.simulation.mirror import Mirror

FASTER = 75.0
SCALE = timescale.Scale(FASTER, FASTER, FASTER, FASTER, FASTER)
LIMITS = Limits(
    Breaker().starts,
    Breaker().window,
    bound=timedelta(hours=4) / FASTER,
    settle=timedelta(minutes=40) / FASTER,
    grace=timedelta(seconds=3),
)
LEASE_EVERY, LEASE_SECONDS = 10.0, 40  # real seconds
NODE_LEASES = "kube-node-lease"
STATUS_BINDINGS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    dict[str, Any],
)


class RealPlane:
    """One control plane for plan after plan. `folder` keeps logs and credentials."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder, self.outside = plane, folder, Outside()
        self._transport = self.outside.wait(self._connect())
        self.client = Client(self._transport)
        self.outside.wait(deploy(self.client, lambda document: None))
        self.outside.wait(self._let_models_write())

    async def _connect(self) -> HttpTransport:
        return await HttpTransport.from_kubeconfig(self.plane.kubeconfig)

    async def _let_models_write(self) -> None:
        """The models of drains have no tokens: they write their progress as an administrator."""
        with suppress(errors.NotFound):
            await self.client.delete(STATUS_BINDINGS, "remediator-controller-writes-status")

    def play(self, plan: Plan) -> SeedOutcome:
        """Run a plan to its end, and take away what is left of it."""
        try:
            with asyncio.Runner(loop_factory=lambda: HastyLoop(FASTER)) as runner:
                return runner.run(self._played(plan))
        finally:
            self.outside.wait(self._clear())

    async def _played(self, plan: Plan) -> SeedOutcome:
        mirror = Mirror(self.outside, self.client)
        await mirror.begin()
        granted = await self.outside.do(token(self.client, "remediator", names.SYSTEM_NAMESPACE))
        kubeconfig = write_kubeconfig(self.folder, "controller", self.plane.url, granted, self.plane.ca_file)
        world = RealWorld(plan, self, mirror, kubeconfig)
        try:
            return await world.run()
        finally:
            await world.end()
            mirror.close()

    def logs(self) -> str:
        """What all controllers have written so far."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def close(self) -> None:
        """Let go of the server."""
        self.outside.wait(self._transport.close())
        self.outside.close()

    async def _clear(self) -> None:
        for kind in (plain(api.POLICY), plain(api.CASE), plain(api.OPERATION), plain(api.BUDGET), PDBS, PODS, NODES):
            for obj in await self.client.list_all(kind):
                await self._remove(kind, obj)
        for space in (names.SYSTEM_NAMESPACE, NODE_LEASES):
            for lease in await self.client.list_all(LEASES, namespace=space):
                await self._remove(LEASES, lease)

    async def _remove(self, kind: Kind[Any], obj: dict[str, Any]) -> None:
        meta = obj["metadata"]
        space = meta.get("namespace", "")
        with suppress(errors.NotFound):
            if meta.get("finalizers"):
                await self.client.patch(kind, meta["name"], {"metadata": {"finalizers": None}}, namespace=space)
            path = kind.path(meta["name"], space)
            await self.client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')


class RealWorld(World):
    """A world whose server is real; everything of ours in it runs FASTER times faster."""

    def __init__(self, plan: Plan, plane: RealPlane, mirror: Mirror, kubeconfig: Path) -> None:
        self._plane, self._mirror, self._kubeconfig = plane, mirror, kubeconfig
        self._processes: list[ProcessReplica] = []
        super().__init__(plan)

    def _fresh_server(self) -> Any:
        return self._mirror

    def _new_client(self) -> Client:
        return Client(OutsideTransport(self._plane.outside, self._plane.client.transport))

    def _new_judge(self) -> Judge:
        return PatientJudge(self._mirror, LIMITS, self._hear, self._report)

    def policy(self, name: str, mode: str = "Enforce") -> Document:
        return timescale.policy(super().policy(name, mode), SCALE)

    def _mark(self, node: str) -> object:
        return object()  # the mirror is late: what it shows says nothing of what a drain would read now

    async def settle(self) -> None:
        await self._mirror.settle()

    def _under_way(self) -> bool:
        """On a busy machine the controllers may have only just begun when the plan is over.

        A case without a phase has just been made: what its claim has written on the node is recorded in it later. One
        that waits for a budget takes its turn once the case before it has ended. One that has ended gives its node back
        in the writes after that.
        """
        cases = [entry.obj for entry in self._mirror.cluster.store.collection(CASES).entries.values()]
        known = {case["spec"]["nodeName"] for case in cases if phase(case)}
        waits = any(case["status"].get("reason") == Reason.BUDGET_SPENT for case in cases if phase(case) == "Held")
        begins = any(node.faults and name not in known for name, node in self.nodes.items())
        leaves = any(ended(case) and case["metadata"].get("finalizers") for case in cases)
        return super()._under_way() or waits or begins or leaves

    def _replica(self, name: str) -> ReplicaHost:
        process = ProcessReplica(name, self._plane, self._kubeconfig, self._holder, self.judge.killed)
        self._processes.append(process)
        return process

    def _holder(self) -> str:
        lease = self._mirror.cluster.find("leases.coordination.k8s.io", names.SYSTEM_NAMESPACE, "remediator")
        return str(lease.obj["spec"].get("holderIdentity", "")) if lease else ""

    def _parts(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield from super()._parts()
        yield self._renew_leases()

    async def _renew_leases(self) -> None:
        """What kubelets do so that nobody takes them for dead."""
        while True:
            for node in self.nodes.values():
                if node.alive and node.registered:
                    await self._renew(node.name)
            await asyncio.sleep(LEASE_EVERY * FASTER)

    async def _renew(self, node: str) -> None:
        spec = {
            "holderIdentity": node,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": micro_stamp(true_time()),
        }
        with suppress(errors.ApiError):
            try:
                await self.client.patch(LEASES, node, {"spec": spec}, namespace=NODE_LEASES)
            except errors.NotFound:
                await self.client.create(LEASES, {"metadata": {"name": node}, "spec": spec}, namespace=NODE_LEASES)

    async def end(self) -> None:
        """Wait until no process is left."""
        for process in self._processes:
            await process.end()


class PatientJudge(Judge):
    """What is no write takes its place among the writes, which are told later than they happen."""

    def __init__(self, mirror: Mirror, *rest: Any) -> None:
        self._mirror, self._over = mirror, False
        super().__init__(mirror.cluster, *rest)

    def put(self, kind: str, old: Any = None, new: Any = None) -> None:
        if kind in KINDS or self._over:
            super().put(kind, old, new)
        else:
            self._mirror.later(lambda: super(PatientJudge, self).put(kind, old, new))

    def end(self, alerts: list[str]) -> None:
        self._over = True
        super().end(alerts)


class ProcessReplica:
    """One host for a shipped controller without tickets. Its clock is that of the machine, and its connections hold."""

    wire: Wire | None = None
    line: Line | None = None

    def __init__(
        self,
        name: str,
        plane: RealPlane,
        kubeconfig: Path,
        holder: Callable[[], str],
        killed: Callable[[], None],
    ) -> None:
        self.name, self._plane, self._kubeconfig, self._holder, self._killed = name, plane, kubeconfig, holder, killed
        self.clock = HostClock()
        self._lives, listen = 0, f"127.0.0.1:{free_port()}"
        self._options = ["--no-tls", "--listen-extender", listen]
        self._extender = HttpExtender(f"http://{listen}/scheduler")
        self._program: asyncio.Task[RunningProgram] | None = None
        self._deaths: list[asyncio.Task[None]] = []

    @property
    def is_leader(self) -> bool:
        """Whether it leads now."""
        return self._program is not None and self._holder() == f"{self.name}-{self._lives}"

    @property
    def acts(self) -> bool:
        """The same."""
        return self.is_leader

    def start(self) -> None:
        """Start a process, unless one runs."""
        if self._program is None:
            self._lives += 1
            identity, log = f"{self.name}-{self._lives}", self._plane.folder / f"{self.name}.log"
            started = start_controller(self._kubeconfig, identity, log, self._options)
            self._program = asyncio.ensure_future(self._plane.outside.do(started))

    async def filter(self, nodes: list[str]) -> dict[str, Any] | None:
        """What its extender says of these nodes; None where it does not answer."""
        try:
            return await self._plane.outside.do(self._extender.filter(PROBE_POD, nodes))
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None

    def crash(self) -> None:
        """SIGKILL."""
        if self._program is not None:
            self._deaths.append(asyncio.ensure_future(self._kill(self._program)))
            self._program = None
            self._killed()

    async def _kill(self, starting: "asyncio.Task[RunningProgram]") -> None:
        program = await starting
        await self._plane.outside.do(program.kill())

    def stretch(self, factor: float) -> bool:
        """Its intervals stay."""
        return True

    def crash_at(self, turn: int) -> None:
        """Nobody can count its turns."""
        raise NotImplementedError

    @property
    def frozen(self) -> bool:
        """No small plan freezes it."""
        return False

    def freeze(self) -> None:
        """No small plan does."""
        raise NotImplementedError

    def thaw(self) -> None:
        """No small plan does."""
        raise NotImplementedError

    async def post(self, body: bytes) -> int | None:
        """Without tickets nobody answers."""

    async def end(self) -> None:
        """Wait until it is dead."""
        self.crash()
        await asyncio.gather(*self._deaths)
