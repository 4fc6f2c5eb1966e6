"""PyGithub's connection to a GitHub in this process: no socket, no thread, and no time passes."""

from collections.abc import Callable, ItemsView, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import requests
from github.Requester import Requester
from urllib3.exceptions import HTTPError, MaxRetryError, NewConnectionError, ProtocolError, ReadTimeoutError
from urllib3.util import Retry

from remediator_sim.github.dispatch import Reply


class GithubAccess(Protocol):
    """The way to a GitHub."""

    def carry(self, method: str, url: str, headers: Mapping[str, str], raw: bytes) -> Reply | None:
        """The reply to one request; None where no connection comes about."""
        ...

    def pause(self, seconds: float) -> None:
        """Note that so many seconds should pass before the next request."""
        ...


@contextmanager
def connected(line: GithubAccess) -> Iterator[None]:
    """Let each `Github` that is made in here send its requests over this line, for as long as it lives."""
    made: Any = partial(_Connection, line)
    Requester.injectConnectionClasses(made, made)
    try:
        yield
    finally:
        Requester.resetConnectionClasses()


class _Connection:
    """Has the methods of PyGithub's connections. Repeats reads as requests does, by the rule that the client brings."""

    def __init__(
        self, line: GithubAccess, host: str, port: int | None, *, retry: Retry, timeout: int = 15, **_: Any
    ) -> None:
        self.host, self._line, self._retry, self._timeout = host, line, retry, timeout
        self._verb, self._url = "", ""
        self._send: Callable[[], Reply | None] = lambda: None

    def request(self, verb: str, url: str, text: str | None, headers: Mapping[str, str], stream: bool = False) -> None:
        """Take in one request."""
        self._verb, self._url = verb, url
        self._send = partial(self._line.carry, verb, url, dict(headers), (text or "").encode())

    def getresponse(self) -> "_Response":
        """Send it, again where the rule says so. Raises what requests raises."""
        retry = self._retry
        while True:
            try:
                reply = self._reply()
            except HTTPError as error:
                retry = self._again(retry, error)
            else:
                if not retry.is_retry(self._verb, reply.status) or retry.total == 0:
                    return _Response(reply)
                retry = retry.increment(self._verb, self._url)
            self._line.pause(retry.get_backoff_time())

    def close(self) -> None:
        """Nothing is held."""

    def _reply(self) -> Reply:
        reply = self._send()
        if reply is None:
            raise NewConnectionError(self.host, "Connection refused")  # type: ignore[arg-type]  # only its text counts
        if reply.silent:
            self._line.pause(self._timeout)
            raise ReadTimeoutError(None, self._url, "Read timed out.")  # type: ignore[arg-type]  # the same
        if reply.cut:
            raise ProtocolError("Connection aborted.", ConnectionResetError("Connection reset by peer"))
        return reply

    def _again(self, retry: Retry, error: HTTPError) -> Retry:
        try:
            return retry.increment(self._verb, self._url, error=error)
        except ReadTimeoutError as late:
            raise requests.ReadTimeout(late) from None
        except (MaxRetryError, ProtocolError) as last:
            raise requests.ConnectionError(last) from None


class _Response:
    """One answer, as PyGithub reads it."""

    def __init__(self, reply: Reply) -> None:
        self.status, self._reply = reply.status, reply

    def getheaders(self) -> ItemsView[str, str]:
        return self._reply.headers.items()

    def read(self) -> str:
        return self._reply.body.decode()
