"""How programs on nodes ask the API server: what it says is passed on, but for what we have sent."""

import argparse
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from nodelib.contract.operation import Failed
from nodelib.k8s import pod_list
from nodelib.k8s.api import Api, ServerError, Unreachable
from tests.harness.certificates import self_signed

TOKEN = "canary-of-this-pod"
DEEP = b'{"message": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NONE = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
RAW = {
    "line": b"you sent %s\r\n\r\n",
    "version": b"HTTP/%s 200 OK\r\n\r\n",
    "silence": b"",
    "chunk": NONE + b"Transfer-Encoding: chunked\r\n\r\n%s\r\n",
    "short": NONE + b"Content-Length: 99\r\n\r\n%s",
    "date": NONE + b"Date: %s\r\nContent-Length: 12\r\n\r\n" + b'{"items":[]}',
    "deletion": NONE
    + b"Date: Mon, 30 Nov 2026 08:00:00 GMT\r\n\r\n"
    + b'{"items":[{"metadata":{"uid":"u","deletionTimestamp":"%s"}}]}',
    "deep": NONE + b"Date: Mon, 30 Nov 2026 08:00:00 GMT\r\n\r\n" + DEEP,
}


class Quotes(BaseHTTPRequestHandler):
    """It says what it was sent; the last part of the path is the status, or a row of RAW."""

    says = b'{"message": "you sent %s"}'
    raw = b""

    def do_GET(self) -> None:
        """Answer."""
        sent = self.headers["Authorization"].encode()
        last = self.path.partition("?")[0].rpartition("/")[2]
        if answer := self.raw or RAW.get(last, b""):
            self.wfile.write(answer.replace(b"%s", sent.rpartition(b" ")[2]))
            return
        if not last.isdecimal():
            return  # silence
        body = self.says.replace(b"%s", sent)
        self.send_response(int(last))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    context, _ = self_signed(tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "namespace").write_text("remediator-operations")
    with HTTPServer(("127.0.0.1", 0), Quotes) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def api(tmp_path: Path, port: int) -> Api:
    return Api({"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}, str(tmp_path))


@pytest.mark.parametrize("status", [202, 203, 302, 401, 403, 404, 422])
def test_a_refusal_that_quotes_our_token_comes_without_it(api: Api, status: int) -> None:
    assert api.get(f"/api/v1/pods/{status}").message == "you sent Bearer [secret]"


def test_neither_does_one_that_quotes_it_in_escapes_of_json(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    escaped = "".join(rf"\u{ord(char):04x}" for char in TOKEN)
    monkeypatch.setattr(Quotes, "says", b'{"message": "\\u003cyou\\u003e sent %b"}' % escaped.encode())
    assert api.get("/api/v1/pods/403").message == "<you> sent [secret]"


def test_neither_does_what_a_server_says_that_fails(api: Api) -> None:
    with pytest.raises(ServerError, match=r"^you sent Bearer \[secret\]$"):
        api.get("/api/v1/pods/500")


@pytest.mark.parametrize("status", [200, 201])
def test_what_was_asked_for_comes_as_it_is(api: Api, status: int) -> None:
    assert api.get(f"/api/v1/pods/{status}").body == {"message": f"you sent Bearer {TOKEN}"}


@pytest.mark.parametrize("broken", ["line", "version", "silence", "chunk", "short"])
def test_an_answer_that_is_broken_is_never_repeated(api: Api, broken: str) -> None:
    with pytest.raises(Unreachable) as caught:
        api.get(f"/api/v1/{broken}")
    assert str(caught.value).startswith(f"GET /api/v1/{broken}: ")
    assert "canary" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("broken", ["line", "version", "403"])
def test_neither_is_that_of_a_watch(api: Api, broken: str) -> None:
    with pytest.raises(Unreachable) as caught:
        api.wait_for_change(f"/api/v1/{broken}", 5, 5.0)
    assert str(caught.value).startswith(f"watch of /api/v1/{broken}: ")
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_json_that_is_too_deep_is_a_refusal_in_words_and_a_change(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Quotes, "says", DEEP)
    with pytest.raises(Failed, match=r'^/api/v1/pods/403 cannot be read: {"message": \[{188}$'):
        api.get_object("/api/v1/pods/403")
    api.wait_for_change("/api/v1/pods/200", 5, 5.0)


NOT_HTTP = "what came is not HTTP, or breaks off"
LISTS = {
    "line": f"BadStatusLine: {NOT_HTTP}",
    "version": f"UnknownProtocol: {NOT_HTTP}",
    "chunk": f"IncompleteRead: {NOT_HTTP}",
    "short": f"IncompleteRead: {NOT_HTTP}",
    "date": "ValueError: the answer is no JSON, or has no date",
    "deletion": "ValueError: a Pod in the list makes no sense (ValueError)",
    "deep": "ValueError: the answer is no JSON, or has no date",
}


@pytest.mark.parametrize(("raw", "words"), LISTS.items(), ids=LISTS)
def test_a_list_of_pods_that_quotes_our_token_is_no_answer_and_shows_none(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: str, words: str
) -> None:
    """Status line, version, chunk, body, date, time of a Pod; and one that no parser of JSON takes."""
    monkeypatch.setattr(Quotes, "raw", RAW[raw])
    for name, value in (("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", str(port))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NODE_NAME", "gpu-1")
    options = argparse.Namespace(node_root=tmp_path, proc=tmp_path, kubelet_kubeconfig=None, token_dir=tmp_path)
    with pytest.raises(pod_list.CannotTell) as caught:
        pod_list.living(options, 5.0)
    assert str(caught.value) == f"the API server cannot be asked: {words}"
    assert "canary" not in "".join(traceback.format_exception(caught.value))
