"""The transport to a real API server, over aiohttp: connection pool, proxies, time limits."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from remediator.kube.wire import errors, service_account
from remediator.kube.wire.connection import Connection, is_url, without_user, wrong_user
from remediator.kube.wire.transport import JSON, Query, Reply

CONNECT_SECONDS = 10.0
AT_ONCE = 100  # connections, those of watches among them
READ_AHEAD = 2**21  # bytes: one event of a watch is a whole object
# Of streams: from Kubernetes 1.37 on each event of a watch would be compressed by itself, which costs both sides.
PLAIN = "identity"
AS_ASKED = (200, 201)  # what was asked for comes as it is
ESCAPED = re.compile(rb"\\(?:u00([2-7][0-9A-Fa-f])|(.))", re.DOTALL)  # of JSON: what a token may have, and all others
MOST_REFUSED, REFUSED_SECONDS = 2**16, 10.0  # bytes of a refused stream that are read, and for how long
# What an aiohttp error says may be what the other side has sent, which may be what we have sent: it is not repeated.
SORTS: dict[type[aiohttp.ClientError], str] = {
    aiohttp.ConnectionTimeoutError: "no connection in time",
    aiohttp.ServerDisconnectedError: "it closed the connection",
    aiohttp.RedirectClientError: "it redirects to what is no URL of HTTP",
    aiohttp.TooManyRedirects: "it redirects without end",
    aiohttp.InvalidURL: "its address, or that of the proxy before it, is no URL of HTTP",
    aiohttp.ClientPayloadError: "its answer breaks off, or is not encoded as it says",
    aiohttp.ClientResponseError: "what it answers is not HTTP",
}


class UnusableProxy(ValueError):
    """The environment names a proxy that cannot be one; a sentence that says what would help."""


class HttpTransport:
    """A Transport over HTTP(S). Make it by `from_kubeconfig` or `in_cluster`, and `close` it in the same loop."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        way = {
            "server_hostname": connection.tls_server_name,
            "proxy": connection.proxy or _proxy_of_environment(connection.server),
        }
        self._way: dict[str, Any] = {name: value for name, value in way.items() if value}
        self._renewal = asyncio.create_task(connection.renewal()) if connection.renewal else None

    @classmethod
    async def from_kubeconfig(cls, path: str | Path) -> Self:
        """Connect as the current context of a kubeconfig says.

        `path` may be several files joined by ":", as in the variable KUBECONFIG. Raises FileNotFoundError where none of
        them is there, and ValueError or OSError for what is wrong in them.
        """
        # Only here: a controller in a Pod has none to read.
        from remediator.kube.wire import kubeconfig_connection

        return cls(await kubeconfig_connection.connection(str(path)))

    @classmethod
    async def in_cluster(cls) -> Self:
        """Connect as the Pod's service account. Raises ValueError or OSError outside a cluster."""
        return cls(service_account.connection())

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
        headers = self._headers(content_type, accept, "gzip")
        with _speaking_to(self.connection.server):
            response = await self._call(method, path, query, limits, headers, body)
            async with response:
                answer = _said(response.status, await response.read(), headers)
                return Reply(response.status, answer, _lower(response.headers))

    @asynccontextmanager
    async def stream(self, path: str, *, query: Query = (), idle_timeout: float = 75.0) -> AsyncIterator["_HttpStream"]:
        """A GET whose body is read as it comes; left early, its connection is closed."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_timeout)
        headers = self._headers(JSON, JSON, PLAIN)
        with _speaking_to(self.connection.server):
            response = await self._call("GET", path, query, limits, headers)
        try:
            yield _HttpStream(response, self.connection.server, headers)
        finally:
            response.close()

    async def close(self) -> None:
        """Close every connection and end the renewal of the token."""
        if self._renewal is not None:
            self._renewal.cancel()
            with suppress(asyncio.CancelledError):
                await self._renewal
        if "_session" in vars(self):
            await self._session.close()

    async def _call(
        self,
        method: str,
        path: str,
        query: Query,
        limits: aiohttp.ClientTimeout,
        headers: Mapping[str, str],
        body: bytes = b"",
    ) -> aiohttp.ClientResponse:
        url = self.connection.server + path
        return await self._session.request(
            method, url, params=list(query), data=body or None, headers=headers, timeout=limits, **self._way
        )

    def _headers(self, content_type: str, accept: str, encoding: str) -> dict[str, str]:
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": "remediator"}
        headers["Accept-Encoding"] = encoding
        if authorization := self.connection.authorization():
            headers["Authorization"] = authorization
        return headers

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        """The pool, made in the loop that uses it."""
        connector = aiohttp.TCPConnector(limit=AT_ONCE, ssl=self.connection.tls or True)
        return aiohttp.ClientSession(connector=connector, read_bufsize=READ_AHEAD)


class _HttpStream:
    """The open body of one answer."""

    def __init__(self, response: aiohttp.ClientResponse, server: str, sent: Mapping[str, str]) -> None:
        self._response, self._server, self._sent = response, server, sent
        self.status = response.status
        self.headers = _lower(response.headers)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _speaking_to(self._server):
            if self.status >= 400:
                yield _said(self.status, await self._refusal(), self._sent)
                return
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def _refusal(self) -> bytes:
        """Its beginning; nothing of one that does not end in time, so that no half of a token is in it."""
        body = bytearray()
        try:
            async with asyncio.timeout(REFUSED_SECONDS):
                while chunk := await self._response.content.read(MOST_REFUSED - len(body)):
                    body += chunk
        except TimeoutError:
            return b""
        return bytes(body)


def _proxy_of_environment(server: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY ask for, None for none.

    They are read once: aiohttp would read them, and ~/.netrc, before each request, and wait for a thread for both.
    Raises UnusableProxy for what is no URL.
    """
    url = urlsplit(server)
    if not url.hostname or proxy_bypass(url.hostname) or not (proxy := getproxies().get(url.scheme)):
        return None
    whole = proxy if "/" in proxy.rstrip("/") else f"http://{proxy}"  # HOST:PORT, as curl and kubectl read it
    wrong = wrong_user(whole) if is_url(whole) else "only http:// and https:// proxies, as http://HOST:PORT"
    if not wrong:
        return whole
    raise UnusableProxy(
        f"{url.scheme.upper()}_PROXY of the environment is {without_user(proxy)!r}: {wrong}; "
        f"correct or unset it, or put {url.hostname} into NO_PROXY"
    )


