"""Cards of a board follow their issues, and stay where a user puts them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remediator.core.case import Block, Case, Phase
from remediator.core.names import CARD, Namespaces
from remediator.core.reasons import Reason
from remediator.core.ticket import Ticket, TicketPhase
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.informers import Informers
from remediator.tickets.board.decide import BoardStep, place, step
from remediator.tickets.board.run import ALL, BoardMover
from remediator.tickets.channels.base import Draft, Marker
from remediator.tickets.channels.boards import BoardPlace, ProjectBoard
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.conditions import BOARD_INVALID
from tests.harness.kinds import TICKETS
from tests.harness.tickets import GPU
from tests.remediator.tickets.memory_channel import START
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


class OnBoard(World):
    """The same issue, on a board."""

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

    @property
    def column(self) -> str:
        (column,) = self.project.cards.values()
        return column

    def drag(self, column: str) -> None:
        """A user moves the card."""
        self.project.cards = dict.fromkeys(self.project.cards, column)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[OnBoard]:
    made = OnBoard(tmp_path)
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
    assert not any("updateProjectV2" in str(request.body) for request in world.hub.requests[asked:])
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
