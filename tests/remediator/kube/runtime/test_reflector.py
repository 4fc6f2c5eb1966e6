"""The reflector keeps its store true through everything that can happen to a watch, and never storms the server."""

import asyncio
import random
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
import pytest
from structlog.testing import capture_logs

from remediator.kube.runtime.reading import Reader
from remediator.kube.runtime.reflector import PAGE, READ, Reflector
from remediator.kube.wire import frames as wire
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.errors import Unavailable
from remediator.kube.wire.transport import Reply
from tests.remediator.kube.scripted import (
    SILENCE,
    ScriptedTransport,
    Watch,
    bookmark,
    event,
    page,
    refusal,
    status,
)

pytestmark = pytest.mark.looptime


class NodeMeta(msgspec.Struct):
    name: str


class Node(msgspec.Struct):
    metadata: NodeMeta
    ready: bool


@dataclass(frozen=True)
class Fact:
    name: str
    ready: bool


NODES = Kind("", "v1", "nodes", "Node", Node)
PODS = Kind("", "v1", "pods", "Pod", Node, namespaced=True)


def project(node):
    return Fact(node.metadata.name, node.ready)


def node(name, version, ready=True, **more):
    return {"metadata": {"name": name, "resourceVersion": version}, "ready": ready, **more}


def listed(*nodes, version="10"):
    """The start of a streamed list."""
    return b"".join(event("ADDED", n) for n in nodes) + bookmark(version, end=True)


class Followed:
    """A reflector over a script, with what it told."""

    def __init__(self, *steps, kind=NODES, rand=lambda: 0.5, **options):
        self.transport = ScriptedTransport(list(steps))
        self.changes, self.unknowns = [], []
        self.reflector = Reflector(
            Client(self.transport),
            kind,
            project,
            lambda *change: self.changes.append(change),
            on_unknown=self.unknowns.append,
            rand=rand,
            **options,
        )

    @property
    def asked(self):
        return self.transport.asked

    @property
    def waits(self):
        """Seconds between each call and the one before it."""
        return [b.at - a.at for a, b in zip(self.asked, self.asked[1:], strict=False)]


@asynccontextmanager
async def following(*steps, to_the_end=True, **options):
    """Run a reflector; by default until its script is over."""
    followed = Followed(*steps, **options)
    task = asyncio.create_task(followed.reflector.run())
    try:
        if to_the_end:
            over = asyncio.create_task(followed.transport.over.wait())
            await asyncio.wait({over, task}, return_when=asyncio.FIRST_COMPLETED)
            over.cancel()
            assert not task.done(), task.exception()
        yield followed
    finally:
        task.cancel()
        await asyncio.wait({task})


GOOD, BAD = Fact("a", True), Fact("a", False)


async def test_the_first_list_is_streamed_and_complete_at_its_end_mark():
    """Nothing is in the store, and nobody is told, before the server says that the list is complete."""
    stream = Watch(event("ADDED", node("a", "3")), bookmark("4"), 5.0, bookmark("7", end=True), SILENCE)
    async with following(stream, to_the_end=False, labels="gpu=yes", fields="x=y") as it:
        await asyncio.sleep(4)
        assert not it.reflector.synced.is_set()
        assert it.reflector.store == {}
        await it.reflector.synced.wait()
        assert asyncio.get_running_loop().time() == 5
        assert it.reflector.store == {"a": GOOD}
        assert it.changes == [("a", None, GOOD)]
    assert it.asked[0].path == "/api/v1/nodes"
    assert it.asked[0].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "450",
        "labelSelector": "gpu=yes",
        "fieldSelector": "x=y",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }


async def test_watches_end_at_different_times():
    """The lifetime that is asked for lies between five and ten minutes, drawn anew for each watch."""
    steps = [Watch(listed()), Watch(), Watch()]
    async with following(*steps, rand=random.Random(3).random) as it:
        lives = [int(a.query["timeoutSeconds"]) for a in it.asked]
    assert len(set(lives)) > 1
    assert all(300 <= life < 600 for life in lives)


