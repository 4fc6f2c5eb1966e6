"""Where a bundle goes: what signs its URL, or would let us in, shows in no sentence."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodelib.host import bundle

SIGNED = "X-Amz-Signature=canary1234567890canary1234567890"


@contextmanager
def store(answer: bytes) -> Iterator[str]:
    """Its address; it answers each of a few requests with this, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(bundle.TRIES):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_what_a_store_says_that_is_no_http_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "PAUSE", 0.01)
    with store(f"you sent PUT /b/n?{SIGNED}\r\n\r\n".encode()) as address, pytest.raises(OSError) as caught:
        bundle.deliver(b"x", f"http://{address}/b/n?{SIGNED}", "n", "gpu-1", tmp_path)
    said = "does not answer to PUT: BadStatusLine: what came is not HTTP, or breaks off"
    assert str(caught.value) == f"Busy: {address} {said}"


@pytest.mark.parametrize(
    "url",
    ["http://me:canary@h/b", "http://h:canary/b", "http://[canary/b", f"http://h/b n?{SIGNED}", f"http:///b?{SIGNED}"],
)
def test_a_url_to_which_nothing_can_be_sent_is_refused_without_its_words(tmp_path: Path, url: str) -> None:
    with pytest.raises(OSError) as caught:
        bundle.deliver(b"x", url, "n", "gpu-1", tmp_path)
    assert str(caught.value) == "the URL of BUNDLE is none of the form https://HOST:PORT/PATH?QUERY, or names a user"


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("s3://me:canary@bucket/x", "s3://..."),
        (f"HTTPS://h/x?{SIGNED}", "HTTPS://..."),
        (f"gs://b/o?GoogleAccessId=sa@iam&{SIGNED}", "gs://..."),
        (f"HTTPS://h/x#{SIGNED}", "HTTPS://..."),
        ("me:can?ary@bucket/x", "..."),
        ("folder", "folder"),
    ],
)
def test_a_target_of_another_kind_is_named_without_what_lets_us_in(tmp_path: Path, target: str, shown: str) -> None:
    with pytest.raises(OSError) as caught:
        bundle.deliver(b"x", target, "n", "gpu-1", tmp_path)
    wanted = "give an absolute path on the node or a URL (http, https) to PUT to"
    assert str(caught.value) == f"BUNDLE is {shown!r}: {wanted}"
