"""Replicas share one certificate, renew it once, and take in a new one without a restart."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from structlog.testing import capture_logs

from remediator.clock import Clock
from remediator.core.names import SERVING_SECRET, SYSTEM_NAMESPACE
from remediator.kube.api.builtin import SECRET, Secret
from remediator.kube.wire.client import Client
from remediator.web import certificates
from remediator.web.serving import Files, FromSecret, Pem, Tls, served_names
from remediator_sim.apiserver import EmbeddedServer
from tests.harness import endpoints
from tests.harness.kinds import NAMESPACES

DAY = timedelta(days=1)


class Replicas:
    """Two that read one Secret, by a clock that a test may turn."""

    def __init__(self) -> None:
        self.server, self.now = EmbeddedServer(), datetime(2026, 11, 20, 12, tzinfo=UTC)
        self.client, clock = Client(self.server.transport()), Clock(lambda: self.now, lambda: 0.0)
        self.sources = [FromSecret(self.client, SYSTEM_NAMESPACE, clock, None) for _ in range(2)]

    async def read(self) -> list[Pem]:
        return list(await asyncio.gather(*(source.read() for source in self.sources)))

    async def secret(self) -> Secret:
        return await self.client.get(SECRET, SERVING_SECRET, namespace=SYSTEM_NAMESPACE)


@pytest.fixture
async def replicas() -> Replicas:
    made = Replicas()
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
    await made.client.create(NAMESPACES, space)
    await made.client.create(
        SECRET, Secret({"name": SERVING_SECRET, "namespace": SYSTEM_NAMESPACE}), namespace=SYSTEM_NAMESPACE
    )
    return made


async def test_two_replicas_that_find_the_secret_empty_serve_with_what_one_of_them_wrote(replicas: Replicas) -> None:
    one, other = await replicas.read()
    assert one == other == (await replicas.read())[0]
    assert one.chain == (await replicas.secret()).data["tls.crt"]


async def test_without_the_secret_it_is_made_once(replicas: Replicas) -> None:
    await replicas.client.delete(SECRET, SERVING_SECRET, namespace=SYSTEM_NAMESPACE)
    one, other = await replicas.read()
    assert one == other


async def test_two_replicas_renew_at_once_and_callers_that_trust_the_authority_see_no_difference(
    replicas: Replicas,
) -> None:
    (before, _), version = await replicas.read(), (await replicas.secret()).metadata["resourceVersion"]
    replicas.now += 59 * DAY
    assert await replicas.read() == [before, before]
    assert (await replicas.secret()).metadata["resourceVersion"] == version
    replicas.now += 2 * DAY
    one, other = await replicas.read()
    assert one == other
    assert one.chain != before.chain
    assert one.callers == before.callers


async def test_a_label_that_somebody_put_on_the_secret_survives_a_renewal(replicas: Replicas) -> None:
    await replicas.read()
    body = {"metadata": {"labels": {"team": "a"}}}
    await replicas.client.patch(SECRET, SERVING_SECRET, body, namespace=SYSTEM_NAMESPACE)
    replicas.now += 80 * DAY
    await replicas.read()
    assert (await replicas.secret()).metadata["labels"] == {"team": "a"}


async def test_a_secret_with_something_else_in_it_is_left_alone_and_said_once_without_what_it_holds(
    replicas: Replicas,
) -> None:
    secret = await replicas.secret()
    theirs = {"ca.crt": b"CANARY", "ca.key": b"CANARY", "tls.crt": b"CANARY", "tls.key": b"CANARY"}
    await replicas.client.replace(SECRET, SERVING_SECRET, Secret(secret.metadata, theirs), namespace=SYSTEM_NAMESPACE)
    tls = Tls(replicas.sources[0], tokens=())
    with capture_logs() as logs:
        await tls.look()
        await tls.look()
    assert [entry["event"] for entry in logs] == ["no certificate to serve with"]
    assert "CANARY" not in str(logs)
    assert not tls.ready()
    assert (await replicas.secret()).data == theirs


def written(folder: Path, days: int) -> Files:
    """Files of an authority, whose server certificate was made so many days ago."""
    found = certificates.renewed({}, served_names("a"), endpoints.NOW - days * DAY)
    assert found is not None
    for name, text in found.items():
        (folder / name).write_bytes(text)
    return Files(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")


async def test_new_files_are_served_to_new_connections_and_a_half_written_pair_changes_nothing(
    tmp_path: Path,
) -> None:
    tls = Tls(written(tmp_path, 10), tokens=())
    await tls.look()
    first = tls.context("extender")
    (tmp_path / "tls.crt").write_bytes(endpoints.authority()["tls.crt"])
    with capture_logs() as logs:
        await tls.look()
    assert [entry["event"] for entry in logs] == ["certificate not renewed"]
    assert tls.context("extender") is first
    (tmp_path / "tls.key").write_bytes(endpoints.authority()["tls.key"])
    await tls.look()
    assert tls.context("extender") not in (first, None)


NOT_PEM, ENCRYPTED = "no certificate", BestAvailableEncryption(b"x")


def encrypted() -> str:
    """A private key that only a password opens."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, ENCRYPTED).decode()


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("tls.crt", NOT_PEM, ["--tls-cert-file", "--tls-key-file", "(no PEM)"]),
        ("tls.key", NOT_PEM, ["--tls-cert-file", "--tls-key-file", "without a password"]),
        ("tls.key", encrypted(), ["--tls-cert-file", "--tls-key-file", "without a password"]),
        ("tls.crt", endpoints.authority()["tls.crt"].decode(), ["--tls-cert-file", "(KEY_VALUES_MISMATCH)"]),
        ("ca.crt", NOT_PEM, ["--client-ca-file", "signs the certificates of callers"]),
        ("tls.crt", None, ["--tls-cert-file", "cannot be read: No such file"]),
        ("tls.key", None, ["--tls-key-file", "cannot be read: No such file"]),
        ("ca.crt", None, ["--client-ca-file", "cannot be read: No such file"]),
    ],
)
async def test_what_is_wrong_with_a_file_names_its_option_and_what_to_write(
    tmp_path: Path, file: str, text: str | None, named: list[str]
) -> None:
    files = written(tmp_path, 0)
    if text is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(text)
    with capture_logs() as logs:
        await Tls(files, tokens=()).look()
    [entry] = logs
    assert entry["event"] == "no certificate to serve with"
    for words in [*named, str(tmp_path / file)]:
        assert words in entry["error"]


async def test_a_caller_must_show_a_certificate_where_no_token_would_do_instead(tmp_path: Path) -> None:
    tls = Tls(written(tmp_path, 0), tokens=("webhook",))
    assert tls.context("extender") is None
    await tls.look()
    modes = [found.verify_mode for name in ("extender", "webhook") if (found := tls.context(name))]
    assert modes == [ssl.CERT_REQUIRED, ssl.CERT_OPTIONAL]


def test_a_secret_shows_nothing_of_what_it_holds() -> None:
    assert "hunter2" not in repr(Secret({"name": "a"}, {"tls.key": b"hunter2"}))