async def test_only_a_changed_fact_wakes_anybody():
    """A heartbeat that leaves the fact as it was is silent; changes come with old and new; so does the end."""
    stream = Watch(
        listed(node("a", "3")),
        event("MODIFIED", node("a", "11", heartbeat=1)),
        event("MODIFIED", node("a", "12", ready=False)),
        event("DELETED", node("a", "13", ready=False)),
        event("DELETED", node("never-seen", "14")),
    )
    async with following(stream) as it:
        assert it.changes == [("a", None, GOOD), ("a", GOOD, BAD), ("a", BAD, None)]
        assert it.reflector.store == {}


async def test_keys_of_namespaced_kinds_carry_the_namespace():
    """Two Pods of one name in two namespaces are two objects; the namespace can also narrow the watch."""
    pods = [{"metadata": {"name": "p", "namespace": ns, "resourceVersion": "1"}, "ready": True} for ns in ("x", "y")]
    async with following(Watch(listed(*pods)), kind=PODS, namespace="x") as it:
        assert set(it.reflector.store) == {"x/p", "y/p"}
        assert it.asked[0].path == "/api/v1/namespaces/x/pods"


@pytest.mark.parametrize("cut", [[], [Unavailable(0, "Unreachable", "cut")], [b'{"type":"ADDED","obj'], [SILENCE]])
@pytest.mark.parametrize(("last", "version"), [(bookmark("21"), "21"), (event("MODIFIED", node("a", "0x17")), "0x17")])
async def test_after_a_watch_ends_or_breaks_it_goes_on_where_it_stopped(cut, last, version):
    """However a watch ends, the next one starts at the last version seen, word for word, without a new list."""
    async with following(Watch(listed(node("a", "3")), 400.0, last, *cut)) as it:
        again = it.asked[1]
        assert again.query["resourceVersion"] == version
        assert "sendInitialEvents" not in again.query
        assert it.changes == [("a", None, GOOD)]


async def test_after_a_long_watch_ended_cleanly_the_next_follows_at_once():
    """The server ends every watch after some minutes; that is no failure."""
    async with following(Watch(listed(), 400.0)) as it:
        assert it.waits == [400.0]


async def test_a_silent_connection_is_given_up():
    """A half-open stream is left after 75 seconds, a quarter more than the time between two bookmarks."""
    async with following(Watch(listed(), SILENCE)) as it:
        assert 75 <= it.waits[0] <= 76
        assert it.asked[1].query["resourceVersion"] == "10"


EXPIRED = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


@pytest.mark.parametrize("gone", [[Watch(EXPIRED)], [refusal(410, "too old", "Expired")]])
async def test_an_expired_version_means_a_new_list_and_the_vanished_are_told(gone):
    """After 410 all is listed anew; the old store serves meanwhile; what went away while we were blind is told."""
    first = Watch(listed(node("a", "3"), node("b", "4"), node("c", "5")), 400.0)
    anew = Watch(
        event("ADDED", node("a", "3")) + event("ADDED", node("b", "31", ready=False)),
        20.0,
        event("DELETED", node("b", "32")) + event("ADDED", node("d", "33")) + bookmark("40", end=True),
        SILENCE,
    )
    async with following(first, *gone, anew, to_the_end=False) as it:
        await asyncio.sleep(415)
        assert set(it.reflector.store) == {"a", "b", "c"}
        del it.changes[:]
        await asyncio.sleep(10)
        assert set(it.reflector.store) == {"a", "d"}
        assert sorted(it.changes) == [
            ("b", Fact("b", True), None),
            ("c", Fact("c", True), None),
            ("d", None, Fact("d", True)),
        ]
    assert it.asked[2].query["sendInitialEvents"] == "true"


