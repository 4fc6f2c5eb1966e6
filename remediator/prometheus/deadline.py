"""A limit on the whole time of one question: time-outs of sockets begin anew with each byte that a server sends."""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, NameResolutionError, NewConnectionError
from urllib3.util import Retry

from remediator.prometheus.addresses import Lookups

_lookups = Lookups()
_asked = threading.local()  # the deadline of what this thread asks


class QuestionDeadline:
    """While it is entered, connections that its thread uses are shut down when the time is over.

    Whatever waits for the server then ends with an error or with half an answer; `passed` says that this is why.
    """

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self.passed = False
        self._until, self._monotonic = monotonic() + seconds, monotonic
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._watched: list[socket.socket] = []

    def __enter__(self) -> Self:
        _asked.deadline = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _asked.deadline = None
        if self._timer:
            self._timer.cancel()
        with self._lock:
            for connected in self._watched:
                connected.close()
            self._watched.clear()

    @property
    def left(self) -> float:
        """Seconds until the time is over; 0 when it is."""
        return max(0.0, self._until - self._monotonic())

    def watch(self, connected: socket.socket) -> None:
        """Shut this connection down, too, when the time is over."""
        # A descriptor of our own: TLS takes the first one over, and the number of one that is closed is given anew.
        own = socket.socket(fileno=os.dup(connected.fileno()))
        with self._lock:
            self._watched.append(own)
        if self._timer is None:
            self._timer = threading.Timer(self.left, self._end)
            self._timer.daemon = True
            self._timer.start()

    def _end(self) -> None:
        with self._lock:
            self.passed = True
            for connected in self._watched:
                with suppress(OSError):  # the server was first
                    connected.shutdown(socket.SHUT_RDWR)


class _LimitedHttp(HTTPConnection):
    """A connection that ends with the deadline of the question that uses it."""

    def _new_conn(self) -> socket.socket:
        deadline = _deadline()
        if deadline is None:
            return super()._new_conn()
        connected = self._connect(deadline)
        deadline.watch(connected)
        return connected

    def _connect(self, deadline: QuestionDeadline) -> socket.socket:
        """Try the addresses of its name while there is time. Raises NoAddress, or what the last one came to."""
        name, timeout = self._dns_host, self.timeout
        failure: HTTPError = NewConnectionError(self, "there was no time to try an address")
        try:
            for address in self._addresses(deadline):
                if not deadline.left:
                    break
                self._dns_host, self.timeout = address, min(float(timeout or deadline.left), deadline.left)
                try:
                    return super()._new_conn()
                except HTTPError as failed:
                    failure = failed
        finally:  # TLS compares the name, not the address
            self._dns_host, self.timeout = name, timeout
        raise failure

    def _addresses(self, deadline: QuestionDeadline) -> list[str]:
        try:
            return _lookups.addresses(self._dns_host.strip("[]"), self.port, deadline.left)
        except socket.gaierror as failed:
            raise NameResolutionError(self.host, self, failed) from failed

    def request(self, *args: Any, **named: Any) -> None:
        """See HTTPConnection. A connection that was kept has the deadline of this question now."""
        if self.sock is not None:
            _watch(self.sock)
        super().request(*args, **named)


def _deadline() -> QuestionDeadline | None:
    return getattr(_asked, "deadline", None)


def _watch(connected: socket.socket) -> None:
    if deadline := _deadline():
        deadline.watch(connected)


class _LimitedTls(_LimitedHttp, HTTPSConnection):
    """The same over TLS, its handshake included."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _LimitedHttp


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _LimitedTls


class LimitedAdapter(HTTPAdapter):  # type: ignore[misc]
    """Carries requests over connections that end with the deadline of their question."""

    def __init__(self) -> None:
        super().__init__(max_retries=Retry(0, read=False))

    def init_poolmanager(self, *args: Any, **named: Any) -> None:
        """See HTTPAdapter."""
        super().init_poolmanager(*args, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
