"""One kind of step."""

from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from remediator_sim.simulation.plan import Step, Words

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

# Resources of the API that a replica watches, as they stand in paths.
WATCHED = ("nodes", "noderemediations", "nodeoperations", "nodedisruptionbudgets", "remediationpolicies", "/pods", "")
REPLICAS = ("leader", "follower", "A", "B")


class Drawn(NamedTuple):
    """To whom a step happens, and how."""

    target: str = ""
    words: Words = ()


class Fleet(NamedTuple):
    """What steps are drawn for."""

    nodes: tuple[str, ...]
    policies: tuple[str, ...]
    sick: tuple[str, ...]


class StepKind(NamedTuple):
    """`draw` gives the words of a step by chance, `perform` carries it out; `weight`: how often it is drawn.

    `each`: of a kind of weight 0, how many of it which plans have.
    """

    name: str
    weight: int
    draw: Callable[[Random, Fleet], Drawn]
    perform: Callable[["World", Step], Awaitable[None]]
    each: str = ""


def drawn(target: str = "", **words: object) -> Drawn:
    """A target and words."""
    return Drawn(target, tuple(words.items()))
