"""The rows of `remediator gpus`, each with its numbers."""

from datetime import UTC, datetime

from remediator.core.shared_gpus import Ask, CardPod, CardSizes, Ledger, Reservation
from remediator.core.spare import Holding
from remediator.scheduler.shown import Row, rows
from remediator.scheduler.verdict import VerdictReason
from tests.builders import a_node

GPU = "nvidia.com/gpu"
NODES = [a_node(name="whole", gpus=((GPU, 8),)), a_node(name="shared", cards=CardSizes((16, 16))), a_node(name="cpu")]
JOB = CardPod("ml", "job", "u1", "shared", Ask(10), ((0, 10),))
PODS = {
    "ml/a": Holding("whole", ((GPU, 4),)),
    "web/b": Holding("whole", ((GPU, 1),)),
    "ml/job": Holding("shared", cards=JOB),
}
COMING = Reservation("u2", "web", "coming", ((0, 4),), datetime(2026, 11, 24, tzinfo=UTC))
FIT = dict.fromkeys(("whole", "shared"), VerdictReason.FIT)


def test_whole_gpus_and_cards_are_shown_with_their_pods_and_what_is_only_reserved() -> None:
    ledgers = {"shared": Ledger("shared", "u", (COMING,))}
    assert list(rows(NODES, PODS, ledgers, {"shared": frozenset({1})}, FIT)) == [
        Row("shared", "memory of card 0", 16, 14, "ml/job (10), web/coming (4)"),
        Row("shared", "memory of card 1", 16, 0, "unhealthy"),
        Row("whole", GPU, 8, 5, "ml/a (4), web/b (1)"),
    ]


def test_a_node_that_gets_no_pods_says_why() -> None:
    health = FIT | {"whole": VerdictReason.CLAIMED}
    found = {row.gpus: row.to for row in rows(NODES, PODS, {}, {"shared": None}, health)}
    assert found[GPU] == "ml/a (4), web/b (1), UnderRepair"
    assert found["memory of card 1"] == "GpuCardsUnknown: the list of its unhealthy cards cannot be read"


def test_a_namespace_sees_only_gpus_that_its_pods_hold() -> None:
    assert [row.node for row in rows(NODES, PODS, {}, {}, FIT, "web")] == ["whole"]


def test_more_given_than_there_is_shows_as_less_than_nothing() -> None:
    assert Row("n", GPU, 4, 6, "").texts() == ("n", GPU, "4", "6", "-2", "")
