"""Where bundles go off the node: the controller signs, the node gets a URL for one object and a few minutes."""

import asyncio
import json
import threading
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from nodelib.host.bundle import deliver
from remediator.clock import SYSTEM
from remediator.controller.bundle_store import BundleStore, load
from remediator.controller.explain import explain, snapshot
from remediator.core import names
from remediator.core.breaker import Breaker
from tests.harness.canaries import stored
from tests.harness.controller import RUNS, Answer, ControllerHarness, controller_harness, running, until
from tests.harness.kinds import SECRETS

pytestmark = pytest.mark.sampled("bundle store")

NOW = datetime(2026, 11, 26, 14, 30, tzinfo=UTC)
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
STORE = BundleStore("https://s3.example.com/bundles/prod/", "eu-west-1", "AKIAIOSFODNN7EXAMPLE", SECRET)
FILE = f"url: {STORE.url}\nregion: {STORE.region}\naccessKey: {STORE.access_key}\nsecretKey: {SECRET}\n"


def test_a_url_is_signed_for_one_object_and_a_few_minutes_and_holds_no_secret() -> None:
    url = STORE.put_url("gpu-1/case-1.tar.gz", NOW, timedelta(minutes=4))
    parts, query = urlsplit(url), parse_qs(urlsplit(url).query)
    assert (parts.netloc, parts.path) == ("s3.example.com", "/bundles/prod/gpu-1/case-1.tar.gz")
    assert query["X-Amz-Expires"] == ["240"]
    assert query["X-Amz-Date"] == ["20261126T143000Z"]
    assert query["X-Amz-Credential"] == ["AKIAIOSFODNN7EXAMPLE/20261126/eu-west-1/s3/aws4_request"]
    assert SECRET not in url
    assert SECRET not in repr(STORE)


def test_another_object_another_time_or_another_key_is_another_signature() -> None:
    signed = {
        STORE.put_url("gpu-1/a", NOW, timedelta(minutes=4)),
        STORE.put_url("gpu-2/a", NOW, timedelta(minutes=4)),
        STORE.put_url("gpu-1/a", NOW, timedelta(minutes=5)),
        STORE.put_url("gpu-1/a", NOW + timedelta(seconds=1), timedelta(minutes=4)),
        BundleStore(STORE.url, STORE.region, STORE.access_key, "other").put_url("gpu-1/a", NOW, timedelta(minutes=4)),
    }
    assert len({url.rpartition("X-Amz-Signature=")[2] for url in signed}) == 5


def test_the_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "store").write_text(FILE)
    assert load(tmp_path / "store") == STORE


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("https://s3", "http://s3", "url is not https://HOST/BUCKET"),
        ("/prod/", "/prod?x=1", "url is not https://HOST/BUCKET"),
        ("https://", "https://user:word@", "url is not https://HOST/BUCKET"),
        ("region: eu-west-1", "region: EU west", "region is not the name of a region"),
        ("accessKey: AKIA", "accessKey: A B", "accessKey is not one word of ASCII"),
        ("secretKey:", "secret:", "unknown field `secret`"),
        ("secretKey: ", "# ", "missing required field `secretKey`"),
        (FILE, "{", "it is no YAML; write the file as docs/operations.md shows"),
    ],
)
def test_a_wrong_file_is_refused_by_the_name_of_its_field_and_its_secret_is_not_said(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    (tmp_path / "store").write_text(FILE.replace(old, new))
    with pytest.raises(ValueError, match=r"^--bundle-store ") as wrong:
        load(tmp_path / "store")
    assert said in str(wrong.value)
    assert "EXAMPLEKEY" not in str(wrong.value)


def url_of(harness: ControllerHarness) -> str:
    """The URL that the one Pod has in the Secret of its name."""
    (pod,), (secret,) = harness.pods(names.DIAGNOSTICS_TEMPLATE), harness.all(SECRETS)
    made = {key: pod["metadata"][key] for key in ("name", "uid")}
    assert secret["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Pod", **made}]
    assert secret["metadata"]["name"] == pod["metadata"]["name"]
    return b64decode(secret["data"]["BUNDLE_URL"]).decode()


