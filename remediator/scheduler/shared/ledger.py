"""What is written into a ledger, and what may be taken out of it. Pure.

A reservation holds its cards until it is certain that its Pod does not: the Pod is gone, has ended, is on another node,
or no bind that was begun for it can count any more. One bind never takes back what another one may still bind to.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from remediator.core.shared_gpus import MOST_RESERVATIONS, CardPod, CardSizes, Ledger, Reservation
from remediator.scheduler.shared.cards import Cards, CardsReason, cards, choose, refusal

PATIENCE = timedelta(seconds=30)  # a reservation that is as old and whose Pod is not seen on its node is looked after
SOON = f"others are given once these are taken back, after {PATIENCE.total_seconds():g} s"


class Reserved(NamedTuple):
    """The ledger to write, and the cards. `first`: no other bind has reserved for this Pod here before."""

    ledger: Ledger
    reservation: Reservation
    first: bool


class CardRefusal(NamedTuple):
    """Why no card is given."""

    reason: CardsReason
    why: str


def reserve(
    ledger: Ledger,
    pod: CardPod,
    sizes: CardSizes,
    unhealthy: frozenset[int] | None,
    pods: Iterable[CardPod],
    now: datetime,
    token: str,
) -> Reserved | CardRefusal:
    """Cards for a Pod that has no node. What another bind has reserved for it here stays its: that one may still count.

    Where nobody may be bound to these any more, no others are given either: first they have to be taken back, with a
    fence (see doubtful). `token` names this bind. `pods`: those that are known on the node.
    """
    before, mine = ledger.of(pod.uid), cards(sizes, unhealthy, ledger, pods)
    if before is not None:
        again = replace(before, at=now, token=token)
        return _unfit(before, pod, mine) or Reserved(ledger.having(again), again, first=False)
    reason = refusal(mine, pod.ask)
    shares = None if reason else choose(mine.free, pod.ask)
    if shares is None:
        return CardRefusal(reason or CardsReason.NO_ROOM, pod.ask.mistake or mine.why)
    if len(ledger.reservations) >= MOST_RESERVATIONS:
        return CardRefusal(
            CardsReason.NO_ROOM, f"{MOST_RESERVATIONS} Pods hold memory of its cards, the most of one node"
        )
    fresh = Reservation(pod.uid, pod.namespace, pod.name, shares, now, token)
    return Reserved(ledger.having(fresh), fresh, first=True)


def _unfit(before: Reservation, pod: CardPod, mine: Cards) -> CardRefusal | None:
    """Why a Pod may not be bound to what it has reserved; None where it may."""
    if mine.reason is not None:
        return CardRefusal(mine.reason, mine.why)
    lost = sorted({index for index, _ in before.shares} - {index for index, _ in mine.free})
    if lost:
        return CardRefusal(CardsReason.NO_ROOM, f"cards {lost}, which it has reserved, are unhealthy; {SOON}")
    if sum(memory for _, memory in before.shares) != pod.ask.memory:
        return CardRefusal(CardsReason.NO_ROOM, f"it has reserved another amount of memory; {SOON}")
    return None


class Fate(StrEnum):
    """What the API server says of the Pod of a reservation."""

    HOLDS = "Holds"  # it is on this node and has not ended
    FREE = "Free"  # it will never hold these cards
    UNBOUND = "Unbound"  # it has no node: a bind that was begun may still count


def fate(entry: Reservation, node: str, live: CardPod | None) -> Fate:
    """What became of the Pod; `live` as the API server has it now, None where it has none of that name."""
    rows = (
        (live is None or live.uid != entry.pod_uid, Fate.FREE),
        (live is not None and live.ended, Fate.FREE),
        (live is not None and bool(live.node) and live.node != node, Fate.FREE),
        (live is not None and live.node == node, Fate.HOLDS),
    )
    return next((word for holds, word in rows if holds), Fate.UNBOUND)


def doubtful(
    ledger: Ledger, seen: Collection[str], departed: Collection[str], now: datetime
) -> tuple[Reservation, ...]:
    """The reservations to look after: whose Pod has left the node, or should be seen there by now and is not.

    `seen`: uids of the Pods that are known on the node; `departed`: of those that were, and are not any more.
    """
    return tuple(
        entry
        for entry in ledger.reservations
        if entry.pod_uid not in seen and (entry.pod_uid in departed or now - entry.at >= PATIENCE)
    )


def unlisted(ledger: Ledger, pods: Iterable[CardPod], now: datetime) -> tuple[Reservation, ...]:
    """What Pods on the node hold that the ledger does not say: another one has bound them, or the ledger was lost."""
    return tuple(
        Reservation(pod.uid, pod.namespace, pod.name, pod.shares, now)
        for pod in pods
        if pod.shares and not pod.ended and ledger.of(pod.uid) is None
    )[: MOST_RESERVATIONS - len(ledger.reservations)]


def adopted(ledger: Ledger, pods: Iterable[CardPod], now: datetime) -> Ledger:
    """With all that Pods on the node hold."""
    return ledger.having(*unlisted(ledger, pods, now))
