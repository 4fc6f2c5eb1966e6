"""Everything that one replica serves, each on a port of its own: probes with metrics, extender, webhooks, page."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from aiohttp import web

from remediator import secret_file
from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.evictions import EvictionJudge
from remediator.kube.wire.client import Client
from remediator.scheduler.extender import Extender
from remediator.settings import Settings
from remediator.tickets.reconcile.run import Tickets
from remediator.web import evictions, github_hook, gpushare, probes, webhook
from remediator.web import extender as extender_page
from remediator.web.caller import Anybody, Callers
from remediator.web.ending import ending_together
from remediator.web.listener import ConnectionLimits, Endpoint
from remediator.web.serving import Files, FromSecret, Tls

KUBE_SCHEDULER, ALERTMANAGER = "kube-scheduler", "alertmanager"  # the common names of their certificates
PROBES = ConnectionLimits(connections=32, strangers=32, first_seconds=30.0, idle_seconds=15.0)
EXTENDER = ConnectionLimits()
GITHUB = ConnectionLimits(connections=32, strangers=32, first_seconds=15.0)
# All of the API server come from one address: one for each drain, and those that it keeps between two evictions.
EVICTIONS = ConnectionLimits(connections=160, strangers=160, first_seconds=30.0)
PAGE = ConnectionLimits(connections=160, strangers=48)  # a browser has up to six, and those of many come from a proxy
WEBHOOK = ConnectionLimits(idle_seconds=10.0)  # Alertmanager opens many at once, and needs each for a moment


class Endpoints:
    """The ports that the settings name. Run it as a task, which keeps the certificate up to date."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        clock: Clock,
        extender: Extender,
        tickets: Tickets | None,
        cache: ClusterCache,
    ) -> None:
        self._client, self._clock, self._cache = client, clock, cache
        self._settings, self._extender, self._tickets = settings, extender, tickets
        self.tls = _tls(client, settings, clock)
        self.ports: dict[str, int] = {}  # by endpoint, while they are served

    def ready(self) -> bool:
        """Whether there is a certificate to serve with, where one is needed."""
        return self.tls is None or self.tls.ready()

    async def run(self) -> None:
        """Keep the certificate up to date, until cancelled."""
        if self.tls is not None:
            await self.tls.run()

    @asynccontextmanager
    async def served(
        self,
        functions: Mapping[str, Callable[[], bool]],
        measure: Callable[[], Awaitable[None]],
        remark: Callable[[], str],
        ending: Callable[[], bool],
    ) -> AsyncIterator[None]:
        """Serve until left. Raises OSError, for a person to read, where a port cannot be had.

        The arguments are those of `probes.application`.
        """
        settings = self._settings
        page = Endpoint("probes", probes.application(functions, measure, remark, ending), PROBES)
        rows = (
            ("probes", "--listen", settings.listen, lambda: page),
            ("extender", "--listen-extender", settings.listen_extender, self._of_schedulers),
            ("webhook", "--listen-webhook", settings.listen_webhook, self._of_alertmanager),
            ("github", "--listen-github", settings.listen_github, self._of_github),
            ("page", "--listen-page", settings.listen_page, self._of_readers),
            ("evictions", "--listen-evictions", settings.listen_evictions, self._of_api_server),
        )
        async with ending_together() as enter:
            for name, option, listen, made in rows:
                if listen is not None:
                    self.ports[name] = await enter(made().served(listen, option))
            yield

    def _of_schedulers(self) -> Endpoint:
        settings = self._settings
        taken = extender_page.bodies(settings.extender_whole_nodes)
        callers = self._callers(KUBE_SCHEDULER, settings.extender_token_file)
        if settings.no_tls and settings.extender_token_file is None:
            callers = Anybody()
        pages = extender_page.routes(self._extender, taken)
        if self._extender.shared is not None:
            pages += gpushare.routes(self._extender, self._extender.shared, taken)
        return self._endpoint("extender", pages, callers, EXTENDER)

    def _of_alertmanager(self) -> Endpoint:
        assert self._tickets is not None  # Settings has seen to it
        taken = webhook.bodies(self._settings.webhook_mib)
        callers = self._callers(ALERTMANAGER, self._settings.webhook_token_file)
        return self._endpoint("webhook", webhook.routes(self._tickets.receiver, taken), callers, WEBHOOK)

    def _of_github(self) -> Endpoint:
        """Everybody may connect; only a body with the right signature counts."""
        assert self._tickets is not None  # Settings has seen to both
        assert self._settings.github_webhook_secret_file is not None
        secret = partial(secret_file.read, self._settings.github_webhook_secret_file, secret_file.not_one_word)
        pages = github_hook.routes(self._tickets.hints, secret, github_hook.bodies())
        return self._endpoint("github", pages, None, GITHUB)

    def _of_readers(self) -> Endpoint:
        """Everybody may connect; only who shows a token of the cluster reads. Imported only where it is wanted."""
        from remediator.web.page.made import page

        app = page(self._client, self._cache, self._settings, self._clock)
        return self._of(app, "page", None, PAGE)

    def _of_api_server(self) -> Endpoint:
        """Everybody may connect: the API server shows nothing by which we could know it."""
        judge = EvictionJudge(self._client, self._cache.operations, self._settings.namespaces, self._no_drain_goes_on)
        return self._endpoint("evictions", evictions.routes(judge, evictions.bodies()), None, EVICTIONS)

    def _no_drain_goes_on(self) -> str:
        if not self._cache.operations.fresh():
            return "this replica has heard nothing of operations for a while"
        return "Remediator is paused" if self._cache.paused else ""

    def _callers(self, name: str, token: Path | None) -> Callers:
        """A token is read each time, so that it may be exchanged without a restart."""
        read = partial(secret_file.read, token, secret_file.not_one_word) if token else None
        return Callers("" if self.tls is None else name, read)

    def _endpoint(
        self, name: str, routes: list[web.RouteDef], callers: Callers | None, limits: ConnectionLimits
    ) -> Endpoint:
        app = web.Application()
        app.add_routes(routes)
        return self._of(app, name, callers, limits)

    def _of(self, app: web.Application, name: str, callers: Callers | None, limits: ConnectionLimits) -> Endpoint:
        context = partial(self.tls.context, name) if self.tls is not None else None
        return Endpoint(name, app, limits, callers, context)


def _tls(client: Client, settings: Settings, clock: Clock) -> Tls | None:
    if settings.no_tls or not settings.listens_with_tls:
        return None
    tokens = {"extender": settings.extender_token_file, "webhook": settings.webhook_token_file}
    tokens["github"] = settings.github_webhook_secret_file
    shown = [name for name, file in tokens.items() if file]
    if settings.tls_cert_file and settings.tls_key_file:
        return Tls(Files(settings.tls_cert_file, settings.tls_key_file, settings.client_ca_file), tokens=shown)
    return Tls(FromSecret(client, settings.namespace, clock, settings.client_ca_file), tokens=shown)