@pytest.mark.parametrize("refused", [0, 2])
async def test_the_url_stands_in_a_secret_for_which_the_pod_waits_and_that_goes_with_it(refused: int) -> None:
    """Also where the first two tries to make it fail, as after the end of a controller between Pod and Secret."""
    async with controller_harness() as harness:
        harness.answer(names.DIAGNOSTICS_TEMPLATE, RUNS)
        await harness.policy()
        harness.server.faults.refuse(500, times=refused, when=lambda asked: asked.path.endswith("/secrets"))
        async with running(harness) as controller:
            controller.cache.bundle_store = STORE
            await harness.node("gpu-1", "True")
            await until(lambda: harness.pods(names.DIAGNOSTICS_TEMPLATE, "Running"))
        url, (pod,) = url_of(harness), harness.pods(names.DIAGNOSTICS_TEMPLATE)
    env = {entry["name"]: entry for entry in pod["spec"]["containers"][0]["env"]}
    reference = {"name": pod["metadata"]["name"], "key": "BUNDLE_URL"}
    assert env["BUNDLE_URL"] == {"name": "BUNDLE_URL", "valueFrom": {"secretKeyRef": reference}}
    assert urlsplit(url).path == f"/bundles/prod/gpu-1/{env['ATTEMPT_ID']['value']}.tar.gz"
    assert "X-Amz-" not in str(pod)


class Repeats(BaseHTTPRequestHandler):
    """A store, or what stands before it, that answers with what it was sent."""

    status = 200

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(f"<SignatureProvided>{self.path.rpartition('=')[2]}</SignatureProvided> {self.path}".encode())

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("status", [200, 403])
async def test_neither_the_key_nor_what_signs_a_url_shows_outside_the_secret(
    status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """The controller signs, the program of the node sends, and a proxy repeats the URL: status, Events, Pods, log."""
    answer: Any = Sends()
    sent = type("Store", (Repeats,), {"status": status})
    store = ThreadingHTTPServer(("127.0.0.1", 0), sent)
    threading.Thread(target=store.serve_forever, daemon=True).start()
    where = f"http://127.0.0.1:{store.server_port}/bundles"
    try:
        async with controller_harness() as harness:
            harness.answer(names.DIAGNOSTICS_TEMPLATE, answer)
            harness.answer("reboot", RUNS)
            await harness.policy()
            async with running(harness) as controller:
                controller.cache.bundle_store = BundleStore(where, "eu-west-1", STORE.access_key, SECRET)
                await harness.node("gpu-1", "True")
                await until(lambda: harness.pods("reboot"))
            (case,) = harness.cases("gpu-1")
            written = stored(harness.server)
    finally:
        store.shutdown()
        store.server_close()
    signature = parse_qs(urlsplit(answer.url).query)["X-Amz-Signature"][0]
    said = "answers 403 to PUT" if status == 403 else f"{where}/gpu-1/{case['metadata']['name']}.tar.gz"
    assert said in str(case["status"]["evidence"])
    assert said in written
    assert "secretKeyRef" in written, "Pods are among what was looked at"
    seen = {"written": written, "case": str(case), "output": "".join(capfd.readouterr())}
    assert [(name, word) for name, text in seen.items() for word in (SECRET, signature) if word in text] == []


class Sends:
    """The answer of a Pod: what collect-diagnostics does with the URL that it was given, and says of it."""

    exit, starts, message, url = 0, True, "", ""

    async def does(self, harness: ControllerHarness, node: str) -> None:
        self.url = url_of(harness)
        try:
            where = await asyncio.to_thread(deliver, b"bundle", self.url, "case", node, Path("/"))
            said = {"bundle": where}
        except OSError as error:
            said = {"unreadable": {"bundle": str(error)}}
        self.message = json.dumps(said)


async def test_without_a_store_no_pod_has_a_url() -> None:
    async with controller_harness() as harness:
        harness.answer(names.DIAGNOSTICS_TEMPLATE, RUNS)
        await harness.policy()
        async with running(harness):
            await harness.node("gpu-1", "True")
            await until(lambda: harness.pods(names.DIAGNOSTICS_TEMPLATE))
            assert "BUNDLE_URL" not in str(harness.pods())
            assert harness.all(SECRETS) == []


async def test_explain_says_where_the_bundle_is() -> None:
    async with controller_harness() as harness:
        harness.answer(names.DIAGNOSTICS_TEMPLATE, Answer(message='{"bundle": "https://s3.example.com/c.tar.gz"}'))
        harness.answer("reboot", RUNS)
        await harness.policy()
        await harness.node("gpu-1", "True")
        async with running(harness):
            await until(lambda: harness.pods("reboot"))
        cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
        node = cache.nodes.get("gpu-1")
        assert node is not None
        lines = list(explain(cache, node, Breaker(), SYSTEM.now()))
    assert "  bundle of its evidence: https://s3.example.com/c.tar.gz" in lines
