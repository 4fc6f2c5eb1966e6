"""Where bundles go off the node: the controller signs, the node gets a URL for one object and a few minutes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from remediator.clock import SYSTEM
from remediator.controller.bundle_store import BundleStore, load
from remediator.controller.explain import explain, snapshot
from remediator.core import names
from remediator.core.breaker import Breaker
from tests.harness.controller import RUNS, Answer, controller_harness, running, until

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


async def test_only_the_pod_that_collects_gets_a_url_and_only_where_there_is_a_store() -> None:
    async with controller_harness() as harness:
        harness.answer(names.DIAGNOSTICS_TEMPLATE, RUNS)
        await harness.policy()
        async with running(harness) as controller:
            controller.cache.bundle_store = STORE
            await harness.node("gpu-1", "True")
            await until(lambda: harness.pods(names.DIAGNOSTICS_TEMPLATE))
            (pod,) = harness.pods(names.DIAGNOSTICS_TEMPLATE)
    env = {entry["name"]: entry["value"] for entry in pod["spec"]["containers"][0]["env"]}
    assert urlsplit(env["BUNDLE_URL"]).path == f"/bundles/prod/gpu-1/{env['ATTEMPT_ID']}.tar.gz"
    assert SECRET not in str(pod)


async def test_without_a_store_no_pod_has_a_url() -> None:
    async with controller_harness() as harness:
        harness.answer(names.DIAGNOSTICS_TEMPLATE, RUNS)
        await harness.policy()
        async with running(harness):
            await harness.node("gpu-1", "True")
            await until(lambda: harness.pods(names.DIAGNOSTICS_TEMPLATE))
            assert "BUNDLE_URL" not in str(harness.pods())


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
