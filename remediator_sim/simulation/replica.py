"""One process of the product, in virtual time: it starts, dies, freezes and starts again."""

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any

import msgspec

from remediator.app import Replica
from remediator.core.places import DEFAULT
from remediator.kube.runtime.elector import LOOK_SECONDS
from remediator.kube.wire.client import Client
from remediator.prometheus.alerts import AlertSource
from remediator.prometheus.prometheus import Prometheus
from remediator.settings import Settings
from remediator.tickets.webhook.receiver import Received
from remediator.web.webhook import STATUS
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.invariants.observer import PROBE_POD
from remediator_sim.simulation.clock import HostClock, now
from remediator_sim.simulation.hub import Hub
from remediator_sim.simulation.line import Line
from remediator_sim.simulation.loop import PROCESS, VirtualLoop, VirtualProcess
from remediator_sim.simulation.second_source import URL, SecondSource, SourceLine
from remediator_sim.simulation.wire import RECOVERY, Network, Wire

SHIPPED, QUIET = 1.0, 60.0  # by how much the intervals of the lease are longer than the shipped ones, at most
SOUND = 30.0  # seconds by which a clock may be wrong
PATIENCE = 10.0  # seconds for which Alertmanager waits for an answer
RESTART = 10.0  # seconds after which a process that ended is started again


