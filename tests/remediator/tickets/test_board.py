"""Cards of a board follow their issues and stay where a user puts them; by REST on github.com, by GraphQL elsewhere."""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remediator.core.case import Block, Case, Phase
from remediator.core.names import CARD, Namespaces
from remediator.core.reasons import Reason
from remediator.core.ticket import IssueRef, Ticket, TicketPhase
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.informers import Informers
from remediator.tickets.board.decide import BoardStep, place, step
from remediator.tickets.board.run import ALL, BoardMover
from remediator.tickets.channels.base import Draft, Later, Marker, Refused
from remediator.tickets.channels.boards import BoardPlace, ProjectBoard
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.github.projects import has_rest_projects
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.conditions import BOARD_INVALID
from remediator_sim.github import Access, GithubFault
from remediator_sim.github.connection import connected
from remediator_sim.github.dispatch import Reply
from tests.harness.kinds import TICKETS
from tests.harness.tickets import GPU
from tests.remediator.tickets.memory_channel import START
from tests.remediator.tickets.test_channel import Here, Way
from tests.remediator.tickets.test_commands import REPO, World

BOARD = ProjectBoard("org", 7, "Status", "Todo", "In Progress", "Blocked", "Done")
OPEN = Ticket("t", "uid", GPU, phase=TicketPhase.OPEN)


def case(phase: Phase, *reasons: Reason, ended: bool = False) -> Case:
    blocks = tuple(Block(reason, "") for reason in reasons)
    return Case("a", "a", "n", "n", "p", None, START, phase=phase, blocks=blocks, ended=START if ended else None)


@pytest.mark.parametrize(
    ("ticket", "cases", "where"),
    [
        (OPEN, [], BoardPlace.WAITING),
        (OPEN, [case(Phase.HELD, Reason.BUDGET_SPENT)], BoardPlace.WAITING),
        (OPEN, [case(Phase.DRAINING)], BoardPlace.REPAIRING),
        (OPEN, [case(Phase.VERIFYING), case(Phase.HELD)], BoardPlace.REPAIRING),
        (OPEN, [case(Phase.HELD, Reason.APPROVAL_NEEDED)], BoardPlace.PERSON),
        (OPEN, [case(Phase.OPERATING), case(Phase.ESCALATED)], BoardPlace.PERSON),
        (OPEN, [case(Phase.ESCALATED, ended=True)], BoardPlace.WAITING),
        (replace(OPEN, phase=TicketPhase.CLOSED), [case(Phase.ESCALATED)], BoardPlace.DONE),
    ],
)
def test_where_an_issue_stands(ticket: Ticket, cases: list[Case], where: BoardPlace) -> None:
    assert place(ticket, cases) is where


@pytest.mark.parametrize(
    ("written", "current", "what"),
    [
        pytest.param("", "", BoardStep.MOVE, id="new"),
        pytest.param("", "Todo", BoardStep.MOVE, id="new, where the board itself puts what is new"),
        pytest.param("Todo", "Todo", BoardStep.MOVE, id="as we left it"),
        pytest.param("Todo", "Done", BoardStep.RECORD, id="moved there already, by us before a crash or by a user"),
        pytest.param("Todo", "Backlog", BoardStep.LEAVE, id="moved by a user"),
        pytest.param("Todo", "", BoardStep.LEAVE, id="taken off its column by a user"),
    ],
)
def test_a_card_moves_only_from_where_we_put_it(written: str, current: str, what: BoardStep) -> None:
    assert step("Done", written, current) is what


GITHUBS = {
    "rest": {"web_url": "https://github.com", "api_url": "https://api.github.com"},
    "graphql": {"web_url": "https://github.corp.test"},
}