@pytest.mark.parametrize("code", [400, 422])
async def test_a_server_that_streams_no_lists_is_paged_from_then_on(code):
    """The refusal costs no wait, is remembered, and the pages are one list."""
    async with following(
        refusal(code, "sendInitialEvents is forbidden"),
        page("20", node("a", "3"), following="more"),
        page("20", node("b", "4")),
        Watch(100.0, EXPIRED),
        page("30", node("b", "4")),
    ) as it:
        asked = [(a.query.get("watch"), a.query.get("continue"), a.query.get("resourceVersion")) for a in it.asked]
        assert asked[1:4] == [(None, None, None), (None, "more", None), ("true", None, "20")]
        assert asked[4:] == [(None, None, None), ("true", None, "30")]
        assert it.asked[1].query["limit"] == "250"
        assert it.waits[:3] == [0, 0, 0]
        assert it.changes[2:] == [("a", GOOD, None)]


async def test_a_page_is_read_a_few_objects_at_a_time_and_the_loop_turns_in_between(monkeypatch):
    """250 nodes of a page take the time of a claim."""
    read, turns, original = [], [0], Reader.read

    async def turning() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    def counted(reader, item, **options):
        read.append(turns[0])
        return original(reader, item, **options)

    monkeypatch.setattr(Reader, "read", counted)
    beside = asyncio.ensure_future(turning())
    followed = Followed(page("20", *(node(f"n{number}", "3") for number in range(PAGE))))
    await followed.reflector.read()
    beside.cancel()
    assert len(read) == len(followed.reflector.store) == PAGE == 250
    assert max(Counter(read).values()) == READ == 50


async def test_a_list_that_expires_between_pages_starts_over():
    """Half a list is never taken for a whole one."""
    async with following(
        refusal(422), page("20", node("a", "3"), following="more"), status(410, "too old"), page("30", node("b", "4"))
    ) as it:
        assert set(it.reflector.store) == {"b"}
        assert "continue" not in it.asked[3].query


async def test_a_streamed_list_that_breaks_off_starts_over():
    """A cut before the end mark leaves the store as it was."""
    async with following(Watch(event("ADDED", node("a", "3")), Unavailable(0, "", "cut")), Watch(listed())) as it:
        assert it.asked[1].query["sendInitialEvents"] == "true"
        assert it.changes == []


@pytest.mark.parametrize(
    "trouble",
    [
        lambda: Unavailable(0, "Unreachable", "refused"),
        lambda: refusal(503, "sick"),
        lambda: refusal(429, "later"),
        lambda: Watch(),
        lambda: Watch(listed()),
        lambda: Watch(EXPIRED),
        lambda: Watch(bookmark("1"), b"garbage\n"),
        lambda: refusal(404, "no such kind"),
    ],
    ids=["refused", "503", "429", "ends at once", "lists and ends", "expires", "garbage", "404"],
)
async def test_no_trouble_makes_it_storm_the_server(trouble):
    """In ten minutes of any trouble it asks at most sixty times, and it is still asking at the end."""
    async with following(*[trouble() for _ in range(1000)], to_the_end=False, rand=random.Random(7).random) as it:
        await asyncio.sleep(600)
    assert 20 <= len(it.asked) <= 60
    assert max(it.waits) <= 30
    assert it.asked[-1].at > 570


async def test_the_back_off_doubles_and_only_a_healthy_minute_resets_it():
    """A stream of half a minute is no recovery; one of a minute is."""
    away = [Unavailable(0, "", "refused")] * 3
    steps = [Watch(listed()), *away, Watch(30.0), Watch(61.0, Unavailable(0, "", "cut")), *away]
    async with following(*steps, rand=lambda: 1.0) as it:
        waits = [round(w, 6) for w in it.waits]
    assert waits == [0.8, 1.6, 3.2, 6.4, 30.0 + 12.8, 61.0 + 0.8, 1.6, 3.2, 6.4]


@pytest.mark.parametrize("code", [429, 503])
async def test_retry_after_is_honoured(code):
    """The server's own wish comes on top of the back-off."""
    async with following(refusal(code, "later", retry_after="17"), rand=lambda: 0.5) as it:
        assert it.waits == [17.4]


