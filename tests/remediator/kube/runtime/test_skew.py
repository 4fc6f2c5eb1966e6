"""How far two clocks differ: only what the way of the answer cannot explain."""

from datetime import UTC, datetime, timedelta
from itertools import chain, repeat

import pytest

from remediator.clock import SYSTEM, Clock
from remediator.kube.runtime.skew import ServerClock
from remediator.kube.wire.transport import Reply
from remediator_sim.apiserver import EmbeddedServer

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class _Dated:
    """A server that dates each answer like this, `takes` after the question."""

    def __init__(self, date: str) -> None:
        self.date = date

    async def request(self, method: str, path: str, **_: object) -> Reply:
        return Reply(200, b"", {"date": self.date} if self.date else {})


async def _skew(date: str, takes: float = 0.0) -> float:
    later = NOON + timedelta(seconds=takes)
    readings = chain((NOON, NOON, later), repeat(later))
    server = ServerClock(_Dated(date), Clock(lambda: next(readings), lambda: 0.0))  # type: ignore[arg-type]
    await server.request("GET", "/")
    return server.skew.total_seconds()


@pytest.mark.parametrize(
    ("date", "takes", "skew"),
    [
        ("Fri, 20 Nov 2026 12:00:00 GMT", 0, 0),
        ("Fri, 20 Nov 2026 12:00:45 GMT", 0, 45),
        ("Fri, 20 Nov 2026 12:00:45 GMT", 45, 0),
        ("Fri, 20 Nov 2026 11:59:00 GMT", 0, -59),
        ("Fri, 20 Nov 2026 11:59:00 GMT", 600, -59),
        ("", 0, 0),
        ("yesterday", 0, 0),
        ("Fri, 20 Nov 2026 12:00:45 -0000", 0, 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 0, 251607124799),
    ],
)
async def test_only_what_lies_outside_of_question_and_answer_is_a_difference(
    date: str, takes: float, skew: float
) -> None:
    assert await _skew(date, takes) == skew


@pytest.mark.parametrize(
    ("passed", "set_by", "skew"),
    [(10.0, 0.0, 0), (10.0, 0.5, 0), (10.0, 3600.0, -3600), (10.0, -3600.0, 3600), (0.0, 31.0, -31)],
)
async def test_a_clock_that_is_set_after_the_last_answer_differs_at_once(
    passed: float, set_by: float, skew: float
) -> None:
    wall, monotonic = [NOON], [0.0]
    server = ServerClock(_Dated("Fri, 20 Nov 2026 12:00:00 GMT"), Clock(lambda: wall[0], lambda: monotonic[0]))  # type: ignore[arg-type]
    await server.request("GET", "/")
    wall[0], monotonic[0] = NOON + timedelta(seconds=passed + set_by), passed
    assert (server.skew.total_seconds(), server.differs) == (skew, abs(skew) > 30)


async def test_the_embedded_server_dates_its_answers_by_its_own_clock() -> None:
    ahead = Clock(lambda: SYSTEM.wall() + timedelta(hours=1), SYSTEM.monotonic)
    server = ServerClock(EmbeddedServer(clock=ahead).transport(), SYSTEM)
    for path in ("/api/v1/nodes", "/api/v1/nodes/none"):
        await server.request("GET", path)
        assert 3595 < server.skew.total_seconds() <= 3601
        assert server.differs
