"""Users who take nodes out: they put them back, forget them, want them for longer, and ask for what others have."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.invariants.contract import CASES, kept_until
from remediator_sim.plain import plain
from remediator_sim.simulation import moments
from remediator_sim.simulation.clock import now, true_time
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn
from remediator_sim.simulation.taker import Taker

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

OWNER, RIVAL = "olga", "bob"
PATIENCE, AGAIN = 1800.0, 60.0  # seconds for which a moment is waited for and a command is repeated, and between two
TOLD = "new PSU"
MOMENTS = ("", "case", "case", "claim", "drain", "drained", "intent")
# Seconds: for how long a node is to be out, when it is put back (0: never), and when something else comes between.
LENGTHS, BACK = (300, 900, 900, 2400), (60, 600, 1500, 1500, 2700, 0)
FOR_LONGER, LATER = (300, 1200), (900, 3000)
OTHERS, LET_TRY = (20, 400), (500, 900)
TAKEN, ILL = 5, 2  # nodes that are taken out, and those of them that are ill already
BEFORE = (60.0, 900.0)  # seconds after which the others fall ill
USUAL: dict[str, Any] = {"moment": "", "more": 0, "length": 0, "rival": 0, "retry": 0}  # of a plan written by hand


def _maybe(chance: Random, share: float, seconds: tuple[int, int]) -> int:
    return chance.randint(*seconds) if chance.random() < share else 0


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(
        chance.choice(fleet.nodes),
        moment=chance.choice(MOMENTS),
        seconds=chance.choice(LENGTHS),
        back=chance.choice(BACK),
        more=_maybe(chance, 0.4, FOR_LONGER),
        length=chance.choice(LATER),
        rival=_maybe(chance, 0.4, OTHERS),
        retry=_maybe(chance, 0.4, LET_TRY),
    )


async def _take_out(world: "World", step: Step) -> None:
    """From now on or from a moment of a repair on: ask, and do each of the other things so many seconds later."""
    words = USUAL | dict(step.words)
    if words["moment"] and not await moments.moment(world, step.target, words["moment"], PATIENCE):
        return
    owner, rival, node = Taker(world.client, OWNER), Taker(world.client, RIVAL), step.target
    if not await _typed(world, lambda: owner.take_out(node, _in(words["seconds"]), TOLD)):
        return
    deeds: dict[str, Callable[[], Awaitable[object]]] = {
        "more": lambda: _typed(world, lambda: owner.take_out(node, _in(words["length"])), again=False),
        "rival": lambda: _typed(world, lambda: rival.take_out(node, _in(words["length"]), "a test"), again=False),
        "retry": lambda: _typed(world, lambda: _retry(world, node), again=False),
        "back": lambda: _typed(world, lambda: owner.put_back(node), again=False),
    }
    begun = now()
    for name in sorted((name for name in deeds if words[name]), key=lambda name: float(words[name])):
        await asyncio.sleep(max(0.0, begun + words[name] - now()))
        await deeds[name]()


async def _typed(world: "World", command: Callable[[], Awaitable[bool]], *, again: bool = True) -> bool:
    """Type a command until it is answered, and, `again`, until it does something; whether it did."""
    latest = now() + PATIENCE
    while not world.ended and now() < latest:
        try:
            done = await command()
            if done or not again:
                return done
        except errors.ApiError:
            pass
        await asyncio.sleep(AGAIN)
    return False


async def _retry(world: "World", node: str) -> bool:
    """Let what keeps the node out try again: there is nothing to try. The command says so, `kubectl` writes it."""
    for name in world.open_cases(node):
        spec = world.look(CASES, name)["spec"]
        if kept_until({"spec": spec}):
            await world.client.patch(plain(api.CASE), name, {"spec": {"retry": spec.get("retry", 0) + 1}})
    return True


def _in(seconds: float) -> Any:
    return (true_time() + timedelta(seconds=seconds)).replace(microsecond=0)


def steps(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> tuple[Step, ...]:
    """Nodes that are ill, and others that fall ill once they are out; a leader dies."""
    chosen = chance.sample(faults, min(TAKEN, len(faults)))
    ill = [_step(chance, fleet, fault, fault.at - 1.0) for fault in chosen[:ILL]]
    well = [_step(chance, fleet, fault, fault.at - chance.uniform(*BEFORE), moment="") for fault in chosen[ILL:]]
    phase = chance.choice(("Held", "Draining", "Escalated"))
    words = (("case", (well[0].target, phase)), ("how", "now"), ("part", ""), ("back", chance.choice((1, 20, 120))))
    return (*ill, *well, Step(well[0].at, "crash", "leader", words))


def _step(chance: Random, fleet: Fleet, fault: Step, at: float, **words: object) -> Step:
    drawn_words = dict(TAKE_OUT.draw(chance, fleet).words) | words
    return Step(round(max(0.0, at), 3), TAKE_OUT.name, fault.target, tuple(drawn_words.items()))


TAKE_OUT = StepKind("take-out", 0, _draw, _take_out, each=f"{TAKEN} in one of 17 seeds")
KINDS = (TAKE_OUT,)
