"""How programs on nodes ask the API server: what it says is passed on, but for what we have sent."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from nodelib.k8s.api import Api, ServerError
from tests.harness.certificates import self_signed

TOKEN = "canary-of-this-pod"


class Quotes(BaseHTTPRequestHandler):
    """It says what it was sent; the last part of the path is the status."""

    def do_GET(self) -> None:
        """Answer."""
        body = b'{"message": "you sent %s"}' % self.headers["Authorization"].encode()
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    context, _ = self_signed(tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "namespace").write_text("remediator-operations")
    with HTTPServer(("127.0.0.1", 0), Quotes) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Api(
            {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.server_port)}, str(tmp_path)
        )
        server.shutdown()


@pytest.mark.parametrize("status", [401, 403, 404, 422])
def test_a_refusal_that_quotes_our_token_comes_without_it(api: Api, status: int) -> None:
    assert api.get(f"/api/v1/pods/{status}").message == "you sent Bearer [secret]"


def test_neither_does_what_a_server_says_that_fails(api: Api) -> None:
    with pytest.raises(ServerError, match=r"^you sent Bearer \[secret\]$"):
        api.get("/api/v1/pods/500")


def test_what_was_asked_for_comes_as_it_is(api: Api) -> None:
    assert api.get("/api/v1/pods/200").body == {"message": f"you sent Bearer {TOKEN}"}
