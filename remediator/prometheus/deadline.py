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
from urllib3.util import Retry

_asked = threading.local()  # the deadline of what this thread asks


class Deadline:
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

    def watch(self, connected: socket.socket) -> None:
        """Shut this connection down, too, when the time is over."""
        # A descriptor of our own: TLS takes the first one over, and the number of one that is closed is given anew.
        own = socket.socket(fileno=os.dup(connected.fileno()))
        with self._lock:
            self._watched.append(own)
        if self._timer is None:
            self._timer = threading.Timer(max(0.0, self._until - self._monotonic()), self._end)
            self._timer.daemon = True
            self._timer.start()

    def _end(self) -> None:
        with self._lock:
            self.passed = True
            for connected in self._watched:
                with suppress(OSError):  # the server was first
                    connected.shutdown(socket.SHUT_RDWR)


class _Limited(HTTPConnection):
    """A connection that ends with the deadline of the question that uses it."""

    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        _watch(connected)
        return connected

    def request(self, *args: Any, **named: Any) -> None:
        """See HTTPConnection. A connection that was kept has the deadline of this question now."""
        if self.sock is not None:
            _watch(self.sock)
        super().request(*args, **named)


def _watch(connected: socket.socket) -> None:
    deadline: Deadline | None = getattr(_asked, "deadline", None)
    if deadline:
        deadline.watch(connected)


class _LimitedTls(_Limited, HTTPSConnection):
    """The same over TLS, its handshake included."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Limited


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
