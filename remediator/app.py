"""Everything that one replica runs: the controller, tickets, the scheduler extender and the HTTP server."""

import asyncio
import gc
from collections.abc import Callable, Mapping
from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING, Any

import structlog

from remediator import collector, metrics
from remediator.clock import Clock
from remediator.controller import bundle_store
from remediator.controller.eviction_webhook import EvictionWebhook
from remediator.controller.run import Controller
from remediator.core import names
from remediator.core.running import Running
from remediator.kube.api.decode.times import duration
from remediator.kube.informers import Informers
from remediator.kube.runtime.audited import AuditedTransport, Caches
from remediator.kube.runtime.elector import Elector
from remediator.kube.runtime.informer import synced
from remediator.kube.runtime.leader import Leader
from remediator.kube.wire.client import Client
from remediator.prometheus.alerts import Alertmanagers, AlertSource
from remediator.scheduler.extender import Extender
from remediator.scheduler.packing import pinned
from remediator.scheduler.packing.points import Score
from remediator.scheduler.score import Scoring
from remediator.scheduler.shared.parts import SharedGpus
from remediator.settings import Settings
from remediator.tickets.channels.base import Channel
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.private import PrivateOnly
from remediator.tickets.floods.limits import FloodLimits
from remediator.tickets.on_demand import OnDemand
from remediator.tickets.reconcile.observe import Times
from remediator.tickets.reconcile.run import Tickets
from remediator.web.endpoints import Endpoints

if TYPE_CHECKING:
    from remediator.prometheus.alertmanager import Alertmanager
    from remediator.prometheus.prometheus import Prometheus
    from remediator.tickets.channels.chat import Chat
    from remediator.tickets.channels.github import Credentials
    from remediator.tickets.channels.rooms import Room
    from remediator.tickets.chat.run import Rooms

log = structlog.get_logger()
LAG_EVERY = 0.5  # seconds between two looks at how late the loop is
FORGET_SECONDS = 1.0  # until the nodes of a cluster know that a replica goes, and send nothing more to it


# PyGithub and requests take 12 MiB: they are imported where settings ask for tickets or for Prometheus, and only there.


def _github(*given: Any, **named: Any) -> Channel:
    from remediator.tickets.channels.github import GitHub

    return GitHub(*given, **named)


def _asked(*given: Any, **named: Any) -> "Prometheus":
    from remediator.prometheus.prometheus import Prometheus

    return Prometheus(*given, **named)


def _listing(*given: Any, **named: Any) -> "Alertmanager":
    from remediator.prometheus.alertmanager import Alertmanager

    return Alertmanager(*given, **named)


def _chat(room: "Room") -> "Chat":
    from remediator.tickets.channels.rooms import Slack

    try:
        if isinstance(room.place, Slack):
            from remediator.tickets.channels.slack import SlackRoom

            return SlackRoom(room.name, room.place)
        from remediator.tickets.channels.apprised import AppriseRoom

        return AppriseRoom(room.name, room.place)
    except ImportError as missing:
        raise ValueError(f"--chat needs {missing.name}: pip install 'remediator[chat]'") from None


