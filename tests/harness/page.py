"""The page over real sockets: an embedded API server, the caches that follow it, readers by a table of tokens."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from remediator.clock import SYSTEM
from remediator.controller.cache import ClusterCache
from remediator.kube.informers import Informers
from remediator.settings import Settings
from remediator.web.endpoints import PAGE
from remediator.web.listener import ConnectionLimits, Endpoint
from remediator.web.page.entry import Door
from remediator.web.page.readers import Entry
from remediator.web.page.routes import FleetPage
from remediator.web.page.source import PageSource
from tests.harness.cluster import MemoryCluster

TOKENS = {"good": Entry.MAY, "poor": Entry.FORBIDDEN, "late": Entry.LATER}


class TableOfReaders:
    """What becomes of each token; of any other it is not known whose it is."""

    def __init__(self, tokens: Mapping[str, Entry]) -> None:
        self._tokens = tokens

    async def entry(self, token: str) -> Entry:
        """As the table says."""
        return self._tokens.get(token, Entry.NOT_SIGNED_IN)


@dataclass(frozen=True)
class ServedPage:
    """Its address, the endpoint, and the page itself."""

    url: str
    endpoint: Endpoint
    page: FleetPage
    session: aiohttp.ClientSession
    tokens: dict[str, Entry]

    async def get(self, path: str, token: str = "good", method: str = "GET", **headers: str) -> tuple[int, str]:
        """Status and text; nobody is led elsewhere."""
        status, _, text = await self.answer(path, token, method, **headers)
        return status, text

    async def answer(
        self, path: str, token: str = "good", method: str = "GET", **headers: str
    ) -> tuple[int, Mapping[str, str], str]:
        """The same with headers, whose names have _ for -."""
        shown = {"Authorization": f"Bearer {token}"} if token else {}
        sent = shown | {name.replace("_", "-"): value for name, value in headers.items()}
        asked = self.session.request(method, self.url + path, headers=sent, allow_redirects=False)
        async with asked as answer:
            return answer.status, answer.headers, await answer.text()


@asynccontextmanager
async def page_served(
    cluster: MemoryCluster, *, signs: bool = True, limits: ConnectionLimits = PAGE, **settings: Any
) -> AsyncIterator[ServedPage]:
    """Once the caches are complete."""
    made = Settings(identity="replica-1", **settings)
    informers = Informers(cluster.client, SYSTEM, made.namespaces)
    source = PageSource(cluster.client, ClusterCache(informers), made, SYSTEM)
    tokens = dict(TOKENS)
    page = FleetPage(source, Door(TableOfReaders(tokens), signs=signs), made.identity, SYSTEM)
    endpoint = Endpoint("page", page.application(), limits)
    following = asyncio.create_task(informers.run())
    try:
        await informers.synced()
        async with endpoint.served("127.0.0.1:0") as port, aiohttp.ClientSession() as session:
            yield ServedPage(f"http://127.0.0.1:{port}", endpoint, page, session, tokens)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
