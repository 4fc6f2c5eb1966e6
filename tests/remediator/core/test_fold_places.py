"""Places for Pods with rights in the API within one admission pass: what is admitted is no place any more."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core import admission as core_admission
from remediator.core.admission import Basis, StartRequest
from remediator.core.breaker import Breaker
from remediator.core.census import snapshot
from remediator.core.node import Taint
from remediator.core.places import ApiNodes, Places
from remediator.core.reasons import Reason
from remediator.core.template import RunOn
from tests.builders import a_budget, a_case, a_sick_node, a_template, at, minutes

DRAIN = {"reboot": (a_template("drain", run_on=RunOn.ELSEWHERE),)}
EVERYWHERE = ApiNodes("")
INFRA = Taint("infra", "true", "NoSchedule")


def counted(nodes):
    taints = (EVERYWHERE.taints(node) for node in nodes)
    return Places(EVERYWHERE, Counter(found for found in taints if found is not None))


def admit(sick, *, others=(), needs=DRAIN):
    """What a pass says of one case for each of these nodes, beside `others` that are well."""
    nodes = [*sick, *others]
    requests = [StartRequest(a_case(f"case-{node.name}", node=node.name), node, 1, (), needs) for node in sick]
    ledgers = snapshot([a_budget(most=100)], nodes)
    admission = core_admission.admit(requests, Basis(ledgers, [], Breaker(100, minutes(10)), at(0), counted(nodes)))
    held = {request.node.name: blocks[0] for request, blocks in admission.held}
    return [request.node.name for request in admission.admitted], held


def test_of_two_nodes_that_are_each_others_only_place_one_waits():
    admitted, held = admit([a_sick_node("a"), a_sick_node("b")])
    assert (admitted, held["b"].reason) == (["a"], Reason.NO_NODE_FOR_API_PODS)
    assert held["b"].message.startswith(
        "a Pod of reboot needs a node other than b that is Ready, schedulable: there is"
    )


@pytest.mark.parametrize(
    ("sick", "well", "admitted"),
    [(1, 0, 0), (2, 0, 1), (3, 0, 2), (20, 0, 19), (20, 1, 20)],
)
def test_the_last_place_is_left_to_those_that_were_admitted(sick, well, admitted):
    nodes = [a_sick_node(f"n{number:02}") for number in range(sick)]
    assert len(admit(nodes, others=[a_sick_node(f"w{number}") for number in range(well)])[0]) == admitted


def test_a_case_whose_operations_need_no_such_pod_takes_the_last_place():
    assert admit([a_sick_node("a"), a_sick_node("b")], needs={}) == (["a", "b"], {})


def test_a_node_that_repels_the_pods_is_no_place_and_its_admission_takes_none():
    admitted, held = admit([a_sick_node("a", taints=[INFRA]), a_sick_node("b")])
    assert (admitted, held["b"].reason) == (["a"], Reason.NO_NODE_FOR_API_PODS)
    assert "such nodes repel it with infra" not in held["b"].message, "the one that did is under repair itself"


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_who_was_admitted_waits_only_for_nodes_that_were_admitted_later(tainted):
    """The last one admitted has a place on a node that nobody has taken, so that no two wait for each other."""
    nodes = [a_sick_node(f"n{number}", taints=[INFRA] * taint) for number, taint in enumerate(tainted)]
    admitted, _ = admit(nodes)
    for place in range(len(admitted)):
        gone = set(admitted[: place + 1])
        assert any(node.name not in gone and not node.taints for node in nodes)
