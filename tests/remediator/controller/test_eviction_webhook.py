"""Who leads has the API server know us by the authority that we have, and writes nothing else there."""

import base64
import json
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from remediator.controller.eviction_webhook import AGAIN, SOON, EvictionWebhook
from remediator.core.names import EVICTION_WEBHOOK, EVICTIONS, SERVING_SECRET, SYSTEM_NAMESPACE
from remediator.kube.api.builtin import SECRET, Secret
from remediator.kube.api.webhook_configuration import WEBHOOKS, new_authority
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator_sim.apiserver import EmbeddedServer
from tests.harness import yaml_files
from tests.harness.benches import ROOT
from tests.harness.kinds import NAMESPACES

SHIPPED = next(
    each for each in yaml_files.read_all(ROOT / "deploy/evictions/webhook.yaml") if each["kind"] == WEBHOOKS.name
)
WHOLE: Kind[dict[str, Any]] = Kind(WEBHOOKS.group, "v1", WEBHOOKS.plural, WEBHOOKS.name, dict)


class World:
    """A server with our namespace, and what looks after the configuration."""

    def __init__(self) -> None:
        self.client = Client(EmbeddedServer().transport())
        self.writer = EvictionWebhook(self.client, SYSTEM_NAMESPACE)

    async def begin(self, *webhooks: dict[str, Any]) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        if webhooks:
            await self.client.create(WHOLE, SHIPPED | {"webhooks": list(webhooks)})

    async def serve_by(self, authority: bytes) -> None:
        meta = {"name": SERVING_SECRET, "namespace": SYSTEM_NAMESPACE}
        held = Secret(meta, {"ca.crt": authority} if authority else {})
        await self.client.create(SECRET, held, namespace=SYSTEM_NAMESPACE)

    async def webhooks(self) -> list[dict[str, Any]]:
        found = (await self.client.get(WHOLE, EVICTIONS))["webhooks"]
        return json.loads(json.dumps(found))  # type: ignore[no-any-return]


@pytest.fixture
async def world() -> World:
    return World()


async def test_the_authority_is_written_where_there_is_none_and_nothing_else_changes(world: World) -> None:
    await world.begin(*SHIPPED["webhooks"])
    await world.serve_by(b"first")
    assert await world.writer.look() == AGAIN
    (found,), (shipped,) = await world.webhooks(), SHIPPED["webhooks"]
    written = base64.b64encode(b"first").decode()
    assert found == shipped | {"clientConfig": {**shipped["clientConfig"], "caBundle": written}}


async def test_a_new_authority_takes_the_place_of_the_old_one_and_the_same_is_not_written_twice(world: World) -> None:
    await world.begin(*SHIPPED["webhooks"])
    await world.serve_by(b"first")
    await world.writer.look()
    version = (await world.client.get(WHOLE, EVICTIONS))["metadata"]["resourceVersion"]
    await world.writer.look()
    assert (await world.client.get(WHOLE, EVICTIONS))["metadata"]["resourceVersion"] == version
    secret = await world.client.get(SECRET, SERVING_SECRET, namespace=SYSTEM_NAMESPACE)
    renewed = Secret(secret.metadata, {"ca.crt": b"second"})
    await world.client.replace(SECRET, SERVING_SECRET, renewed, namespace=SYSTEM_NAMESPACE)
    await world.writer.look()
    (found,) = await world.webhooks()
    assert base64.b64decode(found["clientConfig"]["caBundle"]) == b"second"


@pytest.mark.parametrize("authority", [b"", None], ids=["an empty Secret", "no Secret"])
async def test_before_there_is_a_certificate_nothing_is_written_and_it_is_looked_again_soon(
    world: World, authority: bytes | None
) -> None:
    await world.begin(*SHIPPED["webhooks"])
    if authority is not None:
        await world.serve_by(authority)
    assert await world.writer.look() == SOON
    assert await world.webhooks() == SHIPPED["webhooks"]


async def test_without_the_configuration_nothing_is_made(world: World) -> None:
    await world.begin()
    await world.serve_by(b"first")
    assert await world.writer.look() == AGAIN
    assert await world.client.list_all(WHOLE) == []


def test_of_a_configuration_without_our_webhook_nothing_is_changed() -> None:
    def read(**changed: Any) -> Any:
        raw = json.dumps(SHIPPED | {"webhooks": [SHIPPED["webhooks"][0] | changed]})
        return msgspec.json.decode(raw, type=WEBHOOKS.type)

    assert new_authority(read(name="evictions.example.com"), b"a") is None
    assert new_authority(read(), b"") is None
    body = json.loads(msgspec.json.encode(new_authority(read(), b"a")))
    assert body == {"webhooks": [{"name": EVICTION_WEBHOOK, "clientConfig": {"caBundle": "YQ=="}}]}


async def test_what_hinders_it_is_said_once_and_it_goes_on(world: World) -> None:
    async def away(*given: Any, **form: Any) -> Any:
        raise errors.Forbidden(403, "Forbidden", "secrets is forbidden")

    world.client.transport.request = away  # type: ignore[method-assign]
    with capture_logs() as said:
        assert [await world.writer._pass("authority") for _ in range(2)] == [AGAIN, AGAIN]
    (line,) = said
    assert (line["log_level"], "secrets is forbidden" in line["error"]) == ("warning", True)


@pytest.mark.parametrize(("bundle", "lines"), [(b"", 1), (b"theirs", 0)], ids=["no authority", "one of the user"])
async def test_with_certificates_of_a_user_it_warns_once_where_no_authority_is_written_and_writes_none(
    world: World, bundle: bytes, lines: int
) -> None:
    (shipped,) = SHIPPED["webhooks"]
    written = {"caBundle": base64.b64encode(bundle).decode()} if bundle else {}
    before = shipped | {"clientConfig": {**shipped["clientConfig"], **written}}
    await world.begin(before)
    await world.serve_by(b"ours")
    with capture_logs() as said:
        assert (
            await EvictionWebhook(world.client, SYSTEM_NAMESPACE, makes_certificates=False)._pass("authority") is None
        )
    assert [line["log_level"] for line in said] == ["warning"] * lines
    assert all("--tls-cert-file" in line["event"] and "evictionWebhook.enabled" in line["remedy"] for line in said)
    assert await world.webhooks() == [before]


async def test_with_certificates_of_a_user_and_without_the_configuration_it_says_nothing(world: World) -> None:
    await world.begin()
    with capture_logs() as said:
        assert (
            await EvictionWebhook(world.client, SYSTEM_NAMESPACE, makes_certificates=False)._pass("authority") is None
        )
    assert said == []
