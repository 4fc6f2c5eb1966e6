"""A case that a person has: it offers its release once its node is healthy, is released, or tries again."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from remediator.core.case import Case
from remediator.core.policy import Policy, Release
from remediator.core.proof import Proof
from remediator.core.reasons import Reason
from remediator.core.table import Row, Table


@dataclass(frozen=True, slots=True)
class OfferObservation:
    """What is observed of a case that a person has."""

    running: bool  # a probe is under way
    proof: Proof  # as for recovery; with the probe, where the policy asks for one
    conditions: bool  # the conditions alone have proven health, and show it now
    offered: bool  # the case says so
    by_itself: bool  # the policy wants the node back, and nothing speaks against it
    retry: bool  # a user lets it try again
    untold: bool = False  # a user keeps the node, and the case does not say until when, or that this is over


NO_OFFER = OfferObservation(
    running=False, proof=Proof.WAITING, conditions=False, offered=False, by_itself=False, retry=False
)


class Offer(Enum):
    """What a pass over such a case does."""

    NOTHING = auto()
    WATCH = auto()  # see to it that the probe that was recorded has its operation
    RELEASE = auto()
    RETRY = auto()  # try again, where something is left to try
    PROBE = auto()
    SAY = auto()  # offer the release
    TAKE_BACK = auto()
    TELL_OUT = auto()  # say until when a user keeps the node, or that this time is over


OFFER_TABLE: Table[Offer] = Table(
    (
        Row(
            {"running": True},
            Offer.WATCH,
            "A probe runs, and nothing is decided in the middle of it.",
        ),
        Row(
            {"conditions": True, "proof": Proof.PASSED, "by_itself": True},
            Offer.RELEASE,
            "The node has proven what a recovery asks for, and its policy wants it back without a person. It stands "
            "above the offer, which nobody need read any more.",
        ),
        Row(
            {"retry": True},
            Offer.RETRY,
            "A user lets the case try again. It stands below the release, since a node that is well needs no more "
            "tries, and above what is only said of the node.",
        ),
        Row(
            {"conditions": True, "proof": Proof.PROBE, "by_itself": True},
            Offer.PROBE,
            "The conditions are healthy, and the probe is still to come. It is made only where the node would be given "
            "back by itself: else a person may work on the node.",
        ),
        Row(
            {"conditions": True, "offered": False},
            Offer.SAY,
            "The node looks healthy and the case does not say so yet. It stands below the release and the probe, which "
            "need no person.",
        ),
        Row(
            {"conditions": False, "offered": True},
            Offer.TAKE_BACK,
            "The case says that the node is healthy, and the node does not prove it any more.",
        ),
        Row(
            {"untold": True},
            Offer.TELL_OUT,
            "The time for which a user keeps the node is over, or they have changed it, and the case does not say so. "
            "That gives nothing back: it stands below all that does.",
        ),
        Row({}, Offer.NOTHING, "A person has the case, and what it says of the node is true."),
    )
)


def offer(observation: OfferObservation) -> Offer:
    """What a pass over a case that a person has does next."""
    return OFFER_TABLE.result(observation)


COMES_BACK = frozenset({Reason.LEMON, Reason.RELAPSED})


def gives_back(policy: Policy | None, case: Case, others: Iterable[Case], now: datetime) -> bool:
    """Whether the policy lets the case be released by itself: not twice within the window of its attempts.

    The node that is unhealthy again soon after has not been cured, and a person must look; nor has one whose fault
    comes back, however healthy it looks.
    """
    if policy is None or policy.release is not Release.WHEN_HEALTHY or case.reason in COMES_BACK:
        return False
    since = now - policy.attempts_window
    released = (other for other in others if other.uid != case.uid and other.reason is Reason.RELEASED_HEALTHY)
    return not any(other.ended is not None and other.ended > since for other in released)
