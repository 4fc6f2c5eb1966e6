"""The budget of a plan: how much of the fleet, for each rack or for all, and when its breaker opens."""

from random import Random

from remediator_sim.simulation.node import RACK
from remediator_sim.simulation.plan import Step, Words

GROUPED = 0.25  # of the plans have one budget for each rack
# Some budgets have a breaker of their own; the last ones are closed once by a user.
BROKEN, BREAKERS = (
    0.35,
    (
        {"starts": 3, "window": "15m"},
        {"percent": 10, "window": "10m"},
        {"starts": 6, "percent": 20, "window": "30m"},
        {"failures": {"of": 4, "most": 2}},
        {"starts": 5, "failures": {"of": 6, "most": 3}},
    ),
)


def spec(chance: Random, most: tuple[str, object], ceiling: object) -> Words:
    """What the budget over all nodes says: in some plans for each rack by itself."""
    words = (most, ("maxQuarantined", ceiling)) if ceiling else (most,)
    grouped = chance.random() < GROUPED and most[0] == "maxUnavailable"
    return (*words, ("groupBy", RACK)) if grouped else words


def breaker(chance: Random, last: float) -> tuple[Words, list[Step], int]:
    """The breaker of the budget, in some plans, when a user closes it, and how many of ten faults nothing cures."""
    if chance.random() >= BROKEN:
        return (), [], 0
    rule = chance.choice(BREAKERS)
    at = round(chance.uniform(last / 2, last), 3)
    by_failures = "failures" in rule
    return (("breaker", rule),), [Step(at, "close-breakers")] if by_failures else [], 7 if by_failures else 0
