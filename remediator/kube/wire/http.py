"""The transport to a real API server.

`kubernetes.aio` provides kubeconfig and in-cluster settings, tokens, exec plugins, TLS, proxies and the connection
pool. Only this file uses its internals (`update_params_for_auth`, `rest_client`, `refresh_token`).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import structlog
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from remediator.kube.wire import errors, kubeconfig
from remediator.kube.wire.transport import JSON, Query, Reply

CONNECT_SECONDS = 10.0
REFRESH_SECONDS = 60.0
# Of streams: from Kubernetes 1.37 on each event of a watch would be compressed by itself, which costs both sides.
PLAIN = "identity"
log = structlog.get_logger(__name__)


class HttpTransport:
    """A Transport over HTTP(S). Made by `from_kubeconfig` or `in_cluster`; `close` it in the loop that made it."""

    def __init__(self, configuration: Any) -> None:
        configuration.client_session_kwargs = {"trust_env": False}
        self._client = ApiClient(configuration)
        self._server: str = configuration.host
        way = {
            "server_hostname": configuration.tls_server_name,
            "proxy": configuration.proxy or _proxy_of_environment(configuration.host),
            "proxy_headers": configuration.proxy_headers,
        }
        self._way: dict[str, Any] = {name: value for name, value in way.items() if value}
        self._refresher: asyncio.Task[None] | None = None

    @classmethod
    async def from_kubeconfig(cls, path: str | Path) -> Self:
        """Connect as the current context of a kubeconfig says.

        `path` may be several files joined by ":", as in the variable KUBECONFIG. Raises FileNotFoundError where none of
        them is there, ValueError and `kubernetes.aio.config.ConfigException` for what is wrong in them.
        """
        current = kubeconfig.current_context(str(path))  # the library would take that of the last file
        configuration = Configuration()
        loader = await config.load_kube_config(str(path), current, configuration, persist_config=False)
        if loader._user and "exec" in loader._user and not (configuration.api_key or configuration.cert_file):
            raise ValueError("exec of the user gave neither a token nor a certificate")  # the library logs why
        if token := configuration.api_key.get("BearerToken", "").strip():  # a tokenFile ends with a line break
            configuration.api_key["BearerToken"] = token
        if not token.isprintable():
            raise ValueError("token of the user: has a line break, or another character that no token has")
        transport = cls._secure(configuration)
        if "BearerToken" in configuration.api_key:
            transport._refresher = asyncio.create_task(_refresh(loader, configuration))
        return transport

    @classmethod
    async def in_cluster(cls) -> Self:
        """Connect as the Pod's service account; its token is read anew every minute. Raises ConfigException outside."""
        configuration = Configuration()
        config.load_incluster_config(configuration)
        return cls._secure(configuration)

    @classmethod
    def _secure(cls, configuration: Any) -> Self:
        """Raises ValueError where the addresses or the certificates cannot be used."""
        for field, url in (("server", configuration.host), ("proxy-url", configuration.proxy)):
            if (url or field == "server") and not _is_url(url):
                raise ValueError(f"{field} of the cluster is {url!r}, not a URL such as https://HOST:PORT")
        try:
            return cls(configuration)
        except ssl.SSLError as error:
            fields = "certificate-authority, client-certificate or client-key, or their -data"
            raise ValueError(f"{fields}: not the PEM that was expected ({error})") from error

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes = b"",
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> Reply:
        """One request and its whole answer. Raises Unavailable when none came within `timeout` seconds."""
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_SECONDS)
        with _speaking_to(self._server):
            response = await self._call(method, path, query, limits, body, content_type, accept)
            async with response:
                return Reply(response.status, await response.read(), _lower(response.headers))

    @asynccontextmanager
    async def stream(self, path: str, *, query: Query = (), idle_timeout: float = 75.0) -> AsyncIterator["_HttpStream"]:
        """A GET whose body is read as it comes; left early, its connection is closed."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_timeout)
        with _speaking_to(self._server):
            response = await self._call("GET", path, query, limits, encoding=PLAIN)
        try:
            yield _HttpStream(response, self._server)
        finally:
            response.close()

    async def close(self) -> None:
        """Close every connection and end the token refresh."""
        if self._refresher is not None:
            self._refresher.cancel()
            with suppress(asyncio.CancelledError):
                await self._refresher
        await self._client.close()

    async def _call(
        self,
        method: str,
        path: str,
        query: Query,
        limits: aiohttp.ClientTimeout,
        body: bytes = b"",
        content_type: str = JSON,
        accept: str = JSON,
        encoding: str = "gzip",
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": "remediator"}
        headers["Accept-Encoding"] = encoding
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
        url = self._server + path
        return await self._session().request(
            method, url, params=list(query), data=body or None, headers=headers, timeout=limits, **self._way
        )

    def _session(self) -> aiohttp.ClientSession:
        """The library's pool, with its TLS settings. Its own `call_api` encodes JSON itself, for 0.5 ms a request."""
        rest = self._client.rest_client
        if rest.pool_manager is None:
            rest.pool_manager = rest._create_pool_manager()
        session: aiohttp.ClientSession = rest.pool_manager
        return session


class _HttpStream:
    """The open body of one answer."""

    def __init__(self, response: aiohttp.ClientResponse, server: str) -> None:
        self._response, self._server = response, server
        self.status = response.status
        self.headers = _lower(response.headers)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _speaking_to(self._server):
            async for chunk in self._response.content.iter_any():
                yield chunk


def _proxy_of_environment(server: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY ask for, None for none.

    They are read once: aiohttp would read them, and ~/.netrc, before each request, and wait for a thread for both.
    """
    url = urlsplit(server)
    return None if not url.hostname or proxy_bypass(url.hostname) else getproxies().get(url.scheme)


def _is_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0  # a port out of range raises
    except ValueError:
        return False


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@contextmanager
def _speaking_to(server: str) -> Iterator[None]:
    """Turn every way of getting no answer into Unavailable."""
    try:
        yield
    except (aiohttp.ClientError, OSError, TimeoutError, config.ConfigException) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise errors.Unavailable(0, "Unreachable", f"no answer from {server}: {why}") from error


async def _refresh(loader: Any, configuration: Any) -> None:
    """Keep the token of an exec plugin fresh: the library offers this, but does not start it and stops at an error."""
    while True:
        try:
            await config.refresh_token(loader, configuration, interval=REFRESH_SECONDS)
            return  # a token that never changes
        except Exception as error:
            log.warning("token not refreshed", server=configuration.host, error=str(error))
            await asyncio.sleep(REFRESH_SECONDS)
