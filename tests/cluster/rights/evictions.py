"""The part of a replica that the API server asks about evictions, on loopback, with the rights of the controller."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, TypeVar

from aiohttp import web

from remediator.clock import SYSTEM as CLOCK
from remediator.controller.eviction_webhook import EvictionWebhook
from remediator.controller.evictions import EvictionJudge
from remediator.core.names import EVICTION_WEBHOOK, EVICTIONS, SERVING_SECRET, Namespaces
from remediator.kube.api.builtin import SECRET, Secret
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import synced
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.web import evictions
from remediator.web.endpoints import EVICTIONS as LIMITS
from remediator.web.listener import Endpoint
from remediator.web.serving import FromSecret, Tls
from tests.cluster.control_plane import HOST, ControlPlane
from tests.cluster.rights.asking import SYSTEM, Object

T = TypeVar("T")
CONTROLLER = f"system:serviceaccount:{SYSTEM}:remediator"
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}")
CONFIGURATION = f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{EVICTIONS}"
SECONDS = 60


class EvictionAnswers:
    """`start()`, then `url` is what the API server is to ask; `hide()` as if all replicas were away, until `show()`."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane, self._loop = plane, asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._ends = AsyncExitStack()
        self._port, self._shown = 0, AsyncExitStack()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"https://{HOST}:{self._port}{evictions.PATH}"

    @property
    def patch(self) -> Object:
        """What has the API server ask there, in place of the Service that nobody plays here."""
        client = {"service": None, "url": self.url}
        return {"webhooks": [{"name": EVICTION_WEBHOOK, "clientConfig": client}]}

    def start(self) -> None:
        """Serve, and begin to follow operations."""
        self._thread.start()
        self._do(self._begin())

    def stop(self) -> None:
        """No more."""
        if self._thread.is_alive():
            self._do(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(SECONDS)

    def show(self) -> None:
        """Serve at `url`."""
        self._do(self._serve())

    def hide(self) -> None:
        """Nobody answers there any more."""
        self._do(self._shown.aclose())

    def write_authority(self) -> None:
        """As who leads does each minute."""
        self._do(EvictionWebhook(self._client, SYSTEM).look())

    def renew(self) -> None:
        """Serve by an authority that is new altogether, as after somebody has emptied the Secret and we began anew."""
        self._do(self._renew())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    async def _begin(self) -> None:
        transport = await HttpTransport.from_kubeconfig(self._plane.kubeconfig_for(CONTROLLER, GROUPS))
        self._ends.push_async_callback(transport.close)
        self._client = Client(transport)
        self._informers = Informers(self._client, CLOCK, Namespaces())
        self._judge = EvictionJudge(self._client, self._informers.operations, Namespaces())
        self._tls = Tls(FromSecret(self._client, SYSTEM, CLOCK, None), tokens=())
        await self._tls.look()
        watching = asyncio.create_task(self._informers.run())
        self._ends.push_async_callback(_ended, watching)
        await synced(self._informers.operations)
        await self._serve()

    async def _serve(self) -> None:
        app = web.Application()
        app.add_routes(evictions.routes(self._judge, evictions.bodies()))
        endpoint = Endpoint(evictions.NAME, app, LIMITS, None, partial(self._tls.context, evictions.NAME))
        self._port = await self._shown.enter_async_context(endpoint.served(f"{HOST}:{self._port}"))

    async def _renew(self) -> None:
        held = await self._client.get(SECRET, SERVING_SECRET, namespace=SYSTEM)
        await self._client.replace(SECRET, SERVING_SECRET, Secret(held.metadata), namespace=SYSTEM)
        await self._tls.look()
        await self._shown.aclose()  # a connection that stands knows nothing of it
        await self._serve()

    async def _end(self) -> None:
        await self._shown.aclose()
        await self._ends.aclose()


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
