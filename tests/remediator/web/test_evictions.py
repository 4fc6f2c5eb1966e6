"""What the API server asks about an eviction and is answered, over sockets; and what strangers there can do."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from remediator.controller.evictions import EvictionJudge
from remediator.core.eviction import drain_account
from remediator.core.names import OPERATIONS_NAMESPACE, Namespaces
from remediator.core.operation import OperationPhase
from remediator.kube.wire.client import Client
from remediator.metrics import REGISTRY
from remediator.web import evictions
from remediator.web.endpoints import EVICTIONS
from remediator_sim.apiserver import EmbeddedServer
from tests.builders import an_operation
from tests.cluster.control_plane import HOST
from tests.harness import endpoints
from tests.harness.endpoints import ELSEWHERE, Talk, caller_context, connected, server_context
from tests.harness.kinds import NAMESPACES, PODS
from tests.harness.replica import empty_cache

SPEAKER = "gpu-1-drain-0"
DAEMON = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]
MIRROR = {"kubernetes.io/config.mirror": "x"}


def asks(pod: dict[str, Any], speaker: str = SPEAKER, **changed: Any) -> dict[str, Any]:
    """As a kube-apiserver sends it, with fields of which none is read."""
    meta = pod["metadata"]
    user = {
        "username": drain_account(OPERATIONS_NAMESPACE),
        "uid": "u",
        "groups": ["system:authenticated"],
        "extra": {"authentication.kubernetes.io/pod-name": [speaker], "authentication.kubernetes.io/pod-uid": ["p"]},
    }
    eviction = {
        "kind": "Eviction",
        "apiVersion": "policy/v1",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "deleteOptions": {"preconditions": {"uid": meta["uid"]}},
    }
    request = {
        "uid": "705ab4f5",
        "kind": {"group": "policy", "version": "v1", "kind": "Eviction"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "eviction",
        "name": meta["name"],
        "namespace": meta["namespace"],
        "operation": "CREATE",
        "userInfo": user,
        "object": eviction,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **changed,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


class Door:
    """The endpoint beside a server with Pods, and a drain of gpu-1 that runs."""

    def __init__(self) -> None:
        self.server = EmbeddedServer()
        self.client = Client(self.server.transport())
        self.cache = empty_cache(self.client)
        self.taken = evictions.bodies()
        self.port = 0
        self.asked: list[str] = []

    async def begin(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": "team"}})
        drain = an_operation(phase=OperationPhase.DRAINING, drain_pod=SPEAKER)
        self.cache.operations.note(drain.name, drain)

    async def pod(self, name: str, node: str = "gpu-1", **meta: Any) -> dict[str, Any]:
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        return await self.client.create(PODS, {"metadata": {"name": name, **meta}, "spec": spec}, namespace="team")

    async def post(self, body: Any) -> tuple[int, Any]:
        url, context = f"https://{HOST}:{self.port}{evictions.PATH}", caller_context()
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with aiohttp.ClientSession() as session, session.post(url, data=text, ssl=context) as reply:
            return reply.status, await (reply.json() if reply.status == 200 else reply.text())

    async def ruled(self, body: Any) -> tuple[bool, int, str]:
        """Whether it is allowed, the code and the message."""
        status, reply = await self.post(body)
        assert status == 200, reply
        assert (reply["apiVersion"], reply["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response = reply["response"]
        assert response["uid"] == "705ab4f5"
        said = response.get("status", {})
        return response["allowed"], said.get("code", 0), said.get("message", "")

    def reads(self) -> int:
        """How many Pods the server was asked for."""
        return sum(1 for line in self.asked if "/pods/" in line)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    made = Door()
    await made.begin()
    made.asked = heard(made)
    judge = EvictionJudge(made.client, made.cache.operations, Namespaces())
    routes, tls = evictions.routes(judge, made.taken), server_context(token=True)
    async with endpoints.served(routes, limits=EVICTIONS, tls=lambda: tls, open_to_all=True) as (_, made.port):
        yield made


def heard(door: Door) -> list[str]:
    """The paths that the client asks for from now on."""
    inner, paths = door.client.transport.request, []

    async def request(method: str, path: str, **form: Any) -> Any:
        paths.append(f"{method} {path}")
        return await inner(method, path, **form)

    door.client.transport.request = request  # type: ignore[method-assign]
    return paths


async def test_a_pod_of_the_drains_own_node_may_go_and_all_others_may_not(door: Door) -> None:
    mine, other = await door.pod("mine"), await door.pod("other", "gpu-2")
    daemon = await door.pod("daemon", ownerReferences=DAEMON)
    mirror = await door.pod("mirror", annotations=MIRROR)
    assert await door.ruled(asks(mine)) == (True, 0, "")
    rows = ((other, "is not on gpu-1"), (daemon, "no Pod of a DaemonSet"), (mirror, "no mirror Pod"))
    for pod, why in rows:
        allowed, code, message = await door.ruled(asks(pod))
        assert (allowed, code, why in message) == (False, 403, True), message


async def test_a_pod_that_has_gone_is_left_to_the_api_server(door: Door) -> None:
    gone = {"metadata": {"name": "gone", "namespace": "team", "uid": "u"}}
    assert await door.ruled(asks(gone)) == (True, 0, "")


async def test_while_a_pod_cannot_be_read_it_stays_and_is_asked_for_again(door: Door) -> None:
    pod = await door.pod("mine")

    async def away(*given: Any, **form: Any) -> Any:
        raise OSError("connection refused")

    door.client.transport.request = away  # type: ignore[method-assign]
    allowed, code, message = await door.ruled(asks(pod))
    assert (allowed, code) == (False, 503)
    assert message == "team/mine cannot be read: connection refused; ask again"


async def test_of_who_names_no_drain_that_runs_nothing_is_asked_of_the_api_server(door: Door) -> None:
    pod = await door.pod("mine")
    door.asked.clear()
    assert (await door.ruled(asks(pod, speaker="gpu-1-drain-9")))[1] == 503
    assert (await door.ruled(asks(pod, namespace="kube-system")))[1] == 403
    assert await door.ruled(asks(pod, userInfo={"username": "alice"})) == (True, 0, "")
    assert door.reads() == 0
    assert (await door.ruled(asks(pod)))[0]
    assert door.reads() == 1


def refused(why: str) -> float:
    labels = {"endpoint": "evictions", "reason": why}
    return REGISTRY.get_sample_value("remediator_refused_calls_total", labels) or 0


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b"[" * 5000, b'{"request": {"uid": 1}}'])
async def test_what_is_no_review_is_refused_and_counted(door: Door, body: bytes) -> None:
    before = refused("malformed")
    assert (await door.post(body))[0] == 400
    assert refused("malformed") == before + 1


@pytest.mark.parametrize("empty", ["name", "namespace"])
async def test_a_review_that_names_no_pod_makes_nobody_list_them(door: Door, empty: str) -> None:
    pod = await door.pod("trainer-0")
    door.asked.clear()
    assert (await door.post(asks(pod, **{empty: ""})))[0] == 400
    assert door.asked == []


async def test_more_than_64_kib_is_not_read(door: Door) -> None:
    assert (await door.post(bytes(2**16 + 1)))[0] == 413
    assert door.taken.held == 0


async def test_what_is_refused_is_counted_by_its_sort(door: Door) -> None:
    pod, before = await door.pod("other", "gpu-2"), (refused("refused"), refused("later"))
    await door.ruled(asks(pod))
    await door.ruled(asks(pod, speaker="unknown"))
    assert (refused("refused"), refused("later")) == (before[0] + 1, before[1] + 1)


async def _silent(door: Door, at: str, count: int) -> list[Talk]:
    return list(await asyncio.gather(*(connected(door.port, tls=caller_context(), at=at) for _ in range(count))))


async def test_200_connections_of_strangers_end_none_of_60_that_the_api_server_holds(door: Door) -> None:
    """It asks over all of them from one address: one for each drain, and some that it keeps."""
    pod = await door.pod("mine")
    body = json.dumps(asks(pod)).encode()
    held = await _silent(door, HOST, 60)
    strangers = await _silent(door, ELSEWHERE, 200)
    head = f"POST {evictions.PATH} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def asked(talk: Talk) -> bytes:
        talk.writer.write(head + body)
        return await talk.reader.readline()

    assert set(await asyncio.gather(*map(asked, held))) == {b"HTTP/1.1 200 OK\r\n"}
    for talk in (*held, *strangers):
        talk.end()


async def test_100_evictions_in_turn_from_one_address_are_all_answered(door: Door) -> None:
    pod = await door.pod("mine")
    url, before = f"https://{HOST}:{door.port}{evictions.PATH}", refused("full")
    async with aiohttp.ClientSession() as session:

        async def one() -> bool:
            async with session.post(url, json=asks(pod), ssl=caller_context()) as reply:
                return bool((await reply.json())["response"]["allowed"])

        assert all(await asyncio.gather(*(one() for _ in range(100))))
    assert refused("full") == before
