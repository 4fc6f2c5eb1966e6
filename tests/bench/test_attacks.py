"""While the endpoints are attacked others are answered, and memory is bounded: over sockets, with real processes.

No test on time: what a turn of the loop takes of the processor, and in a long run how long others wait, is compared
with the same callers in the same run while nothing is attacked. tests/remediator/web/test_attacks.py has the bounds in
bytes and connections.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from tests.bench.attacks import ATTACKS, WHOLE_NODES, Attacks, measure, measuring
from tests.bench.extender import Report

MOST_MIB = 256  # that the process holds
TRIES = 3  # what else runs on the machine makes a turn longer, never shorter
LONGER_TURN, LONGER_ANSWER = 15, 50  # times as long as while nothing is attacked
# Where the machine lets the process wait, all of these connections have asked by then: a turn answers 160 of them.
ALL_AT_ONCE, THEIR_TURN = "160 connections that ask", 60
CALM, *SENT = ATTACKS
# Requests that kube-scheduler itself could send, and that fill the room which all of its requests share.
FILLING = frozenset(name for name in WHOLE_NODES if "kube-scheduler's" in name)
HALF = "that stop in the middle"  # it takes so long until they are there
Measured = tuple[Callable[[str, float], Awaitable[Report]], Report]


def missed(row: Report, calm: Report) -> list[str]:
    """Which bounds the attack of this row breaks."""
    longer = THEIR_TURN if ALL_AT_ONCE in row["attack"] else LONGER_TURN
    bounds = {
        "memory": row["peak_mib"] < MOST_MIB,
        "others are answered": row["attack"] in FILLING or row["refused"] == 0,
        "a turn of the loop": row["turn_ms"] <= longer * calm["turn_ms"],
    }
    return [bound for bound, held in bounds.items() if not held]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def measured() -> AsyncIterator[Measured]:
    """What measures an attack where 1,000 nodes are, and what others feel while there is none."""
    async with measuring(1000) as row:
        yield row, await row(CALM, 0.3)


@pytest.mark.sampled("attacks")
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("attack", SENT)
async def test_an_attack_takes_no_256_mib_and_nobody_his_answers(measured: Measured, attack: str) -> None:
    row, calm = measured
    for _ in range(TRIES):
        felt = await row(attack, 1.5 if HALF in attack else 0.2)
        if not missed(felt, calm):
            return
    pytest.fail(f"{missed(felt, calm)}: {felt}, {calm}")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("attacks", "options"), [(ATTACKS, ()), (WHOLE_NODES, ("--whole-nodes",))], ids=["names", "whole Nodes"]
)
async def test_where_5000_nodes_are_others_wait_no_50_times_as_long(attacks: Attacks, options: tuple[str, ...]) -> None:
    calm, *rows = await measure(5000, 3.0, attacks, *options)
    assert {row["attack"]: missed(row, calm) for row in rows if missed(row, calm)} == {}, (calm, rows)
    late = [
        (row["attack"], who)
        for row in rows
        for who in ("extender_ms", "probes_ms")
        if row[who]["p50"] > LONGER_ANSWER * calm[who]["p50"]
    ]
    assert late == [], (calm, rows)