async def test_a_refusal_of_rights_is_loud_and_slow():
    """403 is an error in the log with the server's words, and is asked again only after half a minute."""
    with capture_logs() as logs:
        async with following(refusal(403, "cannot list nodes")) as it:
            assert it.waits[0] >= 30
    assert [(e["log_level"], e["kind"]) for e in logs] == [("error", "Node")]
    assert "cannot list nodes" in logs[0]["error"]


@pytest.mark.parametrize(("code", "anew"), [(504, True), (500, True), (429, False)])
async def test_a_version_that_is_refused_for_long_is_given_up(code, anew):
    """A server restored from a backup knows our version no more; one that only sheds load does."""
    steps = [Watch(listed(), 400.0), *[refusal(code, "too large resource version") for _ in range(6)]]
    async with following(*steps) as it:
        assert ("resourceVersion" not in it.asked[-1].query) == anew
        assert it.asked[3].query["resourceVersion"] == "10"


async def test_an_unreachable_server_is_no_reason_to_list_anew():
    """No answer says nothing of our version."""
    async with following(Watch(listed(), 400.0), *[Unavailable(0, "", "refused")] * 9) as it:
        assert it.asked[-1].query["resourceVersion"] == "10"


@pytest.mark.parametrize("older", [bookmark("7"), event("MODIFIED", node("a", "7"))], ids=["bookmark", "event"])
async def test_a_watch_that_goes_back_begins_with_a_list_again(older):
    """The server was restored from a backup: what has changed by that is in no watch."""
    async with following(Watch(listed(node("a", "3")), 1.0, older, 1.0), to_the_end=True) as it:
        assert "resourceVersion" not in it.asked[1].query
        assert it.reflector.store == {"a": GOOD}


async def test_what_a_watch_still_tells_does_not_keep_it_from_a_new_list():
    """The second event has come in the same piece as the first, after which everything shall be read again."""
    told = event("MODIFIED", node("a", "11", ready=False)) + event("MODIFIED", node("a", "12"))
    async with following(Watch(listed(node("a", "3")), 1.0, told, SILENCE), Watch(SILENCE), to_the_end=False) as it:
        await it.reflector.synced.wait()
        taken = it.reflector._on_change
        it.reflector._on_change = lambda *change: (taken(*change), change[2] == BAD and it.reflector.list_anew())
        await asyncio.sleep(5)
        assert [asked.query.get("resourceVersion") for asked in it.asked] == [None, None]


async def test_a_version_after_which_two_watches_in_a_row_say_nothing_is_given_up():
    """A server restored from a backup says nothing until it has come as far; one half-open connection proves little."""
    async with following(Watch(listed(), 1.0, bookmark("10"), SILENCE), Watch(SILENCE), Watch(SILENCE)) as it:
        assert [asked.query.get("resourceVersion") for asked in it.asked] == [None, "10", "10", None]


async def test_other_error_events_back_off_and_go_on():
    """An ERROR that is not about the version costs a wait, not a list."""
    trouble = event("ERROR", {"kind": "Status", "code": 500, "message": "etcd"})
    async with following(Watch(listed(), 400.0, bookmark("11"), trouble)) as it:
        assert it.asked[1].query["resourceVersion"] == "11"
        assert it.waits[0] > 400


async def test_an_object_that_cannot_be_read_is_unknown_and_not_gone():
    """It is counted, told once, keeps its last fact, and hurts nobody else; reading it again is told."""
    broken = {"metadata": {"name": "a", "resourceVersion": "12"}, "ready": "perhaps"}
    stream = Watch(
        listed(node("a", "3")),
        event("MODIFIED", broken) + event("MODIFIED", broken) + event("ADDED", node("b", "13")),
        1.0,
        event("MODIFIED", node("a", "14")),
        SILENCE,
    )
    async with following(stream, to_the_end=False) as it:
        await asyncio.sleep(0.5)
        assert it.unknowns == ["a"]
        assert set(it.reflector.unknown) == {"a"}
        assert it.reflector.undecodable == 2
        assert it.reflector.store == {"a": GOOD, "b": Fact("b", True)}
        del it.changes[:]
        await asyncio.sleep(1)
        assert it.changes == [("a", GOOD, GOOD)]
        assert it.reflector.unknown == {}
        assert len(it.asked) == 1