class Replica:
    """One process of the Deployment. Every replica watches, answers schedulers and takes webhooks; one writes."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        clock: Clock,
        github: Callable[..., Channel] = _github,
        prometheus: Callable[..., "Prometheus"] = _asked,
        alertmanager: Callable[..., AlertSource] = _listing,
        chat: Callable[["Room"], "Chat"] = _chat,
    ) -> None:
        """`github` makes the channel of tickets, with the arguments of `GitHub`; the same of the others. `chat` makes
        one room.

        Raises ValueError that names the option, and what to do, where the settings do not fit together.
        """
        self.settings, self._clock, self._end = settings, clock, asyncio.Event()
        audited = AuditedTransport(client.transport, "controller")
        client = Client(audited)
        self.informers = Informers(client, clock, settings.namespaces)
        audited.caches = Caches(self.informers.nodes, self.informers.cases, self.informers.pods)
        self.leader = Leader(elector(client, settings, clock, self.informers.list_anew), clock)
        self.prometheus = _prometheus(settings, clock, prometheus)
        self.alertmanagers = _alertmanagers(settings, clock, alertmanager)
        store = bundle_store.load(settings.bundle_store) if settings.bundle_store else None
        sources = (self.prometheus, self.alertmanagers, store)
        self.controller = Controller(client, settings, self.informers, self.leader, clock, *sources)
        shared = SharedGpus.over(client, self.informers, clock) if settings.shared_gpus else None
        self.extender = Extender(client, self.informers, clock, settings.domains, _scoring(settings), shared)
        self.tickets = _tickets(client, settings, self.informers, self.leader, clock, github, self.alertmanagers)
        self.rooms = _rooms(client, settings, self.tickets, self.leader, clock, chat)
        self.endpoints = Endpoints(client, settings, clock, self.extender, self.tickets, self.controller.cache)
        if settings.listen_evictions and not settings.no_tls:
            self.leader.add(EvictionWebhook(client, settings.namespace, settings.makes_certificates).queue)

    async def run(self) -> None:
        """Serve and work until cancelled, or until it has handed over because `end` asked for that."""
        with collector.short_pauses():
            await self._serve()

    def end(self) -> bool:
        """Hand over, answer until nobody sends anything here any more, then end. False where that was asked before."""
        if self._end.is_set():
            return False
        self._end.set()
        return True

    async def _serve(self) -> None:
        log.info("settings", **self.settings.shown())
        if self.tickets is None:
            log.info("tickets are off", remedy="give --routes, and a GitHub App or --github-token-file, to open issues")
        closing = aclosing(self.tickets.channel) if self.tickets else nullcontext()
        chatting = aclosing(self.rooms) if self.rooms else nullcontext()
        asking = aclosing(self.prometheus) if self.prometheus else nullcontext()
        listing = aclosing(self.alertmanagers) if self.alertmanagers else nullcontext()
        served = self.endpoints.served(self.functions, self._measure, self._remark, self._end.is_set)
        async with closing, chatting, asking, listing, served, asyncio.TaskGroup() as group:
            others = [part.run() for part in (self.informers, self.extender, self.endpoints)]
            tasks = [group.create_task(work) for work in (*others, self._measure_lag(), self._settle())]
            leading = group.create_task(self.leader.run())
            await self._end.wait()
            await self._hand_over(leading)
            for task in tasks:
                task.cancel()

    async def _settle(self) -> None:
        """Say that the caches are complete, and collect garbage from then on where the process grows."""
        await asyncio.gather(synced(*self.controller.cache.informers), self.extender.synced())
        log.info("synced", nodes=len(self.informers.nodes), cases=len(self.informers.cases))
        gc.collect()
        await collector.collect_grown()

    async def _hand_over(self, leading: asyncio.Task[None]) -> None:
        """Stop leading and give the Lease back at once. Who has not heard of it yet is answered meanwhile."""
        log.info("ending", leads=self.leader.is_leader, answers_for_seconds=FORGET_SECONDS)
        leading.cancel()
        await asyncio.gather(asyncio.wait({leading}), asyncio.sleep(FORGET_SECONDS))

    @property
    def functions(self) -> Mapping[str, Callable[[], bool]]:
        """Whether the caches are complete and show signs of life that each function needs: none waits for another's."""
        tickets = {"tickets": self.tickets.ready} if self.tickets else {}
        return {"extender": self._answers, "controller": self.controller.ready, **tickets}

    def _answers(self) -> bool:
        return self.extender.ready() and self.endpoints.ready()

    def ready(self) -> bool:
        """Whether every function is."""
        return all(ready() for ready in self.functions.values())

    def _remark(self) -> str:
        """What hinders this replica, though it is ready to answer."""
        if not self.leader.clock_differs:
            return ""
        seconds = self.leader.skew.total_seconds()
        return f"not leading: the API server's clock is {seconds:+.0f} s from ours"

    async def _measure_lag(self) -> None:
        while True:
            began = self._clock.monotonic()
            await asyncio.sleep(LAG_EVERY)
            metrics.LOOP_LAG.observe(max(0.0, self._clock.monotonic() - began - LAG_EVERY))

    async def _measure(self) -> None:
        """Bring the gauges up to date. What budgets count is made anew in slices first: others run in between."""
        await self.controller.cache.nodes_by.refresh()
        for name, age in self.informers.ages().items():
            metrics.AGE.labels(name).set(min(age, 1e9))
        for name, count in self.informers.unreadable().items():
            metrics.UNREADABLE.labels(name).set(count)
        metrics.LEADER.set(self.leader.is_leader)
        metrics.SKEW.set(self.leader.skew.total_seconds())
        await self.controller.measure()
        if self.tickets is not None:
            self.tickets.measure()


