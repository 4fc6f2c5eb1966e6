"""Where everybody could read it nothing is written, unless a route confirms that."""

from types import MappingProxyType

import pytest

from remediator.clock import SYSTEM
from remediator.tickets.channels.base import (
    Close,
    Draft,
    Edit,
    Later,
    Marker,
    PublicRepository,
    Refused,
    Relabel,
    Visibility,
    VisibilityUnknown,
)
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.private import ASK_EVERY, PrivateOnly, refusal
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile import conditions
from remediator.tickets.reconcile.observe import Times
from remediator_sim.github import FakeGitHub, GithubFault
from tests.remediator.tickets.memory_channel import START, MemoryChannel

ROUTES = Routes(Route("org/ops"), MappingProxyType({"gpu": Route("org/gpu"), "open": Route("Org/Open", public=True)}))
MARKER = Marker("mark4711", START)
DRAFT = Draft("gpu-17: GPU lost", "serial 1320221054671", MARKER)


class Ticking:
    """A clock that a test moves on."""

    seconds = 0.0

    def monotonic(self):
        return self.seconds


class Asked(MemoryChannel):
    """Keeps which repositories it was asked about."""

    def __init__(self):
        super().__init__()
        self.asked = []

    async def visibility(self, repository):
        self.asked.append(repository)
        return await super().visibility(repository)


@pytest.fixture
def inner():
    return Asked()


@pytest.fixture
def clock():
    return Ticking()


@pytest.fixture
def channel(inner, clock):
    return PrivateOnly(inner, ROUTES, clock)


async def test_a_private_repository_is_asked_about_once_an_hour(inner, clock, channel):
    for seconds in (0.0, ASK_EVERY - 1, ASK_EVERY, ASK_EVERY + 1):
        clock.seconds = seconds
        await channel.create("org/ops", DRAFT)

    assert inner.asked == ["org/ops"] * 2


async def test_a_public_repository_is_refused_with_the_name_of_the_route_and_what_to_do(inner, channel):
    inner.seen_by = Visibility.PUBLIC

    with pytest.raises(PublicRepository) as refused:
        await channel.create("org/gpu", DRAFT)

    assert refused.value.message.startswith("org/gpu (route gpu) is public, and issues hold serial numbers")
    assert "write `public: true` into the route" in refused.value.message
    assert inner.calls == []
    reason = conditions.failed(refused.value, Times(), START)[0].reason
    assert reason == "PublicRepository"


async def test_where_a_route_confirms_it_nobody_asks_and_all_is_written(inner, channel):
    inner.seen_by = Visibility.PUBLIC

    assert (await channel.create("org/open", DRAFT)).number == 1

    assert inner.asked == []


async def test_a_repository_that_became_public_gets_no_more_text_and_its_issues_can_be_closed(inner, clock, channel):
    issue = await channel.create("org/ops", DRAFT)
    inner.seen_by, clock.seconds = Visibility.PUBLIC, ASK_EVERY + 1

    for write in (channel.change(issue, Edit("more", MARKER)), channel.comment(issue.ref, "more")):
        with pytest.raises(PublicRepository):
            await write

    await channel.change(issue, Relabel(add=("x",)))
    assert not (await channel.change(issue, Close())).open


async def test_an_issue_that_was_moved_where_no_route_leads_is_asked_about_too(inner, channel):
    issue = await inner.create("else/where", DRAFT)
    inner.seen_by = Visibility.PUBLIC

    with pytest.raises(PublicRepository, match=r"else/where \(no route any more\) is public"):
        await channel.comment(issue.ref, "more")


async def test_what_cannot_be_told_is_refused_for_now_and_asked_again(inner, channel):
    inner.seen_by = Visibility.UNKNOWN
    with pytest.raises(
        VisibilityUnknown, match="org/ops \\(route default\\) does not say whether it is private"
    ) as now:
        await channel.create("org/ops", DRAFT)
    assert conditions.failed(now.value, Times(), START)[0].reason == "VisibilityUnknown"

    inner.script("visibility", Later("GitHub answered 502", 10.0))
    with pytest.raises(VisibilityUnknown, match=r"could not tell whether org/ops is private.*502") as later:
        await channel.create("org/ops", DRAFT)
    assert later.value.after == 10.0

    inner.seen_by = Visibility.PRIVATE
    assert (await channel.create("org/ops", DRAFT)).number == 1


async def test_a_repository_that_cannot_be_seen_is_refused_as_what_it_is(inner, channel):
    inner.script("visibility", Refused("GitHub answered 404", "repository"))

    with pytest.raises(Refused, match="404") as refused:
        await channel.create("org/ops", DRAFT)

    assert not isinstance(refused.value, PublicRepository)


@pytest.mark.parametrize(("private", "seen"), [(True, "PRIVATE"), (False, "PUBLIC")])
async def test_github_says_who_may_read(tmp_path, private, seen):
    async with FakeGitHub(["org/ops"]) as fake:
        fake.repository("org/ops").private = private
        (tmp_path / "token").write_text(fake.token)
        hub = GitHub(fake.url, GithubTokenFile(tmp_path / "token"), SYSTEM, spacing=0.0)
        assert await hub.visibility("org/ops") is Visibility[seen]
        fake._store.rename("org/ops", "org/renamed")
        assert await hub.visibility("org/ops") is Visibility[seen]
        fake.fail("GET", "/repos/", GithubFault(200, text='{"full_name": "org/renamed", "message": "x"}'))
        assert await hub.visibility("org/renamed") is Visibility.UNKNOWN
        await hub.aclose()


def test_a_public_repository_is_named_with_who_leads_there():
    routes = Routes(default=Route("org/ops"), url=("org/url",), labelled=("org/labels",))
    named = {name: str(refusal(name, Visibility.PUBLIC, routes)) for name in ("org/url", "org/labels", "org/none")}
    assert "org/url (the URL of a post) is public" in named["org/url"]
    assert "org/labels (labels of an alert) is public" in named["org/labels"]
    assert "org/none (no route any more) is public" in named["org/none"]
