"""Which cards of a node have room, and which of them a Pod gets. Pure; numbers are signed: a card may lack memory."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from remediator.core.node import Node
from remediator.core.shared_gpus import Ask, CardPod, CardSizes, Ledger, Shares
from remediator.core.spare import PodHolding
from remediator.kube.api.shared_gpus import sold_whole


class CardsReason(StrEnum):
    """Why no card of a node can be given; the same words as the verdicts."""

    MALFORMED = "GpuMemoryMalformed"
    WHOLE = "GpusSharedAndWhole"
    UNKNOWN = "GpuCardsUnknown"
    TOO_SMALL = "GpuCardsTooSmall"
    NO_ROOM = "NoFreeGpuMemory"


class Cards(NamedTuple):
    """The cards of a node: what is free on each that is well, and the sizes of these.

    `reason`: why none can be given; None where they can. `sizes`: of all cards, by index.
    """

    free: tuple[tuple[int, int], ...] = ()
    well: tuple[int, ...] = ()  # sizes of cards that are well, largest first
    sizes: tuple[int, ...] = ()
    reason: CardsReason | None = None
    why: str = ""

    def with_back(self, shares: Shares) -> "Cards":
        """The same once somebody has given this memory back."""
        back = dict(shares)
        return self._replace(free=tuple((card, room + back.get(card, 0)) for card, room in self.free))

    def without(self, shares: Shares) -> "Cards":
        """The same once somebody holds this memory, too."""
        return self.with_back(tuple((card, -memory) for card, memory in shares))


NO_CARDS = Cards()


def shares_of(ledger: Ledger, pods: Iterable[CardPod], count: int) -> dict[str, Shares]:
    """What each Pod holds or has reserved, by uid. Where ledger and annotations differ, the more of both.

    `count`: how many cards the node has. Of a Pod in the ledger, its annotations name no others: its author may write
    them, and a card that the node never had would let nobody tell what is free.
    """
    held = {entry.pod_uid: entry.shares for entry in ledger.reservations}
    for pod in pods:
        if not pod.ended:
            listed = pod.uid in held
            mine = dict(held.get(pod.uid, ()))
            theirs = {card: memory for card, memory in pod.shares if not listed or card < count}
            most = {card: max(mine.get(card, 0), theirs.get(card, 0)) for card in mine | theirs}
            held[pod.uid] = tuple(sorted(most.items()))
    return held


def held_whole(pod: PodHolding | None) -> int:
    """How many GPUs a Pod holds that a device plugin of whole ones has given it."""
    return sum(count for name, count in pod.gpus if sold_whole(name)) if pod is not None else 0


def of_node(
    node: Node, whole: int, unhealthy: frozenset[int] | None, ledger: Ledger, pods: Iterable[CardPod]
) -> Cards | None:
    """The cards of a node; None of one that has none to share. `whole`: how many of its GPUs Pods hold whole.

    Who changes the device plugin of a node does not end its Pods: what they hold is not sold again in the other way.
    """
    if node.cards.shared:
        return cards(node.cards._replace(held_whole=whole), unhealthy, ledger, pods)
    left = len(shares_of(ledger, pods, 0))
    if not left or not any(count for name, count in node.gpus if sold_whole(name)):
        return None
    return Cards(reason=CardsReason.WHOLE, why=f"Pods that still hold memory of its GPUs: {left}; let them end first")


def cards(sizes: CardSizes, unhealthy: frozenset[int] | None, ledger: Ledger, pods: Iterable[CardPod]) -> Cards:
    """The cards of a node as ledger and Pods show them; `unhealthy` None: nobody can tell which are."""
    pods = [pod for pod in pods if not pod.ended]
    held = shares_of(ledger, pods, len(sizes.sizes))
    used: Counter[int] = Counter()
    for shares in held.values():
        used.update(dict(shares))
    well = {index: size for index, size in enumerate(sizes.sizes) if index not in (unhealthy or ())}
    free = tuple((index, size - used[index]) for index, size in well.items())
    reason, why = _reason(sizes, unhealthy, [pod for pod in pods if pod.unreadable and not held.get(pod.uid)], used)
    return Cards(free, tuple(sorted(well.values(), reverse=True)), sizes.sizes, reason, why)


def _reason(
    sizes: CardSizes, unhealthy: frozenset[int] | None, strange: list[CardPod], used: Mapping[int, int]
) -> tuple[CardsReason | None, str]:
    named = sum(size for index, size in enumerate(sizes.sizes) if index in (unhealthy or ()))
    gone = sorted(index for index in used if index >= len(sizes.sizes))
    rows = (
        (sizes.unknown, sizes.unknown),
        (unhealthy is None, "the list of its unhealthy cards cannot be read"),
        (
            sizes.withheld > named,
            f"{sizes.withheld} of its memory is withheld, and the list of unhealthy cards has {named}",
        ),
        (gone, f"Pods hold cards {gone}, which it does not have"),
        (
            strange,
            f"nobody can tell which cards {', '.join(f'{pod.namespace}/{pod.name}' for pod in strange[:3])} hold",
        ),
    )
    if sizes.whole:
        return CardsReason.WHOLE, "it offers whole GPUs, too"
    if sizes.held_whole:
        return CardsReason.WHOLE, f"GPUs that its Pods still hold whole: {sizes.held_whole}; let these Pods end first"
    return next(((CardsReason.UNKNOWN, why) for holds, why in rows if holds), (None, ""))


def refusal(mine: Cards, ask: Ask) -> CardsReason | None:
    """Why a Pod that asks so gets no cards here; None where it does.

    >>> eight = Cards(((0, 8), (1, 3)), (16, 16), (16, 16))
    >>> [refusal(eight, ask) for ask in (Ask(8), Ask(9), Ask(17), Ask(6, 2))]
    [None, <CardsReason.NO_ROOM: 'NoFreeGpuMemory'>, <CardsReason.TOO_SMALL: 'GpuCardsTooSmall'>, None]
    """
    rows = (
        (bool(ask.mistake), CardsReason.MALFORMED),
        (mine.reason is not None, mine.reason),
        (sum(size >= ask.each for size in mine.well) < ask.cards, CardsReason.TOO_SMALL),
        (sum(free >= ask.each for _, free in mine.free) < ask.cards, CardsReason.NO_ROOM),
    )
    return next((reason for holds, reason in rows if holds), None)


def choose(free: Iterable[tuple[int, int]], ask: Ask) -> Shares | None:
    """The cards with the least room that is enough, the lower index first; None where too few have enough.

    >>> choose(((0, 16), (1, 8), (2, 8)), Ask(6)), choose(((0, 16), (1, 8), (2, 4)), Ask(16, 2)), choose((), Ask(1))
    (((1, 6),), ((0, 8), (1, 8)), None)
    """
    fitting = sorted((room, index) for index, room in free if room >= ask.each)[: ask.cards]
    return tuple(sorted((index, ask.each) for _, index in fitting)) if len(fitting) == ask.cards else None