NESTED = b'{"type":"MODIFIED","object":{"metadata":{"name":"a"},"x":' + b"[" * 5000 + b"]" * 5000 + b"}}\n"


@pytest.mark.parametrize("line", [NESTED, b'{"type":"\xff\xfe"}\n', b"{\n"], ids=["nested", "no UTF-8", "cut"])
async def test_a_line_that_no_decoder_takes_ends_no_watch(line):
    stream = Watch(listed(node("a", "3")), line, event("ADDED", node("b", "13")), SILENCE)
    async with following(stream, to_the_end=False) as it:
        await asyncio.sleep(0.5)
        assert it.reflector.undecodable == 1
        assert it.reflector.store == {"a": GOOD, "b": Fact("b", True)}
        assert len(it.asked) == 1


@pytest.mark.parametrize("how", ["event", "list"])
async def test_the_end_of_an_unknown_object_is_told(how):
    """An object that never could be read is told when it goes, live or while we were away."""
    broken = {"metadata": {"name": "a", "resourceVersion": "3"}}
    end = [event("DELETED", broken)] if how == "event" else [EXPIRED]
    async with following(Watch(listed(broken), *end), Watch(listed())) as it:
        assert it.unknowns == ["a"]
        assert it.changes == [("a", None, None)]
        assert it.reflector.unknown == {}


async def test_a_projection_that_fails_makes_one_object_unknown():
    """A bug in the projection of one node blinds us to that node only."""
    followed = Followed(Watch(listed(node("a", "1"), node("b", "2"))))
    followed.reflector._reader._project = lambda n: {"b": GOOD}[n.metadata.name]
    task = asyncio.create_task(followed.reflector.run())
    await followed.reflector.synced.wait()
    task.cancel()
    assert followed.unknowns == ["a"]
    assert set(followed.reflector.store) == {"b"}


async def test_a_nameless_object_in_a_list_lets_nothing_vanish():
    """What cannot be named may be any of those that seem to be missing."""
    async with following(Watch(listed(node("a", "3")), EXPIRED), Watch(listed({"metadata": {}}))) as it:
        assert it.reflector.store == {"a": GOOD}
        assert it.reflector.undecodable == 1


async def test_a_line_that_is_no_event_is_counted_and_the_stream_goes_on():
    """Garbage between two events costs neither the stream nor the events."""
    async with following(Watch(listed(), b"garbage\n" + event("ADDED", node("a", "11"))), Watch()) as it:
        assert it.reflector.undecodable == 1
        assert it.reflector.store == {"a": GOOD}
        assert it.asked[1].query["resourceVersion"] == "11"


async def test_age_is_the_time_since_the_last_sign_of_life():
    """Events and bookmarks make it young, silence makes it old; before the first it is infinite."""
    async with following(Watch(2.0, listed(), 60.0, bookmark("11"), SILENCE), to_the_end=False) as it:
        await asyncio.sleep(1)
        assert it.reflector.age() == float("inf")
        await asyncio.sleep(51)
        assert it.reflector.age() == 50
        await asyncio.sleep(20)
        assert it.reflector.age() == 10


async def test_it_is_fresh_from_its_list_on_until_it_has_been_silent_for_too_long():
    """Nothing is fresh before its list is complete, nor 150 s after the last bookmark."""
    async with following(Watch(2.0, listed(), SILENCE), to_the_end=False) as it:
        await asyncio.sleep(1)
        assert not it.reflector.fresh()
        await asyncio.sleep(2)
        assert it.reflector.fresh()
        await asyncio.sleep(148)
        assert it.reflector.fresh()
        await asyncio.sleep(2)
        assert not it.reflector.fresh()


async def test_a_list_that_is_not_json_is_a_failure_like_any_other():
    """A proxy that answers with a web page does not end the reflector."""
    async with following(refusal(422), Reply(200, b"<html>", {}), page("20", node("a", "3"))) as it:
        assert set(it.reflector.store) == {"a"}


