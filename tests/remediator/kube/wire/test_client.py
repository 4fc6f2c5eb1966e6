"""The addresses of objects: whatever a name is, a request stays with its kind."""

import pytest
from aiohttp import web

from remediator.kube.wire.client import Client
from remediator.kube.wire.errors import Invalid
from remediator_sim.apiserver import EmbeddedServer
from tests.harness.kinds import NODES, PODS
from tests.remediator.kube.wire.test_http import talking_to


@pytest.mark.parametrize("name", ["../secrets", "..", ".", "a/proxy/x", "../nodes?watch=true&x=1", "a%2Fproxy"])
def test_what_can_be_no_name_is_refused_before_anything_is_sent(name: str) -> None:
    with pytest.raises(Invalid, match="can be no name of an object"):
        NODES.path(name)
    with pytest.raises(Invalid, match="can be no name of an object"):
        PODS.path("web", name)


async def test_an_object_without_a_name_is_not_read_as_a_list_of_all() -> None:
    server = EmbeddedServer()
    with pytest.raises(Invalid, match="one of pods is read by its name"):
        await Client(server.transport()).get(PODS, "", namespace="web")


@pytest.mark.parametrize("name", ["a?watch=true", "a#b", "a b", "a&x=1", "system:node", "gpu-17.example.org"])
async def test_a_name_reaches_the_server_as_it_is_and_as_part_of_the_path(name, tmp_path) -> None:
    heard = []

    async def handler(request: web.Request) -> web.Response:
        heard.append((request.path, request.query_string))
        return web.json_response({})

    async with talking_to(tmp_path, handler) as transport:
        await transport.request("GET", NODES.path(name))
    assert heard == [(f"/api/v1/nodes/{name}", "")]
