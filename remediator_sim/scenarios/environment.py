"""Everything that the demo runs, started in the order in which it needs each other; all of it ends together."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import yaml

from remediator.clock import SYSTEM, Clock
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.kube.wire.client import Client
from remediator.web.endpoints import ALERTMANAGER, KUBE_SCHEDULER
from remediator_sim.accounts import node_token, token
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.controller import ControllerProcess
from remediator_sim.extender import HttpExtender
from remediator_sim.github import FakeGitHub, Issue
from remediator_sim.invariants import Observer
from remediator_sim.invariants import issues as seen_issues
from remediator_sim.kubeconfig import write_kubeconfig
from remediator_sim.kubelet.binder import Binder
from remediator_sim.kubelet.kubelet import SimulatedKubelet
from remediator_sim.kubelet.worker import ApiAddress
from remediator_sim.machine import NfsServer
from remediator_sim.manifests import create, deploy
from remediator_sim.npd import AtMost, ForkServer
from remediator_sim.plain import NODES, Object
from remediator_sim.ports import free_port
from remediator_sim.scenarios import timescale
from remediator_sim.scenarios.alert import payload, post
from remediator_sim.scenarios.certificates import caller
from remediator_sim.scenarios.device_plugin import DevicePlugin
from remediator_sim.scenarios.fleet import AT_ONCE, PACKED, PACKED_GPUS, POOL, Place, budget, places
from remediator_sim.scenarios.gpu_node import GpuNode, Host
from remediator_sim.scenarios.jobs import POOL_LABEL, Job, Jobs
from remediator_sim.scenarios.packing import Packing, pack
from remediator_sim.scenarios.placement import Placement, fault
from remediator_sim.scenarios.summary import ReportedIssue
from remediator_sim.scenarios.view import TICKETS, View, ViewLine
from remediator_sim.shipped import folder
from remediator_sim.tasks import TaskExitStack

REPOSITORY = "example/gpu-cluster"
ONCALL = "oncall"
WEBHOOK_TOKEN = "alertmanager's own token"
HOME, DATASETS = "/mnt/home", "/mnt/datasets"
FILE_SERVER_POLICY = "nfs-unavailable"
WITHOUT = 5  # of the nodes of each rack, the first so many do not mount the data sets
CONDITIONS = ("GpuLost", "GpuEccFault", "NfsStale", "NfsUnavailable", "UnkillableProcess", "DetectorStale")
PATIENCE = 120.0  # seconds that the start may take
# How long a case may take, and how long after its end nothing of it may be left.
BOUND, SETTLE = timedelta(minutes=4), timedelta(seconds=10)  # a busy machine takes twice as long as an idle one
# Seconds between two runs of a detector, a minute in production: so many for each node, for all share one machine. On a
# slow one they come later: so many programs run at a time, more than hang when the file server is dead.
FOR_EACH, SHORTEST, PROGRAMS_AT_ONCE = 0.25, 2.0, 24
OWNER, NOTE = {"example.com/owner": "team-blue"}, {"example.com/note": "rack 7, left"}
KEPT = {"key": POOL_LABEL, "value": POOL, "effect": "NoSchedule"}
RESERVED = {"key": "example.com/reserved", "value": "blue", "effect": "PreferNoSchedule"}
# In production 10 starts in 10 minutes; here some have to wait for it, too.
BREAKER = Breaker(5, timedelta(seconds=10))


class Environment:
    """`async with Environment(...) as environment`: a healthy fleet, its users, and a controller that leads.

    `command` starts the controller; `report` is given all that happens to nodes; `patience`, in seconds, is for each
    step of the start.
    """

    def __init__(
        self,
        directory: Path,
        nodes: int,
        command: Sequence[str],
        report: Callable[[ViewLine], None],
        breaker: Breaker = BREAKER,
        patience: float = PATIENCE,
        clock: Clock = SYSTEM,
    ) -> None:
        self.directory, self.report, self._command = directory, report, command
        self._breaker, self._patience, self._clock = breaker, patience, clock
        self.places = places(nodes)
        self.server = EmbeddedServer(clock=clock)
        self.client = Client(self.server.transport())
        self.view, self.jobs = View(self.client, report, quiet=(FILE_SERVER_POLICY,)), Jobs(self.client)
        self.home, self.datasets = NfsServer(), NfsServer()
        self.nodes: dict[str, GpuNode] = {}
        self.placements: list[Placement] = []
        self.packing = Packing((), ())
        self._ends = TaskExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._ends.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._ends.aclose()

    @property
    def hosts(self) -> dict[str, Host]:
        """The machines of the GPU nodes."""
        return {name: node.host for name, node in self.nodes.items()}

    def gpu_places(self) -> list[Place]:
        """Where GPU nodes stand."""
        return [place for place in self.places if place.gpus]

    # --- starting ----------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        served = await self._ends.enter_async_context(self.server.serve())
        self.url, self.kubeconfig = served.url, served.kubeconfig
        self._endpoint = ApiAddress(served.url, served.ca_file)
        await deploy(self.client, timescale.policy)
        await create(self.client, budget(AT_ONCE))
        self.github = await self._ends.enter_async_context(FakeGitHub([REPOSITORY], [ONCALL], clock=self._clock))
        for server in (self.home, self.datasets):
            await self._ends.enter_async_context(server)
        self._ends.run(self.view.run())
        await self._begin_nodes()
        self._begin_observer()
        await self._begin_controller()
        await self._begin_jobs()
        self.packing = await pack(self.client, self.jobs, HttpExtender(self.extender.url, self._shown), self._until)
        await self._wait_until(self._healthy, "every node is healthy")

    async def _begin_nodes(self) -> None:
        runner = AtMost(await self._ends.enter_async_context(ForkServer()), PROGRAMS_AT_ONCE)
        gpu = self.gpu_places()
        interval = max(SHORTEST, len(gpu) * FOR_EACH)
        for index, place in enumerate(self.places):
            if place.gpus:
                delay = interval * index / len(gpu)
                self.nodes[place.name] = GpuNode(
                    self.client,
                    place,
                    self.directory / place.name,
                    self._mounts(place),
                    self._endpoint,
                    runner,
                    interval,
                    delay,
                    self._clock,
                )
                self._ends.run(self.nodes[place.name].run())
            else:
                self._ends.run(self._plain_node(place.name, place.labels).run())
        for name in PACKED:
            self._ends.run(self._plain_node(name, {POOL_LABEL: POOL}, PACKED_GPUS).run())
        await self._wait_until(self._registered, "every node is Ready")
        for name in self.nodes:
            await self._mount_token(name)
        for name in PACKED:
            await self.client.patch(NODES, name, {"spec": {"taints": [KEPT]}})

    def _mounts(self, place: Place) -> dict[str, NfsServer]:
        return {HOME: self.home, **({DATASETS: self.datasets} if place.name in self.readers() else {})}

    def readers(self) -> tuple[str, ...]:
        """The nodes that mount the data sets: the last ones of each rack."""
        return tuple(place.name for place in self.gpu_places() if place.number > WITHOUT)

    def _plain_node(self, name: str, labels: Mapping[str, str], gpus: int = 0) -> SimulatedKubelet:
        """A node without detectors."""
        return SimulatedKubelet(
            self.client,
            name,
            host=Host(self.directory / name, name),
            programs=folder(),
            endpoint=self._endpoint,
            labels=labels,
            gpus=gpus,
            clock=self._clock,
        )

    async def _mount_token(self, node: str) -> None:
        """What the kubelet mounts into the Pod of node-problem-detector."""
        granted = await node_token(self.client, "node-problem-detector", names.SYSTEM_NAMESPACE, node)
        folder = self.nodes[node].host.directory / "token"
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(granted)
        (folder / "ca.crt").write_bytes(self._endpoint.ca_file.read_bytes())

    def _begin_observer(self) -> None:
        """The observer is there before the controller is, and sees all it does."""
        self.observer = Observer(
            self.server,
            self.hosts.values(),
            breaker_starts=self._breaker.starts,
            breaker_window=self._breaker.window,
            issues=lambda: seen_issues(self.github, REPOSITORY),
            extender=self._ask,
            bound=BOUND,
            settle=SETTLE,
            clock=self._clock,
        )
        self._ends.callback(self.observer.close)

    async def _ask(self, pod: Object, nodes: Sequence[str]) -> dict[str, Any]:
        return await self.extender.filter(pod, nodes)

    async def _begin_controller(self) -> None:
        extender, webhook, page = (f"127.0.0.1:{free_port()}" for _ in range(3))
        ours = await token(self.client, "remediator", names.SYSTEM_NAMESPACE)
        kubeconfig = write_kubeconfig(self.directory, "controller", self.url, ours, self._endpoint.ca_file)
        routes = {"default": {"repository": REPOSITORY, "labels": ["gpu-node"], "assignees": [ONCALL]}}
        files = {"routes": yaml.safe_dump(routes), "github-token": self.github.token, "webhook-token": WEBHOOK_TOKEN}
        for name, text in files.items():
            (self.directory / name).write_text(text)
        options = [
            *("--lease-seconds", "6"),  # a busy machine must not take it for lost
            *("--starts", str(self._breaker.starts)),
            *("--window", str(round(self._breaker.window.total_seconds()))),
            *("--routes", str(self.directory / "routes")),
            *("--github-url", self.github.url, "--github-spacing", "0.05", "--issues-per-hour", "0"),
            *("--github-token-file", str(self.directory / "github-token")),
            *("--webhook-token-file", str(self.directory / "webhook-token")),
            *("--listen-extender", extender, "--listen-webhook", webhook, "--listen-page", page),
        ]
        self.controller = ControllerProcess(self._command, kubeconfig, options, self.directory / "controller.log")
        self._shown, self._alertmanager = [
            await caller(self.client, name, self.directory / name, self._clock.now())
            for name in (KUBE_SCHEDULER, ALERTMANAGER)
        ]
        self.extender = HttpExtender(f"https://{extender}/scheduler", self._shown)
        self.page_url = f"https://{page}/"
        self._webhook = f"https://{webhook}/webhooks/alertmanager"
        self._ends.run(self.observer.run())
        self._ends.push_async_callback(self.controller.stop)
        await self.controller.start()
        binder = Binder(self.client, extender=self.extender, on_bind=self._note_placement, clock=self._clock)
        self._ends.run(binder.run())

    async def _begin_jobs(self) -> None:
        plugin = DevicePlugin(self.client, self.nodes)
        await plugin.open()
        self._ends.run(plugin.run())
        await self.jobs.open()
        self._ends.run(self.jobs.run())
        for place in self.gpu_places():
            await self._mark_as_user(place.name)
            await self.jobs.add(Job(f"train-{place.name.removeprefix('gpu-')}", 2, place.name))

    # --- what people do and see --------------------------------------------------------------------------------------

    async def alert(self, name: str, node: str) -> None:
        """Alertmanager sends one alert about a node, which fires since now."""
        body = payload(name, node, self._clock.wall(), None)
        status = await post(self._webhook, WEBHOOK_TOKEN, self._alertmanager, body)
        self.report(ViewLine(node, "AlertSent", f"{name}; the webhook answers {status}"))

    async def _mark_as_user(self, node: str) -> None:
        """A person writes on a node what must still be there at the end."""
        body = {"metadata": {"labels": OWNER, "annotations": NOTE}, "spec": {"taints": [RESERVED]}}
        await self.client.patch(NODES, node, body)
        self.observer.person_set(node, labels=OWNER, annotations=NOTE, taints=[RESERVED])

    def _note_placement(self, pod: Object, node: str, without: Object | None) -> None:
        name = without["metadata"]["name"] if without else ""
        kept_off = fault(without) if without and name != node else ""
        placement = Placement(pod["metadata"]["name"], node, name, kept_off)
        self.placements.append(placement)
        if placement.fault:
            self.report(ViewLine(placement.pod, "Placed", placement.text))

    def reboots(self, node: str) -> list[dict[str, Any]]:
        """The reboots of a node that were asked for."""
        return self.nodes[node].host.reboots()

    def evictions(self) -> int:
        """How many pods were evicted."""
        return sum(done.path.endswith("/eviction") for done in self.server.audit)

    def issues(self) -> list[Issue]:
        """All issues, closed ones too."""
        return list(self.github.issues(REPOSITORY))

    def link(self, issue: Issue) -> str:
        """Where its page is."""
        return f"{self.github.web_url}/{REPOSITORY}/issues/{issue.number}"

    def reported_issues(self) -> list[ReportedIssue]:
        """All issues, for the summary."""
        return [ReportedIssue(issue.title, issue.open, self.link(issue)) for issue in self.issues()]

    def shared_issues(self) -> list[Issue]:
        """All issues, closed ones too, about something that many nodes share."""
        tickets = [ticket for ticket in self.view.all(TICKETS) if ticket["spec"]["subject"]["kind"] == "SharedCause"]
        numbers = {ticket.get("status", {}).get("issue", {}).get("number") for ticket in tickets}
        return [issue for issue in self.issues() if issue.number in numbers]

    # --- waiting -----------------------------------------------------------------------------------------------------

    async def _wait_until(self, holds: Callable[[], bool], expected: str) -> None:
        until = self._clock.monotonic() + self._patience
        while not holds():
            if self._controller_is_gone():
                raise RuntimeError(f"the controller ended by itself:\n{self.controller.log_end()}")
            if self._clock.monotonic() > until:
                raise TimeoutError(f"not so {self._patience:g} s after the start: {expected}")
            await self.view.changed(0.5)

    async def _until(self, holds: Callable[[], Awaitable[bool]], expected: str) -> None:
        """The same of what has to be asked for."""
        until = self._clock.monotonic() + self._patience
        while not await holds():
            if self._clock.monotonic() > until:
                raise TimeoutError(f"not so {self._patience:g} s after the start: {expected}")
            await self.view.changed(0.1)

    def _controller_is_gone(self) -> bool:
        return hasattr(self, "controller") and self.controller.ended

    def _registered(self) -> bool:
        names = (*(place.name for place in self.places), *PACKED)
        return all(self.view.condition(name, "Ready") == "True" for name in names)

    def _healthy(self) -> bool:
        return all(self.view.condition(name, kind) == "False" for name in self.nodes for kind in CONDITIONS)
