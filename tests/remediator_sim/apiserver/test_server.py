"""What the embedded server offers beyond the API: its clock, its audit, its tokens, and that nothing is left behind."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from remediator.clock import Clock
from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.apiserver import EmbeddedServer, Mutation
from remediator_sim.apiserver.store import Store
from tests.remediator_sim.apiserver.asking import NODES, WATCH, events, label, make_node


async def test_objects_carry_the_time_of_the_clock_that_was_given():
    server = EmbeddedServer(clock=Clock(lambda: datetime(2026, 1, 1, tzinfo=UTC), lambda: 0.0))
    made = json.loads((await make_node(server.transport(), "a")).body)
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


async def test_the_same_seed_makes_the_same_uids():
    uids = [
        json.loads((await make_node(EmbeddedServer(seed=seed).transport(), "a")).body)["metadata"]["uid"]
        for seed in (1, 1, 2)
    ]
    assert uids[0] == uids[1] != uids[2]


async def test_the_audit_holds_who_changed_what_and_no_reads_refusals_or_dry_runs():
    server = EmbeddedServer()
    transport = server.transport(user="alice")
    await make_node(transport, "a")
    await make_node(transport, "a")
    await transport.request("GET", NODES)
    await transport.request("DELETE", f"{NODES}/a", query=[("dryRun", "All")])
    await label(transport, "a", "1")
    assert list(server.audit) == [Mutation("alice", "create", NODES), Mutation("alice", "patch", f"{NODES}/a")]


async def ask_token(transport):
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    reply = await transport.request("POST", path, body=b'{"spec": {"expirationSeconds": 600}}')
    return json.loads(reply.body)["status"]["token"]


async def test_a_token_names_its_service_account_until_it_expires():
    times = [datetime(2026, 1, 1, tzinfo=UTC)]
    server = EmbeddedServer(clock=Clock(lambda: times[-1], lambda: 0.0))
    token = await ask_token(server.transport())
    await make_node(server.transport(user=token), "a")
    assert server.audit[-1].user == "system:serviceaccount:default:default"
    times.append(times[0] + timedelta(minutes=10))
    assert (await server.transport(user=token).request("GET", NODES)).status == 401


async def test_a_changed_token_is_refused():
    server = EmbeddedServer()
    head, body, signature = (await ask_token(server.transport())).split(".")
    assert (await server.transport(user=f"{head}.{body}.x{signature[1:]}y").request("GET", NODES)).status == 401


@pytest.mark.looptime
async def test_an_idle_watch_gives_a_bookmark_every_minute_of_the_loops_time():
    transport = EmbeddedServer().transport()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with transport.stream(NODES, query=WATCH) as stream:
        chunks = aiter(stream)
        assert [events(await anext(chunks))[0]["type"] for _ in range(3)] == ["BOOKMARK"] * 3
    assert loop.time() - begun == pytest.approx(180, abs=1)


@pytest.mark.looptime
async def test_a_watch_ends_after_its_time_with_one_last_bookmark_whatever_the_digits_of_the_moment_are():
    """A timer may ring a moment early, by the resolution of the clock, and then no time may pass until it is due."""
    transport, loop = EmbeddedServer().transport(), asyncio.get_running_loop()
    for number in range(300):
        await asyncio.sleep(0.0001 * number + 1e-7)
        begun, seen = loop.time(), 0
        async with transport.stream(NODES, query=(*WATCH, ("timeoutSeconds", "5"))) as stream:
            async for chunk in stream:
                seen += len(events(chunk))
                assert seen == 1, begun
        assert (seen, loop.time() - begun) == (1, pytest.approx(5, abs=0.01))


@pytest.mark.looptime
async def test_a_watch_from_a_version_that_is_yet_to_come_says_nothing_before_it_has_passed():
    """As a server says it that was restored from a backup to one who knows what came after that."""
    server = EmbeddedServer()
    transport = server.transport()
    await make_node(transport, "a")
    query = (*WATCH, ("resourceVersion", str(server.cluster.store.rv + 2)))
    async with transport.stream(NODES, query=query) as stream:
        chunks = aiter(stream)
        first = asyncio.ensure_future(anext(chunks))
        await make_node(transport, "b")
        await asyncio.sleep(70)
        assert not first.done()
        for name in ("c", "d"):
            await make_node(transport, name)
        assert [event["object"]["metadata"]["name"] for event in events(await first)] == ["d"]


async def test_a_closed_watch_is_told_nothing_more():
    server = EmbeddedServer()
    transport = server.transport()
    async with transport.stream(NODES, query=WATCH):
        assert listeners(server) == 1
    assert listeners(server) == 0


async def read_first(stream):
    async for _ in stream:
        raise RuntimeError("gone")


async def test_a_watch_whose_reader_failed_is_told_nothing_more():
    server = EmbeddedServer()
    await make_node(server.transport(), "a")
    with pytest.raises(RuntimeError, match="gone"):
        async with server.transport().stream(NODES, query=WATCH) as stream:
            await read_first(stream)
    assert listeners(server) == 0


def listeners(server):
    return sum(map(len, server.cluster.store.collection("nodes")._listeners.values()))


def written(name, size):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "size": size}


def test_the_state_at_a_version_is_rebuilt_from_history():
    store = Store()
    store.write("nodes", ("", "a"), written("a", 1))
    then = store.write("nodes", ("", "b"), written("b", 1)).rv
    store.write("nodes", ("", "a"), written("a", 2))
    store.delete("nodes", ("", "b"), written("b", 1))
    store.write("nodes", ("", "c"), written("c", 1))
    found = [(entry.obj["metadata"]["name"], entry.obj["size"]) for entry in store.collection("nodes").at(then, "")]
    assert found == [("a", 1), ("b", 1)]


def test_history_is_bounded():
    store = Store(history=10)
    for size in range(100):
        store.write("nodes", ("", "a"), written("a", size))
    assert 10 <= len(store.collection("nodes").changes) <= 20


async def taints_of(transport, name):
    spec = json.loads((await transport.request("GET", f"{NODES}/{name}")).body)["spec"]
    return [one["key"].rpartition("/")[2] for one in spec.get("taints", [])]


async def patch_node(transport, path, body):
    reply = await transport.request(
        "PATCH", f"{NODES}/{path}", body=json.dumps(body).encode(), content_type=MERGE_PATCH
    )
    assert reply.status == 200


async def test_the_taints_of_a_node_follow_its_conditions_and_its_cordon():
    transport = EmbeddedServer().transport()
    await make_node(transport, "a")
    assert await taints_of(transport, "a") == ["not-ready"]
    await patch_node(transport, "a/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    assert await taints_of(transport, "a") == []
    await patch_node(transport, "a", {"spec": {"unschedulable": True}})
    assert await taints_of(transport, "a") == ["unschedulable"]
    await patch_node(transport, "a/status", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    assert await taints_of(transport, "a") == ["unschedulable", "unreachable"]
