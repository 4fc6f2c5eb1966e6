"""The budget of a plan: how much of the fleet, for each rack or for all, and when its breaker opens."""

from random import Random
from typing import Any

from remediator_sim.simulation.node import RACK
from remediator_sim.simulation.plan import Step, Words

# Some budgets have a breaker of their own; the last ones are closed once by a user.
BREAKERS: tuple[dict[str, Any], ...] = (
    {"starts": 3, "window": "15m"},
    {"percent": 10, "window": "10m"},
    {"starts": 6, "percent": 20, "window": "30m"},
    {"failures": {"of": 4, "most": 2}},
    {"starts": 5, "failures": {"of": 6, "most": 3}},
)


def spec(most: tuple[str, object], ceiling: object, *, grouped: bool) -> Words:
    """What the budget over all nodes says; `grouped`: for each rack by itself, where it can be."""
    words = (most, ("maxQuarantined", ceiling)) if ceiling else (most,)
    return (*words, ("groupBy", RACK)) if grouped and most[0] == "maxUnavailable" else words


def breaker(chance: Random, last: float) -> tuple[Words, list[Step], int]:
    """A breaker of the budget, when a user closes it, and how many of ten faults nothing cures."""
    rule = chance.choice(BREAKERS)
    at = round(chance.uniform(last / 2, last), 3)
    by_failures = "failures" in rule
    return (("breaker", rule),), [Step(at, "close-breakers")] if by_failures else [], 7 if by_failures else 0