class OnBoard(World):
    """The same issue, on a board of a GitHub that has the one API or the other."""

    def __init__(self, folder: Path, api: str) -> None:
        super().__init__(folder, **GITHUBS[api])
        self.api = api

    async def begin(self) -> None:
        await super().begin()
        self.project = self.hub.project("org", 7, "Status", "Todo", "In Progress", "Blocked", "Done")
        self.mover: BoardMover | None = None

    async def moves(self) -> float | None:
        """One pass with caches that are up to date."""
        informers = Informers(self.client, self.clock, Namespaces())
        cache = TicketCache(informers)
        await informers.read()
        leader: Any = self.leader
        if self.mover is None:
            routes = Routes(Route(REPO, board=BOARD))
            self.mover = BoardMover(self.client, self.github, cache, routes, leader, self.clock)
        self.mover._cache = self.mover._store.cache = cache
        return await self.mover.serve(ALL)

    def asked(self, since: int = 0) -> list[str]:
        """What was asked about boards, in words that both APIs share."""
        lines = (f"{request.method} {request.path} {request.body}" for request in self.hub.requests[since:])
        return [word for line in lines for word, form in ASKED[self.api].items() if re.search(form, line)]

    def loses(self, what: str) -> None:
        """The next answer to a question of that kind is lost on its way."""
        waiting = [what]

        def carry(method: str, url: str, headers: Mapping[str, str], raw: bytes) -> Reply:
            began = len(self.hub.requests)
            reply = self.hub.serve(method, url, headers, raw)
            if not waiting or self.asked(began) != waiting:
                return reply
            waiting.clear()
            return Reply(0, cut=True)

        self.way.carry = carry

    async def problem(self) -> str:
        """What the Ticket says of its board."""
        told = decode.ticket(await self.client.get(api.TICKET, GPU.name)).condition(BOARD_INVALID)
        return told.message if told is not None else ""

    def other(self) -> GitHub:
        """The channel of another replica, which remembers nothing."""
        with connected(Way(self.hub)):
            return GitHub(self.hub.url, GithubTokenFile(self.token), self.clock, spacing=0.0, worker=Here())

    @property
    def column(self) -> str:
        (column,) = self.project.cards.values()
        return column

    def drag(self, column: str) -> None:
        """A user moves the card."""
        self.project.cards = dict.fromkeys(self.project.cards, column)


ASKED = {
    "rest": {
        "project": "GET .*/projectsV2/7/fields",
        "add": "POST .*/projectsV2/7/items",
        "list": "GET .*/projectsV2/7/items ",
        "move": "PATCH .*/projectsV2/7/items/",
    },
    "graphql": {"project": "projectV2.number", "add": "addProjectV2ItemById", "move": "updateProjectV2ItemFieldValue"},
}


@pytest.fixture(params=GITHUBS)
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[OnBoard]:
    made = OnBoard(tmp_path, request.param)
    await made.begin()
    yield made
    assert (made.hub.violations, made.hub.broken) == ([], [])


async def test_a_card_moves_along_the_phases_with_no_request_in_between(world: OnBoard) -> None:
    columns = []
    for phase in ("Held", "Draining", "Operating", "Escalated"):
        await world.becomes("case-1", phase)
        assert await world.moves() == 30.0
        columns.append(world.column)
        asked = len(world.hub.requests)
        await world.moves()
        assert len(world.hub.requests) == asked
    await world.client.patch(TICKETS, GPU.name, {"status": {"phase": "Closed"}}, subresource="status")
    await world.moves()
    assert [*columns, world.column] == ["Todo", "In Progress", "In Progress", "Blocked", "Done"]


async def test_a_card_that_a_user_has_moved_stays_until_the_user_moves_it_back(world: OnBoard) -> None:
    await world.moves()
    world.drag("Blocked")
    world.mover = None  # another replica leads
    asked = len(world.hub.requests)
    await world.moves()
    assert len(world.hub.requests) == asked  # the Ticket says that nothing has changed
    await world.becomes("case-1", "Draining")
    await world.moves()
    assert world.column == "Blocked"
    world.drag("Todo")
    await world.becomes("case-1", "Escalated")
    await world.moves()
    assert world.column == "Blocked"


