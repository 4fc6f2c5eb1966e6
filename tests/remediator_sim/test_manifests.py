"""Deploying what is shipped on a server that takes a moment to serve a kind that is new to it."""

import pytest

from remediator.kube import api
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator_sim import manifests
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.plain import plain

LATE = 3  # looks at which a kind is not served yet


@pytest.mark.sampled
@pytest.mark.parametrize("kind", api.KINDS, ids=lambda kind: kind.plural)
async def test_a_kind_that_is_served_only_at_the_fourth_look_is_waited_for(kind) -> None:
    server = EmbeddedServer()
    server.faults.refuse(404, times=LATE, when=lambda asked: asked.path == kind.path())
    client = Client(server.transport())
    await manifests.deploy(client, lambda document: document)
    shipped = manifests.documents([*manifests.BEFORE, *manifests.AFTER])
    wanted = {one["metadata"]["name"] for one in shipped if one["kind"] == kind.name}
    assert {one["metadata"]["name"] for one in await client.list_all(plain(kind))} == wanted


async def test_a_kind_that_is_never_served_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "LOOKS", 2)
    server = EmbeddedServer()
    server.faults.refuse(404, times=100, when=lambda asked: asked.path == api.OPERATION.path())
    with pytest.raises(TimeoutError, match=r"does not serve nodeoperations 0\.2 s after"):
        await manifests.deploy(Client(server.transport()), lambda document: document)


@pytest.mark.slow
async def test_what_is_there_is_not_sent_again_and_what_was_taken_away_is() -> None:
    server = EmbeddedServer()
    client = Client(server.transport())
    await manifests.deploy(client, lambda document: document)
    server.faults.refuse(500, when=lambda asked: asked.method == "POST")
    await manifests.deploy(client, lambda document: document)
    await manifests.withdraw(client)
    with pytest.raises(errors.ApiError, match="refused by a planned fault"):
        await manifests.deploy(client, lambda document: document)
    await manifests.deploy(client, lambda document: document)
    shipped = manifests.documents(manifests.AFTER)
    wanted = {one["metadata"]["name"] for one in shipped if one["kind"] == api.POLICY.name}
    assert {one["metadata"]["name"] for one in await client.list_all(plain(api.POLICY))} == wanted
