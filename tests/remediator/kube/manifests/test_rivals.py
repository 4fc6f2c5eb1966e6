"""Two policies that act on one fault of the same nodes by different ladders."""

import pytest

from remediator.core.policy import Clause, Mode
from remediator.core.selector import parse
from remediator.kube.manifests.rivals import warnings
from tests.builders import a_node, a_policy, a_template, pool, when

RESET, REBOOT = (("reset-gpu", 1),), (("reboot", 1),)


def told(*policies, others=(), templates=(), nodes=None):
    return list(warnings(policies, others, {template.name: template for template in templates}, nodes))


def pair(**more):
    return a_policy("one", ladder=RESET), a_policy("two", **{"ladder": REBOOT} | more)


def test_two_policies_on_one_fault_of_the_same_nodes_are_told_with_how_many_nodes_that_are():
    assert told(*pair()) == [
        "policies one and two both act on GpuLost of the same nodes, by different ladders, and one node has one repair "
        "at a time: make them one policy, or let their nodeSelector or reasons differ"
    ]
    nodes = [a_node("a"), a_node("b"), a_node("c", labels={"pool": "c"})]
    (sentence,) = told(*pair(selector=pool("a")), nodes=nodes)
    assert "both act on GpuLost of 2 nodes, by" in sentence
    one, two = pair()
    assert len(told(one, others=[two])) == 1
    assert told(others=[one, two]) == [], "both are in the cluster already"


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"ladder": RESET}, id="the same ladder"),
        pytest.param({"mode": Mode.DRY_RUN}, id="one that only says what it would do"),
        pytest.param({"entries": Clause("GpuXid")}, id="another condition"),
        pytest.param({"entries": Clause("GpuLost", reasons=frozenset({"B"}))}, id="other reasons"),
    ],
)
def test_those_that_differ_in_what_they_act_on_or_do_the_same_are_no_rivals(more):
    entries = [when(more.pop("entries"))] if "entries" in more else []
    first = a_policy("one", when(Clause("GpuLost", reasons=frozenset({"A"}))), ladder=RESET)
    assert told(first, a_policy("two", *entries, **{"ladder": REBOOT} | more)) == []


def test_nor_are_those_of_other_nodes_nor_those_of_which_one_asks_for_more():
    gpus, others = (
        a_policy("one", ladder=RESET, selector=parse("gpu")),
        a_policy("two", ladder=REBOOT, selector=parse("!gpu")),
    )
    assert told(gpus, others) == []
    assert told(*pair(selector=pool("b")), nodes=[a_node("a")]) == []
    both = a_policy("two", when(Clause("GpuLost"), Clause("GpuXid")), ladder=REBOOT)
    assert told(pair()[0], both) == []


def test_an_operation_that_covers_the_other_decides():
    reboot = a_template("reboot", covers=("reload-driver",))
    driver = a_template("reload-driver", covers=("reset-gpu",))
    assert told(*pair(), templates=[reboot, driver]) == []
    assert len(told(*pair(), templates=[a_template("reboot"), driver])) == 1