async def test_a_crash_between_the_move_and_its_record_moves_nothing_twice(world: OnBoard) -> None:
    await world.becomes("case-1", "Draining")
    await world.moves()
    await world.client.patch(TICKETS, GPU.name, {"metadata": {"annotations": {CARD: "1 Todo"}}})  # as before the move
    world.mover = None
    asked = len(world.hub.requests)
    await world.moves()
    assert "move" not in world.asked(asked)
    assert (await world.client.get(TICKETS, GPU.name))["metadata"]["annotations"][CARD] == "1 In Progress"


@pytest.mark.parametrize("wrong", ["no project", "no field", "no value"])
async def test_what_is_not_on_the_board_is_named_and_looked_for_again(world: OnBoard, wrong: str) -> None:
    projects = world.hub._github.projects
    if wrong == "no project":
        projects.clear()
    if wrong == "no field":
        world.project.field = "Phase"
    if wrong == "no value":
        world.project.options.remove("Todo")
    assert await world.moves() == 300.0
    condition = decode.ticket(await world.client.get(api.TICKET, GPU.name)).condition(BOARD_INVALID)
    assert condition is not None
    assert (condition.reason, "project org/7" in condition.message) == ("BoardRefused", True)
    projects["org", 7] = world.project
    world.project.field, world.project.options = "Status", ["Todo", "In Progress", "Blocked", "Done"]
    world.now += timedelta(minutes=5)
    await world.moves()
    assert world.column == "Todo"
    assert decode.ticket(await world.client.get(api.TICKET, GPU.name)).condition(BOARD_INVALID) is None


async def test_the_next_issue_of_a_ticket_gets_a_card_of_its_own(world: OnBoard) -> None:
    await world.moves()
    issue = (await world.github.create(REPO, Draft("again", "text", Marker("mark2", START)))).ref
    status = {"issue": {"repository": REPO, "number": issue.number, "url": issue.url}}
    await world.client.patch(TICKETS, GPU.name, {"status": status}, subresource="status")
    await world.moves()
    assert list(world.project.cards.values()) == ["Todo", "Todo"]


async def test_once_no_route_has_a_board_its_mistake_is_forgotten_and_nobody_looks_again(world: OnBoard) -> None:
    world.project.options.remove("Todo")
    assert await world.moves() == 300.0
    assert world.mover is not None
    world.mover._routes = Routes(Route(REPO))
    assert await world.moves() is None
    assert decode.ticket(await world.client.get(api.TICKET, GPU.name)).condition(BOARD_INVALID) is None


async def test_who_does_not_lead_any_more_moves_nothing(world: OnBoard) -> None:
    world.leader.is_leader = False
    await world.moves()
    assert world.project.cards == {}


@pytest.mark.parametrize(
    ("url", "rest"),
    [
        ("https://api.github.com", True),
        ("HTTPS://API.GitHub.com:443/", True),
        ("https://api.octocorp.ghe.com", True),
        ("https://github.corp.example/api/v3", False),
        ("https://proxy.corp.example", False),
        ("https://api.github.com.example", False),
        ("https://notghe.com/api/v3", False),
        ("http://127.0.0.1:8080/api/v3", False),
    ],
)
def test_the_url_says_whether_boards_are_in_the_rest_api(url: str, rest: bool) -> None:
    assert has_rest_projects(url) is rest


async def test_each_github_is_asked_by_the_api_that_it_has(world: OnBoard) -> None:
    await world.moves()
    assert world.asked() == ["project", "add", "move"]


@pytest.mark.parametrize("what", ["add", "move"])
async def test_a_lost_answer_leaves_one_card_where_it_belongs(world: OnBoard, what: str) -> None:
    world.loses(what)
    assert [await world.moves() for _ in range(2)] == [30.0, 30.0]
    assert world.asked().count(what) == 2 - (what == "move")
    assert list(world.project.cards.values()) == ["Todo"]
    assert await world.problem() == ""


async def test_two_replicas_that_take_each_other_for_gone_make_one_card(world: OnBoard) -> None:
    issue = world.hub.issues(REPO)[0]
    ref = IssueRef(REPO, issue.number, "")
    first, second = await world.other().card(BOARD, ref), await world.other().card(BOARD, ref)
    assert first == second
    assert list(world.project.cards) == [f"I_{issue.id}"]