class ReplicaModel:
    """One host for a replica. `killed` is told when a process of it was killed, `failed` when one ended by itself;
    `source` answers what policies want confirmed, `alertmanager` makes who is asked what fires; `settings` stand before
    the usual ones; `wrote` hears of each write: of whom, by which
    clock, where, asked when.
    """

    def __init__(
        self,
        name: str,
        server: EmbeddedServer,
        network: Network,
        hub: Hub,
        chance: Random,
        note: Callable[[str, str], None],
        killed: Callable[[], None],
        failed: Callable[[str], None],
        source: SecondSource | None = None,
        *,
        api_pods: str = DEFAULT,
        wrote: Callable[[str, HostClock, str, float], None] = lambda identity, clock, path, asked: None,
        settings: Mapping[str, Any] = MappingProxyType({}),
        alertmanager: Callable[..., AlertSource] | None = None,
    ) -> None:
        self._given, self._alertmanager = settings, alertmanager
        self.name, self._server, self._network, self._chance = name, server, network, chance
        self._hub, self._api_pods, self._source, self._wrote = hub, api_pods, source, wrote
        self._source_line: SourceLine | None = None
        self._note, self._killed, self._failed = note, killed, failed
        self.clock = HostClock()
        self.wire: Wire | None = None
        self.line: Line | None = None
        self.replica: Replica | None = None
        self._process = VirtualProcess(name)
        self._task: asyncio.Task[None] | None = None
        self._context, self._posts = contextvars.copy_context(), set[asyncio.Task[Received]]()
        self._lives, self._stretch = 0, SHIPPED

    @property
    def is_leader(self) -> bool:
        """Whether it leads now."""
        return self.replica is not None and self.replica.leader.is_leader

    @property
    def acts(self) -> bool:
        """Whether it leads, runs and reaches the server."""
        return self.is_leader and not self._process.frozen and not (self.wire and self.wire.away)

    async def filter(self, nodes: list[str]) -> dict[str, Any] | None:
        """What its extender says of these nodes; None where it does not answer, or has not seen everything lately."""
        replica, wire = self.replica, self.wire
        if replica is None or wire is None or not (wire.clear() and replica.ready() and self._is_sound()):
            return None
        body = msgspec.json.encode({"Pod": PROBE_POD, "NodeNames": nodes})
        answer: dict[str, Any] = msgspec.json.decode(replica.extender.filter(body))
        return answer

    def _is_sound(self) -> bool:
        right = abs(self.clock.ahead) < SOUND and now() > self.clock.moved + RECOVERY
        return not self._process.frozen and right

    def start(self) -> None:
        """Start a process, unless one runs."""
        if self._task is not None:
            return
        self._lives += 1
        self._process = VirtualProcess(self.name)
        identity = f"{self.name}-{self._lives}"
        self.wire = Wire(self._server.transport(), self._network, self._chance, self.crash)
        self.wire.wrote = partial(self._wrote, identity, self.clock)
        self.line = Line(self._hub, self._chance, self.crash)
        usual: dict[str, Any] = {
            "identity": identity,
            "api_pods_node_selector": self._api_pods,
            "routes": self._hub.routes,
            "github_url": self._hub.github.url,
            "github_token_file": self._hub.token,
            "issues_per_hour": 0,  # tests/simulation/test_issues.py plays what waits
            "prometheus_url": URL if self._source else "",
        }
        settings = Settings(**{**usual, **self._given})
        self._source_line = SourceLine(self._source, self._chance) if self._source else None
        prometheus = self._source_line.connect if self._source_line else Prometheus
        parts = Client(self.wire), settings, self.clock.clock, self.line.channel, prometheus
        listing = self._alertmanager
        self.replica = Replica(*parts, alertmanager=listing) if listing else Replica(*parts)
        self._prepare(self.replica)
        self._context = context = contextvars.copy_context()
        context.run(PROCESS.set, self._process)
        self._note(self.name, f"starts as {settings.identity}")
        self._task = asyncio.get_running_loop().create_task(self._work(self.replica), context=context)

    def _prepare(self, replica: Replica) -> None:
        replica.leader._elector._on_stuck = self.crash
        self.stretch(self._stretch)

    async def _work(self, replica: Replica) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for part in (replica.informers, replica.leader, replica.extender):
                    group.create_task(part.run())
        except BaseExceptionGroup as error:
            self._failed(f"{self.name} ended by itself: {error.exceptions!r}")
            self._end()
            asyncio.get_running_loop().call_later(RESTART, self.start, context=contextvars.Context())

    def crash(self) -> None:
        """Kill the process: first its connections, so that nothing that it does while it ends is seen by anybody."""
        if self._task is None:
            return
        task = self._task
        self._end()
        self._note(self.name, "is killed")
        task.cancel()
        self._killed()

    def crash_at(self, turn: int) -> None:
        """Kill the process just before this turn of it, counted from now on."""
        self._process.die_at(turn, self.crash)

    def _end(self) -> None:
        self._process.forget()
        if self.wire is not None:
            self.wire.kill()
        for line in (self.line, self._source_line):
            if line is not None:
                line.kill()
        for post in list(self._posts):
            post.cancel()
        self._task = self.wire = self.line = self.replica = None

    async def post(self, body: bytes) -> int | None:
        """What the webhook answers to one post, None where nobody does in time."""
        if self.replica is None or self.replica.tickets is None:
            return None
        work = self.replica.tickets.receiver.receive(body)
        task = asyncio.get_running_loop().create_task(work, context=self._context)
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)
        await asyncio.wait({task}, timeout=PATIENCE)
        return STATUS[task.result().result] if task.done() and not task.cancelled() else None

    @property
    def frozen(self) -> bool:
        """Whether it has had SIGSTOP."""
        return self._process.frozen

    def freeze(self) -> None:
        """SIGSTOP."""
        self._note(self.name, "is frozen")
        self._process.freeze()

    def thaw(self) -> None:
        """SIGCONT."""
        self._note(self.name, "goes on")
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._process.thaw(loop)

    def stretch(self, factor: float) -> bool:
        """Make the intervals of the lease so many times the shipped ones; whether they are.

        They become longer only once the lease says that it lasts longer: others go by what stands there.
        """
        self._stretch = factor
        if self.replica is None:
            return True
        elector, settings = self.replica.leader._elector, self.replica.settings
        lease = elector._seen.spec
        written = lease.lease_duration_seconds / settings.lease_duration if lease.holder_identity else factor
        pace = max(SHIPPED, min(factor, written))
        elector._duration = settings.lease_duration * factor
        elector._renew = settings.lease_renew * pace
        elector._retry = settings.lease_retry * pace
        elector._look_every = LOOK_SECONDS * pace
        return pace == factor
