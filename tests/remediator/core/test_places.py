"""Where Pods with rights in the API may run."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.core.node import Taint
from remediator.core.places import DEFAULT, SHIPPED, ApiNodes, Places, needs
from remediator.core.selector import FORM, parse
from remediator.core.template import RunOn, Strategy, Template, Toleration
from tests.builders import a_node

GPU = {"nvidia.com/gpu.present": "true"}
INFRA = Taint("infra", "true", "NoSchedule")
CONTROL_PLANE = Taint("node-role.kubernetes.io/control-plane", "", "NoSchedule")


def a_template(name="drain", run_on=RunOn.ELSEWHERE, strategy=Strategy.NONE, **fields):
    minute = timedelta(minutes=1)
    return Template(name, strategy, minute, run_on, minute, False, False, {}, **fields)


def places(*nodes, text=SHIPPED.text):
    chosen = ApiNodes(text)
    taints = (chosen.taints(node) for node in nodes)
    return Places(chosen, Counter(found for found in taints if found is not None))


TARGET, OTHER = a_node("gpu-1", labels=GPU), a_node("system-1")


@pytest.mark.parametrize(
    ("nodes", "text", "expected"),
    [
        pytest.param([TARGET, OTHER], SHIPPED.text, True, id="a node without GPUs"),
        pytest.param([TARGET, a_node("gpu-2", labels=GPU)], SHIPPED.text, False, id="only nodes with GPUs"),
        pytest.param([TARGET, a_node("gpu-2", labels=GPU)], "", True, id="only nodes with GPUs, where all are chosen"),
        pytest.param([TARGET], "", False, id="the target alone, where all are chosen"),
        pytest.param([TARGET, replace(OTHER, unschedulable=True)], SHIPPED.text, False, id="it is cordoned"),
        pytest.param([TARGET, replace(OTHER, conditions={})], SHIPPED.text, False, id="it is not Ready"),
        pytest.param([TARGET, replace(OTHER, taints=(INFRA,))], SHIPPED.text, False, id="a taint keeps Pods off it"),
        pytest.param([TARGET, replace(OTHER, taints=(CONTROL_PLANE,))], SHIPPED.text, True, id="a control plane"),
        pytest.param(
            [TARGET, replace(OTHER, taints=(replace(INFRA, effect="PreferNoSchedule"),))],
            SHIPPED.text,
            True,
            id="a taint that only asks Pods away",
        ),
    ],
)
def test_a_pod_has_a_place_where_another_node_is_chosen_ready_schedulable_and_without_taints(nodes, text, expected):
    assert places(*nodes, text=text).take([a_template()], TARGET) is expected


def test_why_there_is_no_place_names_the_taints_that_are_in_the_way():
    wanted = f"a Pod of drain needs a node other than gpu-1 that is Ready, schedulable and matches {DEFAULT!r}"
    assert places(TARGET).missing(TARGET, ["drain"]) == f"{wanted}: there is none"
    assert (
        places(TARGET, text="").missing(TARGET, ["a", "b"]).startswith("a Pod of a, b needs a node other than gpu-1 ")
    )
    tainted = places(TARGET, replace(OTHER, taints=(INFRA, replace(INFRA, key="system", value=""))))
    repelled = f"{wanted}: such nodes repel it with infra=true:NoSchedule, system:NoSchedule"
    assert tainted.missing(TARGET, ["drain"]) == repelled


def test_a_pod_that_bears_the_taint_has_a_place():
    tainted = places(TARGET, replace(OTHER, taints=(INFRA,)))
    borne = [Toleration("infra", "true"), Toleration("infra", None, "NoSchedule"), Toleration("", None)]
    strange = [Toleration("infra", "false"), Toleration("infra", "true", "NoExecute"), Toleration("other", None)]
    found = [tainted.take([a_template(tolerations=(one,))], TARGET) for one in (*borne, *strange)]
    assert found == [True] * 3 + [False] * 3


def test_an_operation_needs_the_pod_of_its_drain_and_its_own_where_it_runs_elsewhere():
    drain, reboot = a_template(), a_template("reboot", RunOn.TARGET, Strategy.EVICT)
    power, check = a_template("power-cycle"), a_template("gpu-check", RunOn.TARGET)
    assert [needs(one, drain) for one in (reboot, power, check)] == [(drain,), (power,), ()]


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("", {}, True),
        ("!gpu", {}, True),
        ("!gpu", {"gpu": "false"}, False),
        ("gpu", {"gpu": ""}, True),
        ("pool=infra", {"pool": "infra"}, True),
        ("pool==infra,!gpu", {"pool": "infra", "gpu": "1"}, False),
        ("pool!=infra", {}, True),
        ("pool in (infra, system),!gpu", {"pool": "system"}, True),
        ("example.com/pool notin (a,b)", {"example.com/pool": "b"}, False),
    ],
)
def test_a_selector_is_read_as_kubectl_writes_it(text, labels, expected):
    assert parse(text).matches(labels) is expected


@pytest.mark.parametrize("text", ["a b", "!", "a in ()", "=b", "a,,b", "a in (b", "pool=in valid", "a=b,", "-a"])
def test_what_is_no_selector_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="requirement") as refused:
        parse(text)
    assert FORM in str(refused.value)
