"""Whether what a node runs on GPUs would fit elsewhere: each Pod as a whole, and no GPU counted twice in a pass."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core import admission as core_admission
from remediator.core.admission import Basis, StartRequest
from remediator.core.breaker import Breaker
from remediator.core.case import Block, Phase
from remediator.core.census import snapshot
from remediator.core.node import Taint
from remediator.core.reasons import Reason
from remediator.core.spare import MOST_OF_ONE_NODE, NOTHING, PodHolding, SpareGpus, leaving_nodes, repelling
from tests.builders import a_budget, a_case, a_node, a_sick_node, at, minutes

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
DEDICATED = Taint("team", "blue", "NoSchedule")


def offering(name, gpus=8, resource=GPU, **more):
    return a_node(name, gpus=((resource, gpus),), **more)


def fleet(nodes, **pods):
    """What is free where each node has Pods that hold so many GPUs; names of nodes with _ for -."""
    spare = SpareGpus()
    for node in nodes:
        spare.put_node(node.name, node)
    for name, counts in pods.items():
        for count in counts:
            spare.put_pod(None, PodHolding(name.replace("_", "-"), ((GPU, count),)))
    return spare


def admit(names, spare, nodes, leaving=()):
    """A pass over a case on each of these nodes, whose policy asks for spare GPUs."""
    by_name = {node.name: node for node in nodes}
    requests = [StartRequest(a_case(name, node=name), by_name[name], 1, (), spare_gpus=True) for name in names]
    ledgers = snapshot([a_budget(most=100)], nodes)
    admission = core_admission.admit(
        requests, Basis(ledgers, [], Breaker(100, minutes(10)), at(0), spare=spare, leaving=leaving)
    )
    held = {request.case.name: blocks for request, blocks in admission.held}
    return [request.case.name for request in admission.admitted], held


@pytest.mark.parametrize(
    ("runs", "elsewhere", "fits"),
    [
        ([8], {"b": []}, True),
        ([8], {"b": [1]}, False),
        ([4, 4], {"b": [4], "c": [4]}, True),
        ([5, 3], {"b": [5], "c": [3]}, True),
        ([4, 4], {"b": [5], "c": [1]}, False),
        ([], {"b": [8]}, True),
        ([1] * 8, {"b": [7], "c": [1]}, True),
        ([2] * 4, {"b": [7], "c": [1]}, False),
    ],
    ids=[
        "whole node",
        "one short",
        "two halves",
        "exactly",
        "7 + 3 free, no second 4",
        "no GPU",
        "8 singles",
        "7 free",
    ],
)
def test_each_pod_must_fit_as_a_whole_on_another_node(runs, elsewhere, fits):
    nodes = [offering(name) for name in ("a", *elsewhere)]
    admitted, held = admit(["a"], fleet(nodes, a=runs, **elsewhere), nodes)
    assert admitted == ["a"] * fits
    assert [block.reason for block in held.get("a", ())] == [Reason.NOT_ENOUGH_SPARE_GPUS] * (not fits)


def test_the_hold_says_how_many_pods_fit_and_what_the_next_one_needs():
    nodes = [offering("a"), offering("b")]
    _, held = admit(["a"], fleet(nodes, a=[4, 4], b=[4]), nodes)
    assert held["a"][0].message.startswith(
        "1 of the 2 Pods with GPUs on a fit elsewhere; "
        "no other node that would take the next one has 4 of nvidia.com/gpu free; wait until GPUs are free"
    )


@pytest.mark.parametrize(
    "other",
    [
        offering("b", ready="False"),
        offering("b", unschedulable=True),
        offering("b", cordoned_by="uid-x", unschedulable=True),
        offering("b", taints=[DEDICATED]),
        offering("b", labels={"remediator.dev/exclude": "true"}),
        offering("b", resource=MIG),
        offering("b", 7),
    ],
    ids=["not ready", "cordoned", "under repair", "another team's", "excluded", "slices", "too small"],
)
def test_free_gpus_that_nobody_can_use_do_not_count(other):
    nodes = [offering("a"), other]
    assert admit(["a"], fleet(nodes, a=[8]), nodes)[0] == []


def test_a_taint_that_the_node_has_itself_is_borne_by_its_pods():
    nodes = [offering("a", taints=[DEDICATED]), offering("b", taints=[DEDICATED])]
    assert admit(["a"], fleet(nodes, a=[8]), nodes)[0] == ["a"]


def test_two_nodes_of_one_pass_do_not_count_the_same_free_gpus_nor_each_other():
    """Three full nodes and an empty one: one can be emptied. Where they run 4 each, the empty one has room for two."""
    nodes = [offering(name) for name in ("a", "b", "c", "empty")]
    spare = fleet(nodes, a=[8], b=[8], c=[8])
    admitted, held = admit(["a", "b", "c"], spare, nodes)
    assert (admitted, sorted(held)) == (["a"], ["b", "c"])
    halves = fleet(nodes, a=[4], b=[4], c=[4])
    admitted, held = admit(["a", "b", "c"], halves, nodes)
    assert (admitted, list(held)) == (["a", "b"], ["c"]), "a goes to b or c, b to another of them, c has only empty"


def test_a_case_that_holds_its_node_or_whose_policy_does_not_ask_is_not_asked():
    node = a_sick_node("a", gpus=((GPU, 8),))
    requests = [StartRequest(a_case("a", node="a"), node, 1, ())]
    ledgers = snapshot([a_budget(most=100)], [node])
    admission = core_admission.admit(requests, Basis(ledgers, [], Breaker(100, minutes(10)), at(0), spare=None))
    assert len(admission.admitted) == 1


def test_where_nobody_knows_what_is_free_the_case_is_held():
    nodes = [offering("a"), offering("b")]
    _, held = admit(["a"], None, nodes)
    assert held["a"][0].message.startswith("nobody here knows which GPUs are free;")


def test_pods_that_end_and_nodes_that_come_and_go_are_followed():
    spare = fleet([offering("a"), offering("b")], a=[8], b=[8])
    assert list(spare.with_room(GPU, 1)) == []
    spare.put_pod(PodHolding("b", ((GPU, 8),)), NOTHING)
    assert list(spare.with_room(GPU, 8)) == ["b"]
    spare.put_node("b", replace(offering("b"), unschedulable=True))
    assert list(spare.with_room(GPU, 1)) == []
    spare.put_node("b", offering("b", 4))
    assert (list(spare.with_room(GPU, 5)), list(spare.with_room(GPU, 4))) == ([], ["b"])
    spare.put_node("b", None)
    assert list(spare.with_room(GPU, 1)) == []


@given(st.lists(st.lists(st.integers(1, 8), max_size=4).filter(lambda pods: sum(pods) <= 8), min_size=2, max_size=7))
def test_whoever_is_admitted_together_can_all_be_placed_on_what_was_free(runs):
    """Counted anew: the Pods of all admitted nodes fit into the free GPUs of the nodes that were not."""
    nodes = [offering(f"n{number}") for number in range(len(runs))]
    pods = {f"n{number}": counts for number, counts in enumerate(runs)}
    admitted, _ = admit([node.name for node in nodes], fleet(nodes, **pods), nodes)
    moved = sum(sum(pods[name]) for name in admitted[:-1])
    free = sum(8 - sum(pods[node.name]) for node in nodes)
    assert moved <= free


def test_a_node_that_an_earlier_pass_has_taken_keeps_the_places_of_its_pods():
    """Two full nodes and an empty one. The first was taken a pass ago, and none of its Pods has moved yet."""
    nodes = [offering("a", unschedulable=True, cordoned_by="uid-a"), offering("b"), offering("empty")]
    spare = fleet(nodes, a=[8], b=[8])
    assert admit(["b"], spare, nodes, leaving=nodes[:1])[0] == []
    half = fleet(nodes, a=[4], b=[8])
    assert admit(["b"], half, nodes, leaving=nodes[:1])[0] == [], "four of the eight free ones are promised"
    gone = fleet(nodes, b=[8])
    assert admit(["b"], gone, nodes, leaving=nodes[:1])[0] == ["b"], "all of its Pods have moved"


def test_pods_of_a_node_whose_policy_does_not_ask_take_places_too():
    nodes = [offering("a"), offering("b"), offering("empty")]
    spare = fleet(nodes, a=[8], b=[8])
    asking = StartRequest(a_case("b", node="b"), nodes[1], 2, (), spare_gpus=True)
    requests = [StartRequest(a_case("a", node="a"), nodes[0], 1, ()), asking]
    basis = Basis(snapshot([a_budget(most=100)], nodes), [], Breaker(100, minutes(10)), at(0), spare=spare)
    admission = core_admission.admit(requests, basis)
    assert [request.case.name for request in admission.admitted] == ["a"]


def test_the_nodes_of_cases_that_go_on_are_leaving_and_those_that_a_person_has_are_not():
    cases = [
        a_case("drains", node="a", started=at(1), phase=Phase.DRAINING),
        a_case("stopped", node="b", started=at(1), phase=Phase.DRAINING, blocks=(Block(Reason.PAUSED, ""),)),
        a_case("escalated", node="c", started=at(1), phase=Phase.ESCALATED),
        a_case("new", node="d"),
        a_case("over", node="e", started=at(1), phase=Phase.RECOVERED, ended=at(2)),
    ]
    assert leaving_nodes(cases) == ["a", "b"]


def test_a_node_that_says_it_has_100_000_free_gpus_is_room_for_64():
    """Whoever is root on one worker says how many GPUs it has. Ten full nodes of 8 fall sick: eight of them may go."""
    nodes = [*(offering(f"n{number}") for number in range(10)), offering("liar", gpus=100_000)]
    spare = fleet(nodes, **{f"n{number}": [8] for number in range(10)})
    assert spare.free("liar", GPU) == MOST_OF_ONE_NODE == 64
    admitted, held = admit([f"n{number}" for number in range(10)], spare, nodes)
    assert (admitted, list(held)) == ([f"n{number}" for number in range(8)], ["n8", "n9"])


@pytest.mark.parametrize(
    ("labels", "resource", "free"),
    [
        ({"nvidia.com/gpu.replicas": "4"}, GPU, 0),
        ({"nvidia.com/gpu.sharing-strategy": "time-slicing"}, GPU, 0),
        ({"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "8"}, GPU, 0),
        ({"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.replicas": "1"}, GPU, 8),
        ({"nvidia.com/gpu.replicas": "0"}, MIG, 8),
        ({}, "nvidia.com/gpu.shared", 0),
        ({f"{MIG}.replicas": "4", "nvidia.com/gpu.replicas": "1"}, MIG, 0),
        ({f"{MIG}.sharing-strategy": "time-slicing", "nvidia.com/gpu.sharing-strategy": "none"}, MIG, 0),
        ({f"{MIG}.replicas": "4"}, GPU, 8),
        ({f"{MIG}.replicas": "1", "nvidia.com/gpu.replicas": "4"}, MIG, 8),
        ({f"{MIG}.replicas": "1", "nvidia.com/gpu.replicas": "4"}, GPU, 0),
    ],
)
def test_replicas_of_gpus_that_pods_share_are_no_spare_gpus(labels, resource, free):
    assert fleet([offering("a", resource=resource, labels=labels)]).free("a", resource) == free


def test_the_hold_says_that_nodes_whose_gpus_are_shared_do_not_count():
    shared = [offering(name, gpus=32, labels={"nvidia.com/gpu.replicas": "4"}) for name in ("a", "b")]
    spare = fleet(shared, a=[1])
    words = admit(["a"], spare, shared)[1]["a"][0].message
    assert "has 1 of nvidia.com/gpu free; nodes whose GPUs are shared do not count; wait until" in words
    spare.put_node("a", None)
    spare.put_node("b", None)
    words = admit(["a"], spare, shared)[1]["a"][0].message
    assert "has 1 of nvidia.com/gpu free; wait until" in words


def test_nodes_without_taints_that_repel_share_one_empty_set() -> None:
    one, other = (repelling(a_node(name)) for name in ("gpu-1", "gpu-2"))
    assert one == frozenset()
    assert one is other
