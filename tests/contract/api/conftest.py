"""One server, one namespace and one API of its own for each case."""

from functools import partial

import pytest

from tests.cluster import REAL
from tests.cluster.servers import serving
from tests.contract.api import calls
from tests.contract.api.calls import Api, fresh, node
from tests.contract.api.widgets import Widgets
from tests.harness.waiting import until


@pytest.fixture(params=["memory", "http", REAL])
async def server(request):
    async with serving(request.param, request) as server:
        yield server


@pytest.fixture
def api(server):
    return Api(server.transport)


@pytest.fixture
async def space(api):
    """A namespace of the test's own, with its default service account."""
    name = fresh("space")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    (await api.post("/api/v1/namespaces", body)).ok(201)

    async def account():
        return (await api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")).status == 200

    await until(account)
    return name


@pytest.fixture
def configmaps(space):
    return f"/api/v1/namespaces/{space}/configmaps"


@pytest.fixture
def pods(space):
    return f"/api/v1/namespaces/{space}/pods"


@pytest.fixture
async def node_path(api):
    """The path of a new node."""
    name = fresh("node")
    (await api.post("/api/v1/nodes", node(name))).ok(201)
    return f"/api/v1/nodes/{name}"


@pytest.fixture
def pod(node_path):
    """Makes Pods that are bound to a new node which nobody plays, so that only the API server touches them.

    A cluster deletes every Pod of a node that does not exist for 40 seconds, and tells every Pod of one that has been
    silent for 60 seconds that it is not Ready: so the node exists, and no other test has it.
    """
    return partial(calls.pod, nodeName=node_path.rpartition("/")[2])


@pytest.fixture
async def widgets(api, server):
    """A custom kind without objects. A real server, which takes a second for a new one, keeps it for all tests."""
    kind = Widgets("widgets")
    if server.name != "real" or (await api.get(kind.crd_path)).status == 404:
        await kind.create(api)
    yield kind
    (await api.delete(kind.path)).ok()


@pytest.fixture
async def own_widgets(api):
    """A custom kind that no other test has."""
    kind = Widgets(fresh("widgets").replace("-", ""))
    await kind.create(api)
    return kind
