"""What of the whole vocabulary a plan has: a few things in most plans, in one of eight all that chance gives.

Most plans are dealt their things like cards: after so many seeds each thing was there equally often, beside others each
time. A promise that two things break together is broken by some seed, and a seed is cheap.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from remediator_sim.simulation import variants

RICH = 8  # of so many seeds one has a plan with much at once
DEALT, DEALT_IF_RICH = 2, 7  # parts of a plan that is not rich, and as many kinds of step; kinds of step of a rich one
# What a plan may have besides its faults and its crash, and the share of the rich plans that have it.
BURST, ROLES, SILENT, PLACES, GATES, GATE_EDITS = "burst", "roles", "silent", "places", "gates", "gate edits"
CONFIRMED, IMAGES, RETRIES, DEVICES, TWINS = "second source", "images", "retries", "lost devices", "twins"
ENDLESS = "endless Pods"
UNHEARD, KILLED, MARK, FORGE, ASK, MEND = "unheard", "killed-between", "mark", "forge", "ask", "mend"
QUARANTINE, IN_VAIN, BREAKER, GROUPS = "quarantine", "in vain", "breaker", "groups"
RECURRENCE, ALERTS, GITHUB, JOBS = "recurrence", "alerts", "github", "jobs"
SHARES = variants.SHARES | {
    BURST: 0.1,
    ROLES: 1.0,
    SILENT: 0.3,
    PLACES: 0.15,
    GATES: 0.5,
    GATE_EDITS: 1.0,
    CONFIRMED: 0.4,
    IMAGES: 0.15,
    ENDLESS: 0.1,
    RETRIES: 0.2,
    DEVICES: 0.15,
    TWINS: 1.0,
    UNHEARD: 1.0,
    KILLED: 1.0,
    MARK: 1.0,
    FORGE: 1.0,
    ASK: 1.0,
    MEND: 1.0,
    QUARANTINE: 0.3,
    IN_VAIN: 0.3,
    BREAKER: 0.35,
    GROUPS: 0.25,
    RECURRENCE: 0.3,
    ALERTS: 1.0,
    GITHUB: 1.0,
    JOBS: 1.0,
}
# Of what has many ways to happen, more cards.
CARDS: tuple[str, ...] = (*SHARES, UNHEARD, KILLED, BREAKER)


class Deal(NamedTuple):
    """The parts of a plan, and the kinds of step that it has besides; `rich`: whether it has much at once."""

    rich: bool
    parts: frozenset[str]
    kinds: tuple[str, ...]


def dealt(seed: int, kinds: Sequence[str]) -> Deal:
    """What the plan of a seed has; `kinds`: the cards for kinds of step."""
    if is_rich(seed):
        parts = frozenset(name for name, share in SHARES.items() if Random(f"{name} in {seed}").random() < share)
        return Deal(True, parts, _cards("kinds of rich plans", kinds, seed // RICH, DEALT_IF_RICH))
    number = seed - seed // RICH
    return Deal(False, frozenset(_cards("parts", CARDS, number, DEALT)), _cards("kinds", kinds, number, DEALT))


def is_rich(seed: int) -> bool:
    """Whether the plan of a seed has much at once."""
    return seed % RICH == 0


def _cards(deck: str, cards: Sequence[str], number: int, count: int) -> tuple[str, ...]:
    """The cards of the plan of this number: the next ones of decks that are shuffled, one after the other."""
    places = (divmod(place, len(cards)) for place in range(number * count, (number + 1) * count))
    return tuple(dict.fromkeys(_shuffled(f"{deck} {round_}", cards)[place] for round_, place in places))


def _shuffled(deck: str, cards: Sequence[str]) -> list[str]:
    return Random(deck).sample(cards, len(cards))
