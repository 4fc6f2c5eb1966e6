"""The shipped channel over GitHub in memory: no socket and no thread, and all time that passes is virtual."""

from random import Random

import pytest

from remediator.clock import Clock
from remediator.tickets.channels.base import Draft, Later, Marker, Unsure
from remediator.tickets.channels.github import GithubTokenFile
from remediator_sim.github import GithubFault
from remediator_sim.simulation import loop
from remediator_sim.simulation.clock import BEGIN, now, true_time
from remediator_sim.simulation.hub import DEFAULT, Hub
from remediator_sim.simulation.line import Line
from remediator_sim.simulation.wire import WireFault

DRAFT = Draft("gpu-17: GpuLost", "it is gone", Marker("0123456789abcdef", BEGIN))
ISSUES = "/issues$"


class Place:
    """A GitHub, and one process with its line and its channel."""

    def __init__(self) -> None:
        self.seen, self.died = [], 0
        self.hub = Hub(self.seen.append, lambda who, text: None)
        self.line = Line(self.hub, Random(1), self._die)
        clock = Clock(true_time, now)
        self.channel = self.line.channel(self.hub.github.url, GithubTokenFile(self.hub.token), clock, spacing=1.0)

    def _die(self) -> None:
        self.died += 1
        self.line.kill()

    async def create(self):
        return await self.channel.create(DEFAULT, DRAFT)


def played(story):
    async def whole():
        place = Place()
        try:
            return await story(place)
        finally:
            place.hub.close()

    return loop.run(whole())


def test_ten_issues_are_ten_seconds_apart_at_least_and_each_change_is_told():
    async def story(place):
        made = [await place.create() for _ in range(10)]
        return [issue.number for issue in made], now(), len(place.seen)

    numbers, seconds, told = played(story)
    assert (numbers, told) == (list(range(1, 11)), 10)
    assert 10 < seconds < 20


def test_of_a_create_that_is_carried_out_when_its_process_dies_there_is_an_issue_and_no_answer():
    async def story(place):
        place.line.faults.append(WireFault("die-after", methods=("POST",)))
        with pytest.raises(TimeoutError):
            async with loop.asyncio.timeout(60):
                await place.create()
        return place.died, len(place.hub.there())

    assert played(story) == (1, 1)


@pytest.mark.parametrize(
    ("fault", "error", "issues"),
    [
        (GithubFault(carried_out=True, drop=True), Unsure, 1),
        (GithubFault(drop=True), Unsure, 0),
        (GithubFault(carried_out=True, silent=True), Unsure, 1),
        (GithubFault.secondary(retry_after=70), Later, 0),
        (GithubFault(503), Unsure, 0),
    ],
)
def test_what_goes_wrong_with_a_create_is_told_as_over_http(fault, error, issues):
    async def story(place):
        place.hub.github.fail("POST", ISSUES, fault)
        with pytest.raises(error):
            await place.create()
        return len(place.hub.there())

    assert played(story) == issues


def test_a_github_that_cannot_be_reached_was_never_asked():
    async def story(place):
        place.hub.away = True
        with pytest.raises(Later, match="no connection to GitHub"):
            await place.create()

    played(story)


def test_a_read_is_repeated_three_times_after_growing_pauses_and_a_write_is_not():
    async def story(place):
        made = await place.create()
        begun = now()
        place.hub.github.fail("GET", "/issues/1$", GithubFault(502), times=3)
        read = await place.channel.get(made.ref)
        asked = [request.status for request in place.hub.github.requests if request.method == "GET"]
        return read == made, asked, now() - begun

    same, asked, seconds = played(story)
    assert (same, asked) == (True, [502, 502, 502, 200])
    assert seconds > 0
