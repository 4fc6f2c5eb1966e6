"""Which step comes next in a room: tables that have a result for everything, and many issues in one look."""

import asyncio
import itertools
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from remediator.clock import Clock
from remediator.core.chat import ChatThread
from remediator.core.policy import Severity
from remediator.core.ticket import About, Alert, Subject, Ticket, TicketPhase
from remediator.live_file import LOOK_EVERY, LiveFile, Unchanging
from remediator.tickets.channels.boards import BoardPlace
from remediator.tickets.channels.chat import Looked
from remediator.tickets.channels.rooms import Apprise, Room, load
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.chat.decide import TABLES, Act, Crowd, MessageState, ThreadObservation, ThreadState, Want, act
from remediator.tickets.chat.observe import IssueInRoom, next_step, see, untold
from remediator.tickets.chat.run import AFTER_REFUSAL, EVERY, Rooms
from remediator.tickets.metrics import ROOMS_OUTDATED
from remediator.tickets.reconcile.input import ticket_input
from tests.remediator.tickets.memory_channel import START

ROOM = Room("a", Apprise(Path("urls")), frozenset(Severity))
BOTH = (False, True)


def open_ticket(number: int, thread: ChatThread | None = None, severity: Severity = Severity.WARNING) -> Ticket:
    alert = Alert(f"f{number}", "NodeDown", START, severity=severity)
    subject = Subject(About.NODE, node=f"node-{number:03}")
    threads = (thread,) if thread else ()
    return Ticket(subject.name, f"uid-{number}", subject, (alert,), phase=TicketPhase.OPEN, chat=threads)


def seen(number: int, thread: ChatThread | None = None, severity: Severity = Severity.WARNING) -> IssueInRoom:
    ticket = open_ticket(number, thread, severity)
    return see(ROOM, ticket, ticket_input(ticket, ()), "default", Route("org/repo"), START)


def test_every_row_is_reached_and_every_observation_has_an_act() -> None:
    rows = {id(row) for table in TABLES.values() for row in table.rows}
    reached = set()
    for values in itertools.product(
        ThreadState, Want, Crowd, (None, Looked.NOT_THERE), BOTH, BOTH, MessageState, BOTH, BOTH, BOTH, BOTH
    ):
        observation = ThreadObservation(*values)
        reached.add(id(TABLES[observation.state].row(observation)))
        assert isinstance(act(observation), Act)
    assert reached == rows


@pytest.mark.parametrize("state", ThreadState)
def test_every_row_of_a_room_says_in_a_sentence_of_its_own_why_it_stands_there(state: ThreadState) -> None:
    reasons = [row.why for row in TABLES[state].rows]
    assert all(len(why.split()) >= 4 and why[0].isupper() and why.endswith(".") for why in reasons)
    assert len(reasons) == len(set(reasons))


def test_200_issues_with_200_causes_are_one_post_led_by_the_most_severe() -> None:
    issues = [seen(number, severity=Severity.CRITICAL if number == 77 else Severity.WARNING) for number in range(200)]
    step = next_step(issues, {}, "", True, START)
    assert (step.act, len(step.issues), step.issues[0].ticket.uid) == (Act.POST_CROWD, 200, "uid-77")
    crowd = ChatThread("a", START, START, id="1.0", crowd=True, place="waiting", written=START)
    after = [seen(77, crowd), *issues[:77], *issues[78:]]
    joins = next_step(after, {}, "", True, START + timedelta(seconds=2))
    assert (joins.act, len(joins.issues), joins.joins) == (Act.JOIN, 199, crowd)


def test_nothing_is_begun_while_nobody_knows_where_the_crowd_is() -> None:
    posting = ChatThread("a", START, START, crowd=True)
    step = next_step([seen(0, posting), seen(1)], {}, "", True, START + timedelta(seconds=5))
    assert step.act is Act.NOTHING


def test_a_post_without_an_answer_is_looked_for_after_a_minute_and_posted_again_only_after_the_look() -> None:
    posting = seen(1, ChatThread("a", START, START))
    acts = [next_step([posting], {}, "", True, START + timedelta(seconds=after)).act for after in (30, 60)]
    assert acts == [Act.NOTHING, Act.LOOK]
    looked = {posting.ticket.name: Looked.NOT_THERE}
    assert next_step([posting], looked, "", True, START + timedelta(seconds=60)).act is Act.POST


def test_a_thread_whose_first_issue_is_gone_is_kept_up_to_date_by_another() -> None:
    joined = ChatThread("a", START, START, id="1.0")
    step = next_step([seen(1, joined), seen(2, joined)], {}, "", True, START + timedelta(minutes=20))
    assert (step.act, len(step.issues)) == (Act.EDIT, 2)


def test_in_quiet_hours_nobody_is_called_by_a_reply_until_they_are_over() -> None:
    thread = ChatThread("a", START, START, id="1.0", place="waiting", written=START)
    issue = seen(1, thread)
    needed = replace(issue, view=replace(issue.view, place=BoardPlace.PERSON))
    acts = [next_step([replace(needed, quiet=quiet)], {}, "", False, START).act for quiet in BOTH]
    assert acts == [Act.TELL, Act.NOTHING]