async def test_a_card_that_a_user_took_off_is_put_back_and_not_moved(world: OnBoard) -> None:
    await world.moves()
    world.project.cards.clear()
    await world.becomes("case-1", "Escalated")
    await world.moves()
    assert list(world.project.cards.values()) == [""]


@pytest.mark.parametrize("access", [Access.NONE, Access.FORBIDDEN, Access.READ])
async def test_a_missing_right_is_told_with_its_remedy_until_it_is_given(world: OnBoard, access: Access) -> None:
    world.project.access = access
    assert await world.moves() == 300.0
    told = await world.problem()
    assert "org/7" in told
    assert re.search("let the token(, or the App,)? read and write projects of the organization", told, re.IGNORECASE)
    world.project.access = Access.WRITE
    await world.moves()
    assert (world.column, await world.problem()) == ("Todo", "")


async def test_a_value_that_is_made_anew_is_asked_for_again(world: OnBoard) -> None:
    """Its id is another one: GitHub refuses the one that we know, and the next pass learns it."""
    await world.moves()
    world.project.edition = 2
    await world.becomes("case-1", "Draining")
    assert await world.moves() == 300.0
    assert "the route names the board as it is: org/7" in await world.problem()
    await world.moves()
    assert (world.column, await world.problem()) == ("In Progress", "")


async def test_a_rate_limit_of_boards_is_kept_without_a_request(world: OnBoard) -> None:
    limits = {"x-ratelimit-resource": "graphql" if world.api == "graphql" else "core", "retry-after": "90"}
    world.hub.fail("POST", "graphql|projectsV2", GithubFault(403, GithubFault.secondary().message, limits))
    assert await world.moves() == 90.0
    asked = len(world.asked())
    assert await world.moves() == 90.0
    assert len(world.asked()) == asked
    assert await world.problem() == ""


class TestCardsThatSomebodyElseHasPut:
    """REST refuses to add these, and does not say which card it is."""

    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[OnBoard]:
        made = OnBoard(tmp_path, "rest")
        await made.begin()
        yield made
        assert (made.hub.violations, made.hub.broken) == ([], [])

    async def test_the_card_is_found_on_the_last_of_three_pages_and_others_are_then_known(self, world: OnBoard) -> None:
        for number in range(240):
            world.hub.person("ann").open(REPO, f"issue {number}")
        issues = world.hub.issues(REPO)
        world.project.cards = {f"I_{issue.id}": "Done" for issue in reversed(issues)}
        channel = world.other()
        assert (await channel.card(BOARD, IssueRef(REPO, 1, ""))).column == "Done"
        assert world.asked() == ["project", "add", *["list"] * 3]
        assert (await channel.card(BOARD, IssueRef(REPO, 200, ""))).column == "Done"
        assert world.asked()[5:] == []
        assert len(world.project.cards) == 241

    async def test_a_card_that_the_list_does_not_show_yet_is_looked_for_again(self, world: OnBoard) -> None:
        node = f"I_{world.hub.issues(REPO)[0].id}"
        world.project.cards[node], world.project.unlisted = "Todo", {node}
        channel = world.other()
        for _ in range(3):
            with pytest.raises(Later, match="does not show its card"):
                await channel.card(BOARD, IssueRef(REPO, 1, ""))
        with pytest.raises(Refused, match="If it is archived there, restore it"):
            await channel.card(BOARD, IssueRef(REPO, 1, ""))
        world.project.unlisted.clear()
        assert (await channel.card(BOARD, IssueRef(REPO, 1, ""))).column == "Todo"
        assert list(world.project.cards) == [node]

    async def test_a_field_of_another_type_is_no_field_of_single_values(self, world: OnBoard) -> None:
        with pytest.raises(Refused, match="no project org/7 with a field Title of single values"):
            await world.other().card(replace(BOARD, field="Title"), IssueRef(REPO, 1, ""))
