"""How often the view of a node or a case that is followed is made, and what those who follow it are told."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from remediator.core.case import CaseEvent, Phase
from remediator.core.reasons import Reason
from remediator.web.page.detail_view import CaseDetail, NodeView, case_detail, gone_node, node_view
from remediator.web.page.fleet_view import fleet_view
from remediator.web.page.followed import RENEWED, FollowedView
from remediator.web.page.freshness import Freshness, freshness
from remediator.web.page.html import Pages
from remediator.web.page.snapshots import Snapshot
from remediator.web.page.stream import MOST
from tests.builders import a_case, a_node, at
from tests.remediator.web.page.test_readers import Moved
from tests.remediator.web.page.test_views import facts, held

PAGES = Pages(signs=True)


class OneNode:
    """A node that changes as the test says; `made` and `drawn`: how often its view and its page were."""

    def __init__(self, moved: Moved, name: str = "gpu-1") -> None:
        self.node: Any = a_node(name)
        self.made = self.drawn = 0
        self.lines: tuple[str, ...] = ()
        self._moved = moved
        self.followed = FollowedView(lambda: self.node, self._make, self._draw, moved.clock)

    async def _make(self) -> NodeView | None:
        self.made += 1
        now = at(10, self._moved.seconds)
        return self.node and node_view(self.node, (), self.lines, (), Freshness(now, now))

    def _draw(self, view: Any) -> bytes:
        self.drawn += 1
        return PAGES.node(view)


def snapshot(fresh: Freshness = Freshness(at(10), at(10))) -> Snapshot:  # noqa: B008
    """The next one of a fleet."""
    known = facts(fresh=fresh)
    return Snapshot(known, fleet_view(known), 1)


def told(event: bytes) -> tuple[str, Any]:
    """The name of an event, and its data."""
    lines = dict(line.split(": ", 1) for line in event.decode().strip().splitlines())
    return lines["event"], json.loads(lines["data"])


async def test_64_readers_of_64_nodes_cost_64_views_in_10_seconds_and_those_that_have_changed() -> None:
    moved = Moved()
    nodes = [OneNode(moved, f"gpu-{number}") for number in range(MOST)]
    readers = [node.followed.events("") for node in nodes]

    async def one_more_snapshot() -> int:
        """How many readers are told something."""
        now = snapshot()
        return sum([bool(await follower.event(now)) for follower in readers])

    assert await one_more_snapshot() == MOST
    nodes[7].node = a_node("gpu-7", unschedulable=True)
    sent = []
    for _ in range(4):  # the fleet changes all the time
        moved.seconds += 2.0
        sent.append(await one_more_snapshot())
    assert sent == [1, 0, 0, 0]
    assert sum(node.made for node in nodes) == MOST + 1
    moved.seconds += RENEWED
    assert await one_more_snapshot() == 0  # made anew, and nothing is new in it
    assert sum(node.made for node in nodes) == 2 * MOST + 1
    assert sum(node.drawn for node in nodes) == MOST + 1


async def test_all_who_follow_one_node_share_its_view_and_its_bytes() -> None:
    one, now = OneNode(Moved()), snapshot()
    events = await asyncio.gather(*(one.followed.events("").event(now) for _ in range(MOST)))
    assert (one.made, one.drawn, len(set(events))) == (1, 1, 1)


async def test_with_a_snapshot_a_view_is_made_once_though_its_node_changes_meanwhile() -> None:
    one, now = OneNode(Moved()), snapshot()
    first, second = one.followed.events(""), one.followed.events("")
    before = await first.event(now)
    one.node = a_node(unschedulable=True)
    assert (await second.event(now), one.made) == (before, 1)
    assert told(await second.event(snapshot()))[0] == "page"
    assert one.made == 2


async def test_who_shows_the_node_as_it_is_is_sent_nothing_whichever_replica_has_made_the_page() -> None:
    moved = Moved()
    here, there = OneNode(moved), OneNode(moved)
    event = await there.followed.events("").event(snapshot())
    shown = event.split(b"\n")[0].removeprefix(b"id: ").decode()
    moved.seconds += 300.0
    assert f'data-of="{shown}"' in told(event)[1]
    assert await here.followed.events(shown).event(snapshot()) == b""
    moved.seconds += 3.0
    assert await here.followed.events(shown).event(snapshot()) == b""
    assert here.made == 1  # a second reader who shows the newest view has none made


async def test_who_begins_to_follow_is_never_shown_an_older_view_than_the_page_that_was_loaded() -> None:
    """A policy has changed since the view was made 3 s ago: those who follow it may wait, a new reader does not."""
    moved = Moved()
    one, now = OneNode(moved), snapshot()
    await one.followed.events("").event(now)
    moved.seconds, one.lines = 3.0, ("the policy is paused",)
    loaded = PAGES.node((await one._make()) or pytest.fail("no view")).decode()
    shown = loaded.partition('data-of="')[2].partition('"')[0]
    assert await one.followed.events(shown).event(now) == b""
    assert one.made == 3


async def test_a_node_that_goes_is_told_once_and_again_where_it_has_come_back() -> None:
    one = OneNode(Moved())
    follower = one.followed.events("")
    assert told(await follower.event(snapshot()))[0] == "page"
    one.node = None
    assert told(await follower.event(snapshot())) == ("gone", {})
    assert await follower.event(snapshot()) == b""
    assert told(await one.followed.events("none").event(snapshot())) == ("gone", {})  # also to who comes later
    one.node = a_node()
    assert told(await follower.event(snapshot()))[0] == "page"


async def test_that_the_api_server_is_away_is_told_at_once_though_the_node_is_as_it_was() -> None:
    one = OneNode(Moved())
    follower = one.followed.events("")
    await follower.event(snapshot())
    await follower.event(snapshot(freshness(at(10), {}, 47.0, reached=False)))
    assert one.made == 2


async def test_a_reader_that_goes_while_its_view_is_made_holds_nobody_up() -> None:
    one, now, gate = OneNode(Moved()), snapshot(), asyncio.Event()
    make = one._make

    async def slowly() -> NodeView | None:
        await gate.wait()
        return await make()

    one.followed._make = slowly
    first = asyncio.ensure_future(one.followed.events("").event(now))
    second = asyncio.ensure_future(one.followed.events("").event(now))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    assert told(await asyncio.wait_for(second, 60))[0] == "page"


OVER = a_case(
    phase=Phase.RECOVERED,
    ended=at(12),
    timeline=(CaseEvent(at(12), Reason.VERIFIED, "it is well"),),
)


@pytest.mark.parametrize(
    ("view", "made"),
    [
        (case_detail(OVER, Freshness(at(13), at(13))), 1),
        (case_detail(replace(OVER, timeline=()), Freshness(at(13), at(13))), 2),  # it could not be read: perhaps now
        (case_detail(OVER, freshness(at(13), {}, 47.0, reached=False)), 2),  # says how long ago that was
        (case_detail(held(Reason.BUDGET_SPENT), Freshness(at(13), at(13))), 2),
    ],
)
async def test_a_case_that_is_over_and_was_read_is_not_read_again(view: CaseDetail, made: int) -> None:
    moved, counted = Moved(), []

    async def make() -> CaseDetail:
        counted.append(moved.seconds)
        return view

    follower = FollowedView(lambda: None, make, PAGES.case, moved.clock).events("")
    await follower.event(snapshot())
    moved.seconds += RENEWED + 1
    await follower.event(snapshot())
    assert len(counted) == made


async def test_of_a_node_that_says_the_same_the_moment_of_its_newest_view_is_known() -> None:
    """Looked at after 0, 6 and 12 s: made at first, and again once RENEWED has passed."""
    moved = Moved()
    one = OneNode(moved)
    follower = one.followed.events("")
    assert follower.as_of == ""
    moments = []
    for _ in range(3):
        await follower.event(snapshot())
        moments.append(follower.as_of)
        moved.seconds += 6.0
    assert moments == ["2026-01-01 12:10:00 UTC", "2026-01-01 12:10:00 UTC", "2026-01-01 12:10:12 UTC"]


async def test_a_case_that_is_over_is_as_new_as_the_replica_s_last_look_at_it() -> None:
    async def make() -> CaseDetail:
        return case_detail(OVER, Freshness(at(13), at(13)))

    follower = FollowedView(lambda: None, make, PAGES.case, Moved().clock).events("")
    for minute in (13, 14):
        await follower.event(snapshot(Freshness(at(minute), at(minute))))
    assert follower.as_of == "2026-01-01 12:14:00 UTC"


async def test_of_a_node_that_is_gone_and_of_a_page_that_another_has_followed_no_moment_is_told() -> None:
    one = OneNode(Moved())
    first, second = one.followed.events(""), one.followed.events("")
    await first.event(snapshot())
    one.node = a_node(unschedulable=True)
    await second.event(snapshot())
    assert (first.as_of == "", second.as_of == "") == (True, False)
    one.node = None
    await second.event(snapshot())
    assert second.as_of == ""


def test_what_a_reader_hears_of_a_node_or_a_case() -> None:
    now = Freshness(at(13), at(13))
    waits = case_detail(held(Reason.BUDGET_SPENT), now)
    goes_on = replace(held(Reason.BUDGET_SPENT), timeline=(CaseEvent(at(12), Reason.CLAIMED, "it is ours"),))
    assert waits.news == waits.waits_for
    assert case_detail(goes_on, now).news == "Claimed: it is ours"
    assert case_detail(OVER, now).news == "Recovered after 12 min"
    assert node_view(a_node(unschedulable=True), (), (), (), now).news == "cordoned, no case"
    assert gone_node("gpu-1", (OVER,), now).news == "there is no such node any more"
    assert "unknown whether Ready" not in PAGES.node(gone_node("gpu-1", (OVER,), now)).decode()