def elector(
    client: Client, settings: Settings, clock: Clock, on_set_back: Callable[[], None] = lambda: None
) -> Elector:
    """The elector of the one lease that lets a replica write; see there for `on_set_back`."""
    return Elector(
        client,
        names.LEASE,
        settings.namespace,
        settings.identity,
        clock,
        duration=settings.lease_duration,
        renew=settings.lease_renew,
        retry=settings.lease_retry,
        on_set_back=on_set_back,
        notes={names.SETTINGS: str(Running(settings.breaker, settings.api_pods_node_selector))},
    )


def _scoring(settings: Settings) -> Scoring:
    """How the extender scores. Raises OSError, and ValueError with the place, for a workload that cannot be read."""
    file = settings.extender_workload
    return Scoring(Score(settings.extender_score), pinned.read(file) if file is not None else None)


def _prometheus(settings: Settings, clock: Clock, make: Callable[..., "Prometheus"]) -> "Prometheus | None":
    """Who is asked what policies want confirmed, where the settings name one."""
    if not settings.prometheus_url:
        return None
    token, authority = settings.prometheus_token_file, settings.prometheus_ca_file
    return make(settings.prometheus_url, clock, token=token, authority=authority)


def _tickets(
    client: Client,
    settings: Settings,
    informers: Informers,
    leader: Leader,
    clock: Clock,
    github: Callable[..., Channel],
    alertmanagers: Alertmanagers | None,
) -> Tickets | None:
    """Tickets where routes say to which repository they go; nothing is sent to anybody without."""
    given = (settings.webhook_token_file, settings.github_token_file, settings.github_app_key_file)
    if settings.routes is None:
        if any(given):
            raise ValueError("--routes is needed for tickets: a file that says which repository issues go to")
        return None
    from remediator.tickets.channels.github.limits import problem

    channel = github(settings.github_url, _credentials(settings), clock, spacing=settings.github_spacing)
    where = LiveRoutes(settings.routes, problem)
    private = PrivateOnly(channel, where, clock)
    most = settings.issues_per_hour
    limits = FloodLimits(fold_nodes=settings.fold_alerts_at, per_hour=most) if most else None
    times = Times(reopen_within=duration(settings.reopen_within))
    tickets = Tickets(client, private, where, informers, leader, clock, times, alertmanagers, limits)
    OnDemand(client, channel, tickets, where, informers, leader, clock).look()
    return tickets


def _rooms(
    client: Client,
    settings: Settings,
    tickets: Tickets | None,
    leader: Leader,
    clock: Clock,
    make: Callable[["Room"], "Chat"],
) -> "Rooms | None":
    """The rooms that hear of tickets, where a file names some."""
    if settings.chat is None or tickets is None:
        return None
    from remediator.live_file import LiveFile
    from remediator.tickets.channels.rooms import load
    from remediator.tickets.chat.run import Rooms
    from remediator.tickets.metrics import ROOMS_OUTDATED

    rooms = LiveFile(settings.chat, load, "rooms", ROOMS_OUTDATED)
    served = Rooms(client, rooms, make, tickets.cache, tickets.routes, leader, clock)
    leader.add(served.queue)
    tickets.rooms_outdated = lambda: served.outdated
    return served


def _alertmanagers(settings: Settings, clock: Clock, make: Callable[..., AlertSource]) -> Alertmanagers | None:
    """Who is asked what fires, where the settings name some."""
    if not settings.alertmanager_url:
        return None
    token, authority = settings.alertmanager_token_file, settings.alertmanager_ca_file
    given = {"token": token, "authority": authority, "matcher": settings.alertmanager_matcher}
    sources = [make(url, clock, **given) for url in settings.alertmanager_url]
    return Alertmanagers(sources, settings.alertmanager_receiver, settings.alertmanager_watchdog)


def _credentials(settings: Settings) -> "Credentials":
    """Of a token or of an App, whichever the options name."""
    from remediator.tickets.channels.github import AppKeyFile, GithubTokenFile

    app, installation, key = settings.github_app_id, settings.github_app_installation_id, settings.github_app_key_file
    token = settings.github_token_file
    if key and app and installation and not token:
        return AppKeyFile(app, installation, key)
    if key or app or installation:
        raise ValueError(
            "--github-app-id, --github-app-installation-id and --github-app-key-file are needed together, "
            "and --github-token-file not beside them"
        )
    if token is None:
        raise ValueError(
            "--github-token-file is needed beside --routes: a file with a token that may write issues; or an App: "
            "--github-app-id, --github-app-installation-id and --github-app-key-file"
        )
    return GithubTokenFile(token)