async def chunked(data, size):
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_lines_do_not_depend_on_how_the_stream_is_cut(size):
    """Any cut gives the same lines; empty ones and an unended last one are left out."""
    found = [bytes(line) async for line in wire.lines(chunked(b"one\n\ntwo\nthree\nhalf", size))]
    assert found == [b"one", b"two", b"three"]


@pytest.mark.timeout(30)
def test_a_huge_line_in_tiny_pieces_takes_linear_time():
    """Twenty megabytes in pieces of 64 bytes: looking at the whole tail for each piece would take an hour."""

    async def read():
        return [line async for line in wire.lines(chunked(b"x" * 20_000_000 + b"\n", 64))]

    (line,) = asyncio.run(read())
    assert len(line) == 20_000_000


class ApiHistory:
    """A tiny API server: a log of changes, streams that break by chance, versions that expire."""

    def __init__(self, chance):
        self.chance, self.objects, self.log, self.forgotten = chance, {}, [], 0

    def change(self):
        name, version = f"n{self.chance.randrange(5)}", len(self.log) + 1
        if name in self.objects and self.chance.random() < 0.3:
            self.log.append(("DELETED", node(name, str(version), self.objects.pop(name)["ready"])))
        else:
            kind = "MODIFIED" if name in self.objects else "ADDED"
            self.objects[name] = node(name, str(version), self.chance.random() < 0.5)
            self.log.append((kind, self.objects[name]))

    async def request(self, method, path, *, query=(), **_):
        return page(str(len(self.log)), *self.objects.values())

    @asynccontextmanager
    async def stream(self, path, *, query=(), idle_timeout=75.0):
        query, lossy = dict(query), self.chance.random() < 0.9
        if "resourceVersion" not in query and self.chance.random() < 0.3:
            yield refusal(422)
        elif int(query.get("resourceVersion", self.forgotten)) < self.forgotten:
            yield self.chance.choice([refusal(410), Watch(EXPIRED)])
        else:
            yield Cut(self.sent(query), self.chance if lossy else None)

    async def sent(self, query):
        at = int(query.get("resourceVersion", len(self.log)))
        if "resourceVersion" not in query:
            for obj in list(self.objects.values()):
                yield event("ADDED", obj)
            yield bookmark(str(at), end=True)
        while True:
            for change in self.log[at:]:
                yield event(*change)
            at = len(self.log)
            await asyncio.sleep(1)
            yield bookmark(str(at))


class Cut:
    """A stream in random chunks that breaks off at a random place."""

    status, headers = 200, {}

    def __init__(self, source, chance):
        self.source, self.chance = source, chance

    async def __aiter__(self):
        async for piece in self.source:
            if self.chance and self.chance.random() < 0.1:
                yield piece[: self.chance.randrange(len(piece))]
                raise Unavailable(0, "", "cut")
            middle = len(piece) // 2
            yield piece[:middle]
            yield piece[middle:]


@pytest.mark.looptime(noop_cycles=0)
@pytest.mark.parametrize("seed", range(20))
async def test_whatever_breaks_the_store_and_the_told_changes_end_up_true(seed):
    """Random changes, cuts, expiries and refusals: store, told changes and the server's objects agree in the end."""
    chance, replayed = random.Random(seed), {}
    world = ApiHistory(chance)

    def on_change(key, old, new):
        assert replayed.get(key) == old
        replayed[key] = new

    reflector = Reflector(Client(world), NODES, project, on_change, rand=chance.random)
    task = asyncio.create_task(reflector.run())
    for _ in range(200):
        await asyncio.sleep(chance.random() * 3)
        world.change()
        if chance.random() < 0.1:
            world.forgotten = len(world.log) - chance.randrange(3)
    world.chance = random.Random(1000 + seed)
    world.chance.random = lambda: 0.95  # nothing breaks any more
    await asyncio.sleep(200)
    task.cancel()
    truth = {name: Fact(name, obj["ready"]) for name, obj in world.objects.items()}
    assert reflector.store == truth
    assert {key: fact for key, fact in replayed.items() if fact} == truth
    assert len(world.log) == 200
