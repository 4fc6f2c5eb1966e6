"""Neighbours of a node that is tried: which nodes, how many, for how long, and what its program is told."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.core import neighbour
from remediator.core.neighbour import Reached
from remediator.core.pod import PodPhase
from tests.builders import a_node, a_pod, an_operation, at

RACK = "topology.kubernetes.io/rack"
NODE = a_node("gpu-1", labels={RACK: "a"})
OPERATION = an_operation(uid="operation-1")
POD = a_pod(phase=PodPhase.RUNNING, tested="gpu-2", tested_boot="boot-1", neighbour_of="operation-1", created=at(0))


def test_an_operation_takes_two_neighbours_at_most_and_all_together_as_many_as_the_template_says():
    slots = [neighbour.slot("gpu-check", number) for number in range(5)]
    assert len(set(slots)) == 5
    assert neighbour.free_slots("gpu-check", 5, ()) == slots[:2]
    assert neighbour.free_slots("gpu-check", 1, ()) == slots[:1]
    assert neighbour.free_slots("gpu-check", 2, {slots[0]}) == slots[1:2]
    assert neighbour.free_slots("gpu-check", 2, {slots[4], slots[0]}) == [], "there were 5, and are 2 now"


@pytest.mark.parametrize(
    ("name", "labels", "beside"),
    [
        ("gpu-2", {RACK: "a"}, True),
        ("gpu-2", {RACK: "b"}, False),
        ("gpu-2", {}, False),
        ("gpu-1", {RACK: "a"}, False),  # itself
    ],
)
def test_a_neighbour_has_the_same_value_of_the_label(name, labels, beside):
    assert neighbour.beside(NODE, a_node(name, labels=labels), RACK) is beside
    assert not neighbour.beside(a_node("gpu-1"), a_node(name, labels=labels), RACK), "the node has no such label"
    assert neighbour.lacking(a_node("gpu-1"), RACK) == f"gpu-1 has no label {RACK}"


def test_each_operation_has_an_order_of_its_own_which_is_the_same_in_each_pass():
    nodes = [f"gpu-{number}" for number in range(20)]
    orders = {tuple(neighbour.in_turn(an_operation(uid=f"operation-{number}"), nodes)) for number in range(5)}
    assert len(orders) == 5
    assert neighbour.in_turn(OPERATION, nodes) == neighbour.in_turn(OPERATION, reversed(nodes))


@pytest.mark.parametrize(("timeout", "seconds"), [(15, 60), (4, 60), (1, 15)])
def test_neighbours_are_waited_for_60_seconds_and_a_quarter_of_the_time_at_most(timeout, seconds):
    lasts = timedelta(minutes=timeout)
    assert neighbour.in_time(at(0), lasts, at(seconds=seconds - 1))
    assert not neighbour.in_time(at(0), lasts, at(seconds=seconds))


def test_all_pods_on_neighbours_must_have_started():
    assert neighbour.starting([POD, replace(POD, phase=PodPhase.PENDING)])
    assert not neighbour.starting([POD, POD])
    assert not neighbour.starting([])


GOES_ON = (POD, OPERATION, a_node("gpu-2", boot_id="boot-1"), "", at(5))


@pytest.mark.parametrize(
    ("pod", "operation", "node", "obstacle", "now", "why"),
    [
        (*GOES_ON, ""),
        (POD, None, *GOES_ON[2:], "the operation that measures is over"),
        (POD, replace(OPERATION, finished=at(4)), *GOES_ON[2:], "the operation that measures is over"),
        (POD, replace(OPERATION, deleting=True), *GOES_ON[2:], "the operation that measures is over"),
        (*GOES_ON[:2], None, "", at(5), "gpu-2 is gone, or has booted"),
        (*GOES_ON[:2], a_node("gpu-2", boot_id="boot-2"), "", at(5), "gpu-2 is gone, or has booted"),
        (*GOES_ON[:3], "it is cordoned", at(5), "it is cordoned"),
        (*GOES_ON[:4], at(8), ""),  # 2 minutes until it has a node, 5 to serve, and one
        (*GOES_ON[:4], at(8.1), "its time is over"),
    ],
)
def test_a_pod_on_a_neighbour_is_taken_back(pod, operation, node, obstacle, now, why):
    assert neighbour.gives_way(pod, operation, node, obstacle, now) == why


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("10.0.0.2", "10.0.0.2"),
        ("FD00:0::2", "fd00::2"),
        ("gpu-2.example", ""),
        ("1" * 200_000, ""),
        ("fe80::2%" + "x" * 200_000, ""),  # an IP address to Python
        ("10.0.0.2 ", ""),
        ("", ""),
    ],
)
def test_only_an_ip_address_is_the_address_of_a_node(given, address):
    assert neighbour.address(given) == address


def test_the_programs_of_both_ends_are_told_of_each_other():
    told = neighbour.orders(OPERATION, [Reached("gpu-2", "10.0.0.2")])
    nodes = [{"name": "gpu-2", "address": "10.0.0.2"}]
    assert told == {"port": 18514, "token": "operation-1", "nodes": nodes}
    assert neighbour.orders(OPERATION, [], "no idle node") == {"why": "no idle node"}
    other = neighbour.service(OPERATION, "10.0.0.2", "10.0.0.1")
    assert (other["address"], other["client"], other["token"]) == ("10.0.0.2", "10.0.0.1", "operation-1")
    assert timedelta(seconds=other["seconds"]) < neighbour.SERVES