def test_what_cannot_be_edited_is_not() -> None:
    thread = ChatThread("a", START, START, id="1.0", place="waiting", written_hash="other", written=START)
    later = START + timedelta(minutes=20)
    assert next_step([seen(1, thread)], {}, "", True, later).act is Act.EDIT
    assert next_step([seen(1, thread)], {}, "", False, later).act is Act.NOTHING


@pytest.mark.parametrize(
    ("told", "stands", "tells"),
    [
        ("waiting", BoardPlace.REPAIRING, False),
        ("repairing", BoardPlace.PERSON, True),
        ("person", BoardPlace.PERSON, False),
        ("person", BoardPlace.REPAIRING, False),
        ("person", BoardPlace.DONE, True),
        ("done", BoardPlace.WAITING, True),
        ("done", BoardPlace.DONE, False),
        ("", BoardPlace.PERSON, False),
    ],
)
def test_people_are_told_when_one_is_needed_when_it_is_over_and_when_it_is_back(
    told: str, stands: BoardPlace, tells: bool
) -> None:
    assert untold(stands, told) is tells


def test_tickets_that_differ_only_in_what_rooms_were_told_are_the_same() -> None:
    ticket = seen(1).ticket
    assert replace(ticket, chat=(ChatThread("a", START, START),)) == ticket


async def test_a_pass_over_1000_issues_that_wait_gives_the_loop_a_turn_after_each_100() -> None:
    cache: Any = SimpleNamespace(
        tickets=[open_ticket(number) for number in range(1000)],
        about=lambda subject: (),
        nodes={},
        informers=(),
    )
    routes: Any = SimpleNamespace(newest=Routes(Route("org/repo")))
    anything: Any = SimpleNamespace(edits=True, is_leader=False)
    rooms = Rooms(
        anything,
        Unchanging({"a": ROOM}),
        lambda room: anything,
        cache,
        routes,
        anything,
        Clock(lambda: START, lambda: 0.0),
    )
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(count())
    assert await rooms.serve("a") == EVERY
    other.cancel()
    assert turns >= 9  # the first of ten begins what counts them


class Stand(SimpleNamespace):
    """A chat that nobody posts to."""

    edits, closed = True, False

    async def aclose(self) -> None:
        self.closed = True


class Written:
    """The file of rooms, each time ten seconds later, and the rooms by it."""

    def __init__(self, folder: Path, text: str, cannot: str = "") -> None:
        self.file, self.cannot, self.now = folder / "chat.yaml", cannot, START
        self.made: list[Stand] = []
        self.file.write_text(text)
        nothing: Any = SimpleNamespace(tickets=[], informers=(), nodes={}, is_leader=False)
        routes: Any = SimpleNamespace(newest=Routes(Route("org/repo")))
        live, clock = LiveFile(self.file, load, "rooms", ROOMS_OUTDATED), Clock(lambda: self.now, lambda: 0.0)
        self.rooms = Rooms(nothing, live, self.make, nothing, routes, nothing, clock)

    def make(self, room: Room) -> Any:
        if room.name == self.cannot:
            raise ValueError("--chat needs apprise")
        self.made.append(Stand(name=room.name))
        return self.made[-1]

    async def served(self, text: str, names: str) -> list[float | None]:
        self.file.write_text(text)
        self.now += LOOK_EVERY
        return [await self.rooms.serve(name) for name in names]

    @property
    def closed(self) -> list[tuple[str, bool]]:
        return [(stand.name, stand.closed) for stand in self.made]


async def test_rooms_are_read_again_when_their_file_changes_and_kept_while_it_has_a_mistake(tmp_path: Path) -> None:
    at, woken = Written(tmp_path, "rooms: {a: {apprise: one}, b: {apprise: two}}"), list[str]()
    at.rooms._began()
    queue: Any = at.rooms.queue
    queue.add = lambda *names: woken.extend(names)
    text = "rooms: {a: {apprise: one, severity: [Warning]}, c: {apprise: three}}"
    assert await at.served(text, "abc") == [EVERY, None, EVERY]
    assert woken == ["c"]
    assert at.closed == [("a", False), ("b", True), ("c", False)], "what stays where it was is not made anew"
    assert await at.served("rooms: {a: {apprise: other}}", "ac") == [EVERY, None]
    assert at.closed == [("a", True), ("b", True), ("c", True), ("a", False)]
    assert await at.served("rooms: {a: {apprise: '/etc/x'}}", "a") == [EVERY]
    assert at.rooms.outdated.endswith("until then the rooms from before that change count")
    assert f"{at.file}: rooms.a.apprise: it is not the name of a file" in at.rooms.outdated
    assert (len(at.made), ROOMS_OUTDATED._value.get()) == (4, 1)
    assert await at.served("rooms: {a: {apprise: other}}", "a") == [EVERY]
    assert (len(at.made), at.rooms.outdated, ROOMS_OUTDATED._value.get()) == (4, "", 0)


async def test_a_room_that_cannot_be_made_holds_no_other_up(tmp_path: Path) -> None:
    at = Written(tmp_path, "rooms: {a: {apprise: one}}", cannot="b")
    assert await at.served("rooms: {a: {apprise: one}, b: {apprise: two}}", "ba") == [AFTER_REFUSAL, EVERY]
