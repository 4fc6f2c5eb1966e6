"""Bundles go to an object store that others wrote (moto), and AWS's own library (botocore) would sign them alike."""

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from minio import Minio

from nodelib.host.bundle import deliver
from remediator.controller.bundle_store import BundleStore
from remediator_sim.ports import free_port
from tests.harness.waiting import until
from tests.oracle.cached import installed_or_skip, pip

pytestmark = pytest.mark.cluster
PINS = "store-requirements.txt"
NOW = datetime(2026, 11, 26, 14, 30, tzinfo=UTC)
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
# botocore reads the clock itself: here it is told what time it is.
SIGNED_BY_AWS = """
import json, sys
from datetime import datetime, timezone
import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
url, region, key, secret, now, seconds = json.loads(sys.argv[1])
at = datetime.fromtimestamp(now, timezone.utc)
botocore.auth.get_current_datetime = lambda remove_tzinfo=True: at.replace(tzinfo=None) if remove_tzinfo else at
request = AWSRequest("PUT", url)
botocore.auth.S3SigV4QueryAuth(Credentials(key, secret), "s3", region, seconds).add_auth(request)
print(request.url)
"""


@pytest.fixture(scope="module")
def libraries() -> Path:
    return installed_or_skip("store", (PINS,), lambda new: pip(PINS, new))


@pytest.fixture
async def server(libraries: Path, tmp_path: Path) -> AsyncIterator[str]:
    """The address of a store with one bucket."""
    port = free_port()
    command = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    with (tmp_path / "log").open("wb") as log:
        env = {**os.environ, "PYTHONPATH": str(libraries)}
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log, env=env)
    try:
        await until(lambda: b"Running on" in (tmp_path / "log").read_bytes(), 60)
        address = f"http://127.0.0.1:{port}"
        await asyncio.to_thread(reader(address).make_bucket, "bundles")
        yield address
    finally:
        process.terminate()
        await process.wait()


def reader(address: str) -> Minio:
    """Whoever has the key, and so may read."""
    return Minio(urlsplit(address).netloc, KEY, SECRET, secure=False, region="us-east-1")


def read(address: str, name: str) -> bytes:
    reply = reader(address).get_object("bundles", name)
    try:
        return bytes(reply.read())
    finally:
        reply.close()


def put(bundle: bytes, url: str, folder: Path) -> str:
    return deliver(bundle, url, "case-1", "gpu-1", folder)


async def test_a_store_of_others_takes_a_bundle_by_a_url_of_ours_and_gives_it_back_whole(
    server: str, tmp_path: Path
) -> None:
    bundle = os.urandom(3 << 20)
    url = BundleStore(f"{server}/bundles/prod", "us-east-1", KEY, SECRET).put_url(
        "gpu-1/case-1.tar.gz", datetime.now(UTC), timedelta(minutes=4)
    )
    place = await asyncio.to_thread(put, bundle, url, tmp_path)
    assert place == f"{server}/bundles/prod/gpu-1/case-1.tar.gz"
    assert await asyncio.to_thread(read, server, "prod/gpu-1/case-1.tar.gz") == bundle


async def test_without_what_signs_it_the_address_of_a_bundle_gives_nothing(server: str, tmp_path: Path) -> None:
    url = BundleStore(f"{server}/bundles", "us-east-1", KEY, SECRET).put_url(
        "a", datetime.now(UTC), timedelta(minutes=4)
    )
    place = await asyncio.to_thread(put, b"all", url, tmp_path)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        await asyncio.to_thread(urllib.request.urlopen, place, timeout=10)


async def test_a_bucket_that_is_not_there_is_said(server: str, tmp_path: Path) -> None:
    url = BundleStore(f"{server}/other", "us-east-1", KEY, SECRET).put_url("a", datetime.now(UTC), timedelta(minutes=4))
    with pytest.raises(OSError, match=r"(?s)answers 404 to PUT: .*NoSuchBucket"):
        await asyncio.to_thread(put, b"all", url, tmp_path)


@pytest.mark.parametrize(
    ("url", "region", "name", "seconds"),
    [
        ("https://s3.example.com/bundles", "us-east-1", "gpu-1/case-1.tar.gz", 240),
        ("https://bundles.s3.eu-west-1.amazonaws.com", "eu-west-1", "gpu-1.rack-2/gpu-lost-3f9c01ab7e.tar.gz", 1),
        ("https://minio.store.svc:9000/a_b~c/prod/", "us-east-1", "n/c.tar.gz", 604_800),
        ("http://127.0.0.1:9000/bundles", "us-east-1", "n/c.tar.gz", 60),
    ],
)
def test_the_library_of_aws_signs_alike(libraries: Path, url: str, region: str, name: str, seconds: int) -> None:
    ours = BundleStore(url, region, KEY, SECRET).put_url(name, NOW, timedelta(seconds=seconds))
    asked = json.dumps([f"{url.rstrip('/')}/{name}", region, KEY, SECRET, NOW.timestamp(), seconds])
    env = {**os.environ, "PYTHONPATH": str(libraries)}
    theirs = subprocess.run(
        [sys.executable, "-c", SIGNED_BY_AWS, asked], env=env, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()
    assert urlsplit(ours)[:3] == urlsplit(theirs)[:3]
    assert parse_qs(urlsplit(ours).query) == parse_qs(urlsplit(theirs).query)
