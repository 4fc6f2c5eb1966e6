"""The parts of the page, put together."""

from aiohttp import web

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.kube.wire.client import Client
from remediator.settings import Settings
from remediator.web.page.entry import Door
from remediator.web.page.readers import AUDIENCE, OF_API_SERVER, Everybody, TokenReaders
from remediator.web.page.routes import FleetPage
from remediator.web.page.source import PageSource


def page(client: Client, cache: ClusterCache, settings: Settings, clock: Clock) -> web.Application:
    """With --no-tls everybody on this machine reads; otherwise whom the API server knows."""
    audiences = (AUDIENCE, OF_API_SERVER) if settings.page_api_tokens else (AUDIENCE,)
    readers = Everybody() if settings.no_tls else TokenReaders(client, clock, audiences)
    source = PageSource(client, cache, settings, clock)
    return FleetPage(source, Door(readers, signs=not settings.no_tls), settings.identity, clock).application()
