"""The HTTPS listener of the embedded server, on loopback."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import yaml
from aiohttp import web

from remediator_sim.apiserver import certificates
from remediator_sim.apiserver.dispatch import ApiDispatcher, Request, Response
from remediator_sim.apiserver.faults import Severed
from remediator_sim.apiserver.watch import Watch

_LARGEST_BODY = 64 * 2**20


class Endpoint(NamedTuple):
    """Where a listener is reached. The files go when it ends."""

    url: str
    ca_file: Path
    kubeconfig: Path


@asynccontextmanager
async def listen(dispatcher: ApiDispatcher, port: int) -> AsyncIterator[Endpoint]:
    """Serve `dispatcher` over HTTPS on 127.0.0.1; port 0 takes a free one."""
    app = web.Application(client_max_size=_LARGEST_BODY)
    app.router.add_route("*", "/{path:.*}", _Handler(dispatcher).handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    with TemporaryDirectory(prefix="embedded-apiserver-") as folder:
        files = certificates.make(Path(folder))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=context)
            await site.start()
            url = f"https://127.0.0.1:{runner.addresses[0][1]}"
            yield Endpoint(url, files.ca, _kubeconfig(Path(folder), url, files.ca))
        finally:
            await runner.cleanup()


def _kubeconfig(folder: Path, url: str, ca: Path) -> Path:
    """A kubeconfig for an administrator."""
    name = "embedded"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority": str(ca)}}],
        "users": [{"name": "admin", "user": {"token": "admin"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


class _Handler:
    def __init__(self, dispatcher: ApiDispatcher) -> None:
        self._dispatcher = dispatcher

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Carry one HTTP request to the dispatcher and its answer back."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Request(request.method, request.path, list(request.query.items()), headers, await request.read())
        try:
            answer = await self._dispatcher.handle(asked)
            if answer.watch is None:
                return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
            return await _stream(request, answer, answer.watch)
        except Severed:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()


async def _stream(request: web.Request, answer: Response, watch: Watch) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.enable_chunked_encoding()
    try:
        await response.prepare(request)
        async for chunk in watch:
            await response.write(chunk)
        await response.write_eof()
    except ConnectionResetError:
        pass  # the client has gone
    finally:
        watch.close()
    return response
