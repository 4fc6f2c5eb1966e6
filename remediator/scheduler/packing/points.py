"""The points of a placement, by each way to score. More is better; all are whole numbers.

kube-scheduler breaks ties at random, so a score must tell good places apart by itself. Of nodes that a placement leaves
about equally fragmented, within a step of one per cent, the one that it leaves the fullest comes first.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from math import exp
from typing import NamedTuple

from remediator.scheduler.packing.room import CARD

STEPS = 100  # of fragmentation
FINE = 1000  # steps of fullness within one of fragmentation
BLENDED = 19  # most points of the blend
RATIO = 10  # most points of packing
CORES, CARDS = 128, 8  # free on a usual empty node; what is free beyond it counts little
USUAL = 0.9  # of the steps, up to there


class PlacementOutcome(NamedTuple):
    """What a placement does to a node. `gain`: by how much fragments shrink, in thousandths of a card."""

    gain: float
    cpu: int  # what is left, in thousandths of a core
    rest: int  # what is left of the cards that may serve the Pod, in thousandths
    cards: int  # that the node has of them


class Score(StrEnum):
    """How nodes are scored, as the option says."""

    FGD = "fgd"
    BLEND = "fgd-blend"
    PACKING = "packing"


def gain_step(outcome: PlacementOutcome) -> int:
    """0 to 99: how much less fragmented the node is, as FGD scores it; 50 for no change.

    >>> [gain_step(Outcome(1000 * cards, 0, 0, 8)) for cards in (-8, -1, 0, 1, 8)]
    [0, 26, 50, 73, 99]
    """
    return min(STEPS - 1, int(STEPS * _squashed(outcome.gain)))


def _squashed(gain: float) -> float:
    """Between 0 and 1; a half for no change."""
    return 1 / (1 + exp(-max(gain, -600 * CARD) / CARD))


def fullness(outcome: PlacementOutcome) -> int:
    """0 to 999: how little of CPU and cards is left, each as much as the other.

    >>> [fullness(Outcome(0, cpu, rest, 8)) for cpu, rest in ((0, 0), (0, 8000), (128_000, 8000), (512_000, 64_000))]
    [999, 549, 99, 0]
    """
    left = _left(outcome.cpu / (CORES * CARD)) + _left(outcome.rest / (CARDS * CARD))
    return int((FINE - 1) * (1 - left / 2))


def _left(share: float) -> float:
    """0 to 1, of a share of what is usual."""
    if share <= 1:
        return USUAL * share if share > 0 else 0.0
    return min(USUAL + (1 - USUAL) * (share - 1), 1.0)


def gain_and_fullness(outcome: PlacementOutcome) -> int:
    """0 to 99,999."""
    return gain_step(outcome) * FINE + fullness(outcome)


def blended(outcome: PlacementOutcome) -> int:
    """0 to 19: a third for the gain, the rest for (requested + used) / capacity of the cards.

    >>> [blended(Outcome(gain, 0, rest, 8)) for gain, rest in ((-2000, 8000), (0, 8000), (0, 7000), (8000, 0))]
    [0, 3, 4, 18]
    """
    capacity = outcome.cards * CARD
    full = (capacity - outcome.rest) / capacity if capacity else 1.0
    return int(BLENDED / 3 * (_squashed(outcome.gain) + 2 * full))


def ratio(outcome: PlacementOutcome) -> int:
    """0 to 10: (requested + used) / capacity of the cards.

    >>> [ratio(Outcome(0, 0, rest, 4)) for rest in (4000, 2000, 0)]
    [0, 5, 10]
    """
    capacity = outcome.cards * CARD
    return RATIO * (capacity - outcome.rest) // capacity if capacity else RATIO


POINTS: Mapping[Score, Callable[[PlacementOutcome], int]] = {
    Score.FGD: gain_and_fullness,
    Score.BLEND: blended,
    Score.PACKING: ratio,
}