def _said(status: int, body: bytes, sent: Mapping[str, str]) -> bytes:
    """A body; all but what was asked for without what let us in: a server, or a proxy before it, may quote that."""
    secret = sent.get("Authorization", "").rpartition(" ")[2].encode()
    if not secret or status in AS_ASKED:
        return body
    body = body.replace(secret, b"[secret]")
    plain = ESCAPED.sub(_plain, body)
    return plain.replace(secret, b"[secret]") if secret in plain else body


def _plain(escaped: re.Match[bytes]) -> bytes:
    """What JSON says without need by an escape, as itself; the text stays the same JSON."""
    code, other = escaped.groups()
    char = bytes.fromhex(code.decode()) if code else other
    return escaped[0] if char in b'"\\' or other not in (None, b"/") else char


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@contextmanager
def _speaking_to(server: str) -> Iterator[None]:
    """Turn every way of getting no answer into Unavailable, without the error itself, which a traceback would show."""
    try:
        yield
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise errors.Unavailable(0, "Unreachable", f"no answer from {server}: {_why(error)}") from None


def _why(error: Exception) -> str:
    """In words of ours or of the operating system."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy before it answers with {error.status}"
    ours = next((words for sort, words in SORTS.items() if isinstance(error, sort)), "")
    words = str(error) if isinstance(error, OSError) else ""  # TimeoutError is one
    return ours or " ".join(words.split()) or type(error).__name__
