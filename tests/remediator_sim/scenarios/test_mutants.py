"""The demo is red when the product is broken: for each invariant a small change of the code that must be found."""

import asyncio
import sys
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

import pytest
from rich.console import Console

from remediator.core import names
from remediator.core.breaker import Breaker
from remediator_sim.plain import SPACES
from remediator_sim.scenarios.environment import BREAKER, Stage
from remediator_sim.scenarios.fleet import AT_ONCE
from remediator_sim.scenarios.runner import Show
from tests.remediator_sim.invariants.mutations import MUTATIONS

SECONDS = 100.0  # more than any of them needs on a busy machine
MUTANT = "tests.remediator_sim.invariants.mutant"


class Part(NamedTuple):
    """As much of the demo as makes one mutation show."""

    chapters: tuple[str, ...]
    nodes: int = 6
    breaker: Breaker = BREAKER
    at_once: int = AT_ONCE
    paused: bool = False
    crashing: bool = False


ONE = Part(("lost-gpu",))
PARTS = {
    "I1": Part(("lost-gpu", "ecc-fault", "blocked-drain"), nodes=9, at_once=1),
    "I2": ONE,
    "I3": Part(("dead-nfs-server",), nodes=18),
    "I4": Part(("lost-gpu", "returning-fault"), breaker=Breaker(1, timedelta(minutes=2))),
    "I4-pause": Part(("lost-gpu",), paused=True),
    "I5": ONE,
    "I6": ONE,
    "I7": Part(("lost-gpu", "returning-fault"), crashing=True),
    "I8": Part(("dead-nfs-server",), nodes=18),
    "I9": ONE,
    "I10": Part(("returning-fault",)),
}


def test_every_invariant_has_a_mutation_and_every_mutation_a_part_of_the_demo() -> None:
    assert set(PARTS) == set(MUTATIONS)
    assert {mutation.invariant for mutation in MUTATIONS.values()} == {f"I{number}" for number in range(1, 11)}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", PARTS)
async def test_a_mutation_turns_the_demo_red(name: str, tmp_path) -> None:
    part, invariant = PARTS[name], MUTATIONS[name].invariant
    command = (sys.executable, "-m", MUTANT, name)
    show = Show(tmp_path, Console(quiet=True), part.nodes, command, part.chapters, part.breaker, part.crashing)
    async with Stage(tmp_path, part.nodes, command, show.hear, part.breaker, part.at_once) as stage:
        if part.paused:
            stop = {"metadata": {"annotations": {names.PAUSED: "true"}}}
            await stage.client.patch(SPACES, names.SYSTEM_NAMESPACE, stop)
        playing = asyncio.ensure_future(show.play(stage))
        until = asyncio.get_running_loop().time() + SECONDS
        try:
            while not stage.observer.report()[invariant].broken and asyncio.get_running_loop().time() < until:
                await stage.view.changed(0.5)
        finally:
            playing.cancel()
            with suppress(asyncio.CancelledError):
                await playing
        assert stage.observer.report()[invariant].broken, f"{MUTATIONS[name].says} Nobody noticed: {show.words}"
