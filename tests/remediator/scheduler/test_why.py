"""Why a Pod has no node, by classes of nodes, and what would make it fit; whether so many Pods would find nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.shared_gpus import Ask
from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.attributes.selector import selector
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.shared.cards import Cards, CardsReason
from remediator.scheduler.verdict import Shape, verdict
from remediator.scheduler.what_if import what_if
from remediator.scheduler.why import LET_THROUGH, NOT_LISTED, REFUSED, REMEDIES, USERS_CORDON, classes
from tests.harness.scheduler import GPU

EIGHT = ((GPU, 8),)


def of(total: int, used: int = 0, health: VerdictReason = VerdictReason.FIT) -> NodeState:
    return NodeState(health, ((GPU, total),), ((GPU, used),) if used else ())


FLEET = {
    "full-1": of(8, 6),
    "full-2": of(8, 3),
    "full-3": of(8, 8),
    "sick-1": of(8, 0, VerdictReason.UNHEALTHY),
    "sick-2": of(8, 2, VerdictReason.UNHEALTHY),
    "small": of(4),
    "cpu": NodeState(VerdictReason.FIT),
    "held": of(8),
    "free": of(8),
}
BIG = Shape(EIGHT)


def test_every_node_is_in_one_class_and_those_that_fit_come_first() -> None:
    met = [(each.reason, len(each.nodes), each.says) for each in classes(FLEET, {"held"}, BIG, False)]
    assert met == [
        (VerdictReason.FIT, 1, LET_THROUGH),
        (VerdictReason.NO_FREE_GPUS, 3, "node(s) with too few free GPUs"),
        (VerdictReason.UNHEALTHY, 2, "node(s) found unhealthy by Remediator"),
        (VerdictReason.FIT, 1, USERS_CORDON),
        (VerdictReason.FIT, 1, NOT_LISTED),
        (VerdictReason.TOO_FEW_GPUS, 1, "node(s) with too few GPUs in all"),
    ]


def test_what_would_make_it_fit_has_the_numbers_of_the_nearest_node() -> None:
    remedies = {each.says: each.remedy for each in classes(FLEET, {"held"}, BIG, False)}
    assert remedies[REFUSED[VerdictReason.NO_FREE_GPUS]] == (
        f"3 more {GPU} free on full-2, where 5 of 8 are; 7 {GPU} are free on all of them together"
    )
    assert remedies[REFUSED[VerdictReason.UNHEALTHY]] == (
        "repair them: `remediator explain sick-1` says what holds it; 1 of 2 would have room"
    )
    assert remedies[REFUSED[VerdictReason.TOO_FEW_GPUS]].startswith(f"request at most 4 {GPU}, ")
    assert remedies[USERS_CORDON] == "`kubectl uncordon held`; 1 of 1 would have room"
    assert remedies[LET_THROUGH] == ""


def test_every_refusal_has_a_remedy_and_its_words_are_those_of_the_answer() -> None:
    assert REMEDIES.keys() == REFUSED.keys()
    for reason in REFUSED:
        rows = {"n": of(8, 8, reason if reason not in NOT_OF_HEALTH else VerdictReason.FIT)}
        for each in classes(rows, (), BIG, False):
            assert (each.says, bool(each.remedy)) == (REFUSED[each.reason], True)


NOT_OF_HEALTH = {
    VerdictReason.TOO_FEW_GPUS,
    VerdictReason.NO_FREE_GPUS,
    VerdictReason.OTHER_ATTRIBUTES,
    VerdictReason.ATTRIBUTES_UNKNOWN,
    VerdictReason.ATTRIBUTES_MALFORMED,
    VerdictReason.MPS_NOT_OFFERED,
    VerdictReason.MPS_TOO_OLD,
    VerdictReason.MPS_UNHEALTHY,
}


def test_a_mistake_in_an_annotation_is_its_own_remedy() -> None:
    asks = selector("memory>=40Gx", None, None)
    (only,) = classes({"n": of(8)}, (), Shape(EIGHT, attributes=asks), False)
    assert only.reason is VerdictReason.ATTRIBUTES_MALFORMED
    assert "'40Gx' is no size" in only.remedy


def test_where_health_only_scores_unhealthy_nodes_are_let_through() -> None:
    (only,) = classes({"sick-1": FLEET["sick-1"]}, (), BIG, True)
    assert (only.reason, only.fits) == (VerdictReason.ONLY_SCORED, True)


def test_so_many_pods_find_nodes_and_the_next_one_hears_why_not() -> None:
    rows = {"a": of(8, 1), "b": of(8), "sick": of(8, 0, VerdictReason.UNHEALTHY)}
    found = what_if(rows, (), Shape(((GPU, 2),)), 9, False)
    assert [(place.node, place.pods) for place in found.placed] == [("a", 3), ("b", 4)], "the fullest node first"
    assert found.pods == 7
    assert [(each.reason, len(each.nodes)) for each in found.next_one] == [
        (VerdictReason.NO_FREE_GPUS, 2),
        (VerdictReason.UNHEALTHY, 1),
    ]
    assert what_if(rows, (), Shape(((GPU, 2),)), 4, False).pods == 4
    assert what_if(rows, {"b"}, Shape(((GPU, 2),)), 9, False).pods == 3, "a node that a user has cordoned takes none"


def test_attributes_and_health_count() -> None:
    rows = {
        "h100": of(8)._replace(facts=facts_of({f"{GPU}.memory": "81559"})),
        "a100": of(8)._replace(facts=facts_of({f"{GPU}.memory": "40960"})),
    }
    wanted = Shape(EIGHT, attributes=selector("memory>=80G", None, None))
    assert [place.node for place in what_if(rows, (), wanted, 2, False).placed] == ["h100"]


rows = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.builds(of, st.integers(0, 8), st.integers(0, 10), st.sampled_from(VerdictReason)),
)


@given(rows, st.integers(1, 8), st.integers(1, 40), st.booleans())
def test_pods_are_placed_until_no_node_takes_another_one(
    fleet: dict[str, NodeState], gpus: int, replicas: int, only_scores: bool
) -> None:
    shape = Shape(((GPU, gpus),))
    found, now = what_if(fleet, (), shape, replicas, only_scores), dict(fleet)
    for place in found.placed:
        for _ in range(place.pods):
            assert verdict(now[place.node], shape, only_scores) not in REFUSED
            used = dict(now[place.node].used).get(GPU, 0) + gpus
            now[place.node] = now[place.node]._replace(used=((GPU, used),))
    assert found.pods == replicas or not any(each.fits for each in found.next_one)
    assert sorted(name for each in found.next_one for name in each.nodes) == sorted(fleet)


MEMORY = Shape(memory=Ask(8))


def shared(*free: int, reason: CardsReason | None = None, why: str = "") -> NodeState:
    """A node whose cards of 16 have so much free."""
    sizes = (16,) * len(free)
    return NodeState(VerdictReason.FIT, cards=Cards(tuple(enumerate(free)), sizes, sizes, reason, why))


def test_pods_that_share_gpus_take_the_cards_that_the_binder_gives_and_the_fullest_node_first() -> None:
    rows = {"roomy": shared(16, 16), "tight": shared(9, 4), "whole": of(8)}
    found = what_if(rows, (), MEMORY, 9, False)
    assert [(place.node, place.pods) for place in found.placed] == [("tight", 1), ("roomy", 4)]
    assert {each.reason: each.nodes for each in found.next_one} == {
        VerdictReason.NO_GPU_MEMORY: ("roomy", "tight"),
        VerdictReason.GPU_CARDS_TOO_SMALL: ("whole",),
    }
    assert what_if(rows, (), MEMORY, 3, False).pods == 3
    assert what_if(rows, (), Shape(memory=Ask(8, 2)), 9, False).placed == [
        ("tight", VerdictReason.FIT, 1),
        ("roomy", VerdictReason.FIT, 4),
    ], "4 on each of two cards"


@pytest.mark.parametrize(
    ("rows", "shape", "remedy"),
    [
        (
            {"n1": shared(2, 3), "n2": shared(5, 1)},
            MEMORY,
            "3 more memory free on one GPU of n2, where 5 of 8 are; `remediator gpus n2` shows who holds it",
        ),
        (
            {"n1": shared(16, 3)},
            Shape(memory=Ask(16, 2)),
            "5 more memory free on each of 2 GPUs of n1, where 3 of 8 are; `remediator gpus n1` shows who holds it",
        ),
        (
            {"n1": shared(16)},
            Shape(memory=Ask(17)),
            "request at most 16 of one GPU, the most that one of them has, or add nodes with larger GPUs",
        ),
        (
            {"n1": of(8)},
            MEMORY,
            "none: they offer no memory of a GPU that is well, or their device plugin does not run",
        ),
        (
            {"n1": shared(16, reason=CardsReason.UNKNOWN, why="the list of its unhealthy cards cannot be read")},
            MEMORY,
            "n1: the list of its unhealthy cards cannot be read; `remediator gpus` says it of each node",
        ),
        (
            {
                "n1": shared(
                    16, reason=CardsReason.WHOLE, why="GPUs that its Pods still hold whole: 1; let these Pods end first"
                )
            },
            MEMORY,
            "offer the GPUs of n1 whole or by memory, not both"
            " (GPUs that its Pods still hold whole: 1; let these Pods end first);"
            " `remediator gpus` says who holds them",
        ),
        (
            {"n1": of(8)._replace(facts=facts_of({f"{GPU}.memory": "40960", f"{GPU}.product": "A100"}))},
            Shape(EIGHT, attributes=selector("memory>=80G, model=*H100*, clique", None, None)),
            f"n1 has no clique, memory by {GPU}.memory '40960', model by {GPU}.product 'A100';"
            " require other GPUs, or add nodes that have them",
        ),
        (
            {"n1": of(8)},
            Shape(EIGHT, attributes=selector("memory>=80G, ecc=true", None, None)),
            "label the nodes, by GPU Feature Discovery or by hand:"
            f" n1 has no readable remediator.dev/gpu.ecc, {GPU}.memory",
        ),
    ],
)
def test_what_would_help_names_a_node_and_what_it_lacks(rows: dict[str, NodeState], shape: Shape, remedy: str) -> None:
    (only,) = classes(rows, (), shape, False)
    assert (only.fits, only.remedy) == (False, remedy)


def test_unhealthy_nodes_are_counted_with_room_whatever_the_pod_requires_of_their_gpus() -> None:
    asks = Shape(EIGHT, attributes=selector("memory>=80G", None, None), proven=True)
    (only,) = classes({"sick-1": FLEET["sick-1"], "sick-2": FLEET["sick-2"]}, (), asks, False)
    assert only.remedy.endswith("1 of 2 would have room")
