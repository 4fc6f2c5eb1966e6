"""Prometheus over sockets, by a script: on loopback, with any answer that a server could give."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from remediator_sim.prometheus import MemoryPrometheus, PrometheusReply

Params = Mapping[str, str]


class FakePrometheus:
    """Answers by `script`, or else as its memory says. `asked`: the path, the parameters and the headers of each.

    `connections`: the addresses that have asked.
    """

    def __init__(self) -> None:
        self.memory = MemoryPrometheus(time.time)
        self.script: Callable[[Params], PrometheusReply | Callable[[BaseHTTPRequestHandler], None]] = self.memory.answer
        self.asked: list[tuple[str, Params, Mapping[str, str]]] = []
        self.connections: set[Any] = set()
        self.url = ""
        self.write = self.memory.write


@contextmanager
def fake_prometheus(
    wrap: Callable[[Any], Any] = lambda socket: socket, scheme: str = "http"
) -> Iterator[FakePrometheus]:
    """A server that answers until the block is left; `wrap` makes TLS of its socket."""
    fake = FakePrometheus()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            params = {key: values[0] for key, values in parse_qs(parts.query).items()}
            fake.connections.add(self.client_address)
            fake.asked.append((parts.path, params, dict(self.headers)))
            reply = fake.script(params)
            if callable(reply):
                self.close_connection = True
                reply(self)
                return
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Who asked has gone, as some tests have it."""

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = wrap(server.socket)
    fake.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
