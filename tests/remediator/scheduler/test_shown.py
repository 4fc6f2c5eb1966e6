"""The rows of `remediator gpus`, each with its numbers."""

from datetime import UTC, datetime

from remediator.core.shared_gpus import Ask, CardPod, CardSizes, Ledger, Reservation
from remediator.core.spare import PodHolding
from remediator.prometheus.reading import CannotTell, Doubt, Reading, Sample
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.shown import MEMORY, ShownGpus, ShownHolder, holders, rows
from remediator.scheduler.usage import BY_CARD, BY_NODE, BY_POD, UNKNOWN, Usage, usage
from tests.builders import a_node

GPU = "nvidia.com/gpu"
NODES = [a_node(name="whole", gpus=((GPU, 8),)), a_node(name="shared", cards=CardSizes((16, 16))), a_node(name="cpu")]
JOB = CardPod("ml", "job", "u1", "shared", Ask(10), ((0, 10),))
PODS = {
    "ml/a": PodHolding("whole", ((GPU, 4),)),
    "web/b": PodHolding("whole", ((GPU, 1),)),
    "ml/job": PodHolding("shared", cards=JOB),
}
COMING = Reservation("u2", "web", "coming", ((0, 4),), datetime(2026, 11, 24, tzinfo=UTC))
FIT = dict.fromkeys(("whole", "shared"), VerdictReason.FIT)


def test_whole_gpus_and_cards_are_shown_with_their_pods_and_what_is_only_reserved() -> None:
    ledgers = {"shared": Ledger("shared", "u", (COMING,))}
    assert list(rows(NODES, PODS, ledgers, {"shared": frozenset({1})}, FIT)) == [
        ShownGpus("shared", "memory of card 0", 16, 14, "ml/job (10), web/coming (4)"),
        ShownGpus("shared", "memory of card 1", 16, 0, "unhealthy"),
        ShownGpus("whole", GPU, 8, 5, "ml/a (4), web/b (1)"),
    ]


def test_a_node_that_gets_no_pods_says_why() -> None:
    health = FIT | {"whole": VerdictReason.CLAIMED}
    found = {row.gpus: row.to for row in rows(NODES, PODS, {}, {"shared": None}, health)}
    assert found[GPU] == "ml/a (4), web/b (1), UnderRepair"
    assert found["memory of card 1"] == "GpuCardsUnknown: the list of its unhealthy cards cannot be read"


def test_who_holds_gpus_in_the_way_of_an_earlier_device_plugin_is_named() -> None:
    """`why` says of such a node that this command names them."""
    nodes = [a_node(name="now-shared", cards=CardSizes((16,))), a_node(name="now-whole", gpus=((GPU, 1),))]
    pods = {
        "ml/old": PodHolding("now-shared", ((GPU, 1),)),
        "ml/job": PodHolding("now-whole", cards=CardPod("ml", "job", "u1", "now-whole", Ask(10), ((0, 10),))),
    }
    why = "GpusSharedAndWhole: GPUs that its Pods still hold whole: 1; let these Pods end first"
    other = "GpusSharedAndWhole: Pods that still hold memory of its GPUs: 1; let them end first"
    assert list(rows(nodes, pods, {}, {}, dict.fromkeys(("now-shared", "now-whole"), VerdictReason.FIT))) == [
        ShownGpus("now-shared", GPU, 0, 1, "ml/old (1)"),
        ShownGpus("now-shared", "memory of card 0", 16, 0, why),
        ShownGpus("now-whole", GPU, 1, 0, ""),
        ShownGpus("now-whole", "memory of card 0", 0, 10, f"ml/job (10), {other}"),
    ]


def test_a_namespace_sees_only_gpus_that_its_pods_hold() -> None:
    assert [row.node for row in rows(NODES, PODS, {}, {}, FIT, "web")] == ["whole"]


def test_more_given_than_there_is_shows_as_less_than_nothing() -> None:
    assert ShownGpus("n", GPU, 4, 6, "").texts() == ("n", GPU, "4", "6", "unknown", "-2", "")


SEEN: dict[str, Reading] = {
    BY_NODE: (Sample(3.0, {"Hostname": "whole"}), Sample(2.0, {"node": "shared", "Hostname": "exporter-x"})),
    BY_POD: (
        Sample(3.0, {"exported_namespace": "ml", "exported_pod": "a", "namespace": "monitoring", "pod": "exporter"}),
        Sample(0.0, {"namespace": "web", "pod": "b"}),
    ),
    BY_CARD: (Sample(0.5, {"Hostname": "shared", "gpu": "0"}),),
}


class Told:
    """Prometheus, which answers so."""

    def __init__(self, **other: Reading) -> None:
        self.answers = SEEN | other

    async def instant(self, query: str, within: object) -> Reading:
        return self.answers[query]


async def test_what_is_used_stands_beside_what_was_given_where_dcgm_exporter_tells() -> None:
    used = await usage(Told(), shared=True)
    assert used.doubts == ()
    assert [(row.gpus, row.given, row.used) for row in rows(NODES, PODS, {}, {}, FIT, usage=used)] == [
        ("memory of card 0", 10, 8),
        ("memory of card 1", 0, None),
        (GPU, 5, 3),
    ]
    assert holders(NODES, PODS, {}, used, by_pod=True) == [
        ShownHolder("ml/a", GPU, 4, 3),
        ShownHolder("ml/job", MEMORY, 10),
        ShownHolder("web/b", GPU, 1, 0),
    ]


async def test_what_was_given_is_summed_by_namespace_with_what_is_only_reserved() -> None:
    ledgers = {"shared": Ledger("shared", "u", (COMING,))}
    more = PODS | {"ml/c": PodHolding("whole", ((GPU, 2),))}
    used = await usage(Told(), shared=False)
    assert holders(NODES, more, ledgers, used, by_pod=False) == [
        ShownHolder("ml", MEMORY, 10),
        ShownHolder("ml", GPU, 6),  # of ml/c nobody knows
        ShownHolder("web", MEMORY, 4),
        ShownHolder("web", GPU, 1, 0),
    ]


async def test_of_replicas_and_mig_devices_nobody_can_tell_and_why_there_is_no_answer_is_said_once() -> None:
    used = Usage({"n": 4})
    plain = a_node(name="n", gpus=((GPU, 8),))
    replicas = a_node(name="n", gpus=((GPU, 32),), labels={f"{GPU}.replicas": "4"})
    mixed = a_node(name="n", gpus=((GPU, 4), ("nvidia.com/mig-1g.5gb", 7)))
    assert [used.whole(node, GPU, 8) for node in (plain, replicas, mixed)] == [4, None, None]
    away = CannotTell(Doubt.EMPTY, "its answer is empty")
    silent = await usage(Told(**{BY_NODE: away, BY_POD: away}), shared=True)
    assert silent.doubts == ("Prometheus has no fresh DCGM_FI_DEV_… series: does it scrape dcgm-exporter?",)
    assert list(rows(NODES[:1], PODS, {}, {}, FIT, usage=silent)) == list(rows(NODES[:1], PODS, {}, {}, FIT))
    assert UNKNOWN.card("n", 0, 16) is None
