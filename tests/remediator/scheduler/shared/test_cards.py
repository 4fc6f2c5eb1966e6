"""Which card a Pod gets, and when a node gives none: each case with its numbers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.shared_gpus import Ask, CardPod, CardSizes, Ledger, Reservation
from remediator.scheduler.shared.cards import CardsReason, cards, choose, refusal
from remediator.scheduler.shared.ledger import CardRefusal, Fate, Reserved, adopted, doubtful, fate, reserve

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
TWO = CardSizes((16, 16))
POD = CardPod("ns", "job", "u-1", ask=Ask(8), version="7")


def held(uid: str, *shares: tuple[int, int], token: str = "t") -> Reservation:
    return Reservation(uid, "ns", uid, shares, NOW, token)


def runs(uid: str, *shares: tuple[int, int], **more: object) -> CardPod:
    return replace(CardPod("ns", uid, uid, node="n", ask=Ask(sum(m for _, m in shares) or 1), shares=shares), **more)


@pytest.mark.parametrize(
    ("free", "ask", "shares"),
    [
        (((0, 16), (1, 9), (2, 8)), Ask(8), ((2, 8),)),
        (((0, 8), (1, 8)), Ask(8), ((0, 8),)),
        (((0, 16), (1, 7)), Ask(8), ((0, 8),)),
        (((0, 7), (1, 7)), Ask(8), None),
        (((0, 4), (1, 16), (2, 5)), Ask(8, 2), ((0, 4), (2, 4))),
        (((0, 16),), Ask(8, 2), None),
        (((0, -4), (1, 4)), Ask(4), ((1, 4),)),
    ],
)
def test_the_tightest_card_with_enough_room_is_given_and_the_lower_index_of_two(free, ask, shares) -> None:
    assert choose(free, ask) == shares


@pytest.mark.parametrize(
    ("sizes", "unhealthy", "ledger", "pods", "ask", "reason"),
    [
        (TWO, frozenset(), (), (), Ask(16), None),
        (TWO, frozenset(), (), (), Ask(17), CardsReason.TOO_SMALL),
        (TWO, frozenset(), (), (), Ask(32, 2), None),
        (TWO, frozenset({1}), (), (), Ask(32, 2), CardsReason.TOO_SMALL),
        (TWO, frozenset({0, 1}), (), (), Ask(1), CardsReason.TOO_SMALL),
        (TWO, None, (), (), Ask(1), CardsReason.UNKNOWN),
        (CardSizes(unknown="no count"), frozenset(), (), (), Ask(1), CardsReason.UNKNOWN),
        (CardSizes((16, 16), withheld=16), frozenset(), (), (), Ask(1), CardsReason.UNKNOWN),
        (CardSizes((16, 16), withheld=16), frozenset({0}), (), (), Ask(16), None),
        (CardSizes((16, 16), whole=True), frozenset(), (), (), Ask(1), CardsReason.WHOLE),
        (TWO, frozenset(), (held("a", (0, 9)), held("b", (1, 9))), (), Ask(8), CardsReason.NO_ROOM),
        (TWO, frozenset(), (held("a", (0, 9)),), (runs("a", (0, 9)),), Ask(7), None),
        (TWO, frozenset(), (), (runs("a", (0, 9)), runs("b", (1, 9))), Ask(8), CardsReason.NO_ROOM),
        (TWO, frozenset(), (), (runs("a", (0, 9), ended=True), runs("b", (1, 9))), Ask(8), None),
        (TWO, frozenset(), (), (runs("a", (0, 9), leaving=True), runs("b", (1, 9))), Ask(8), CardsReason.NO_ROOM),
        (TWO, frozenset(), (), (runs("a", unreadable=True),), Ask(1), CardsReason.UNKNOWN),
        (TWO, frozenset(), (held("a", (0, 1)),), (runs("a", unreadable=True),), Ask(1), None),
        (TWO, frozenset(), (held("a", (7, 4)),), (), Ask(1), CardsReason.UNKNOWN),
        (TWO, frozenset(), (), (runs("a", (7, 4)),), Ask(1), CardsReason.UNKNOWN),
        # The author of a Pod that was bound has written another card into its annotations.
        (TWO, frozenset(), (held("a", (0, 1)),), (runs("a", (7, 1)),), Ask(16), None),
        (TWO, frozenset(), (held("a", (0, 9)),), (runs("a", (1, 9)),), Ask(8), CardsReason.NO_ROOM),
        (TWO, frozenset(), (held("a", (0, 40)), held("b", (1, 12))), (), Ask(5), CardsReason.NO_ROOM),
        (TWO, frozenset(), (), (), Ask(9, 2, "odd"), CardsReason.MALFORMED),
    ],
)
def test_why_a_node_gives_no_card(sizes, unhealthy, ledger, pods, ask, reason) -> None:
    assert refusal(cards(sizes, unhealthy, Ledger("n", reservations=ledger), pods), ask) is reason


@given(
    st.lists(st.integers(1, 32), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 3)), max_size=20),
)
def test_whatever_pods_come_no_card_is_given_beyond_its_size(sizes: list[int], asks: list[tuple[int, int]]) -> None:
    ledger = Ledger("n", "u")
    for number, (each, count) in enumerate(asks):
        pod = replace(POD, uid=f"u-{number}", ask=Ask(each * count, count))
        outcome = reserve(ledger, pod, CardSizes(tuple(sizes)), frozenset(), (), NOW, "t")
        if isinstance(outcome, Reserved):
            ledger = outcome.ledger
    for card, size in enumerate(sizes):
        assert sum(dict(entry.shares).get(card, 0) for entry in ledger.reservations) <= size


def test_a_second_bind_gets_the_same_cards_under_its_own_token() -> None:
    first = reserve(Ledger("n", "u"), POD, TWO, frozenset(), (), NOW, "one")
    assert isinstance(first, Reserved)
    second = reserve(first.ledger, POD, TWO, frozenset(), (), NOW, "two")
    assert isinstance(second, Reserved)
    assert (first.first, second.first) == (True, False)
    assert second.reservation == replace(first.reservation, token="two")
    assert second.ledger.lacking({POD.uid: "one"}) == second.ledger, "the first bind takes nothing back of the second"
    assert second.ledger.lacking({POD.uid: "two"}).reservations == ()


SOON = "others are given once these are taken back, after 30 s"


@pytest.mark.parametrize(
    ("shares", "unhealthy", "reason", "why"),
    [
        (((1, 8),), {1}, CardsReason.NO_ROOM, f"cards [1], which it has reserved, are unhealthy; {SOON}"),
        (((0, 4), (1, 4)), {0}, CardsReason.NO_ROOM, f"cards [0], which it has reserved, are unhealthy; {SOON}"),
        (((1, 8),), None, CardsReason.UNKNOWN, "the list of its unhealthy cards cannot be read"),
        (((1, 4),), set(), CardsReason.NO_ROOM, f"it has reserved another amount of memory; {SOON}"),
    ],
    ids=["unhealthy", "one of two is unhealthy", "nobody can tell", "another amount"],
)
def test_a_reservation_that_may_not_be_bound_to_any_more_is_neither_given_again_nor_replaced(
    shares, unhealthy, reason, why
) -> None:
    """The bind that made it may still count: the sweep fences the Pod first, and then takes it back."""
    marked = frozenset(unhealthy) if unhealthy is not None else None
    outcome = reserve(Ledger("n", "u", (held(POD.uid, *shares),)), POD, TWO, marked, (), NOW, "t")
    assert outcome == CardRefusal(reason, why)


def test_a_reservation_of_a_card_that_is_gone_is_not_bound_to() -> None:
    outcome = reserve(Ledger("n", "u", (held(POD.uid, (5, 8)),)), POD, TWO, frozenset(), (), NOW, "t")
    assert outcome == CardRefusal(CardsReason.UNKNOWN, "Pods hold cards [5], which it does not have")


@pytest.mark.parametrize(
    ("live", "what"),
    [
        (None, Fate.FREE),
        (replace(POD, uid="another"), Fate.FREE),
        (replace(POD, node="n"), Fate.HOLDS),
        (replace(POD, node="n", leaving=True), Fate.HOLDS),
        (replace(POD, node="n", ended=True), Fate.FREE),
        (replace(POD, node="m"), Fate.FREE),
        (POD, Fate.UNBOUND),
    ],
)
def test_what_became_of_a_pod(live: CardPod | None, what: Fate) -> None:
    assert fate(held(POD.uid, (0, 8)), "n", live) is what


def test_reservations_are_looked_after_when_their_pod_has_left_or_is_not_seen_for_30_seconds() -> None:
    ledger = Ledger("n", "u", (held("seen", (0, 1)), held("left", (0, 1)), held("new", (0, 1))))

    def names(seconds: int) -> list[str]:
        later = NOW + timedelta(seconds=seconds)
        return [entry.name for entry in doubtful(ledger, {"seen"}, {"left"}, later)]

    assert (names(29), names(30)) == (["left"], ["left", "new"])


def test_what_pods_hold_that_no_ledger_says_is_taken_in_once() -> None:
    pods = [runs("a", (0, 4)), runs("b", (1, 4), ended=True), runs("c", unreadable=True)]
    once = adopted(Ledger("n", "u"), pods, NOW)
    assert [(entry.pod_uid, entry.shares) for entry in once.reservations] == [("a", ((0, 4),))]
    assert adopted(once, pods, NOW) == once
