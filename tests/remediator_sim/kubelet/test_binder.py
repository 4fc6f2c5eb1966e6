"""The binder's choice of a node."""

import pytest

from remediator_sim.kubelet.binder import Advice, Bind, Unschedulable, choose, choose_alone, full


def a_node(name, *, ready="True", labels=None, taints=(), cordoned=False):
    spec = {"taints": list(taints)} | ({"unschedulable": True} if cordoned else {})
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"conditions": conditions}}


def a_pod(**spec):
    return {"metadata": {"name": "p", "namespace": "d"}, "spec": spec}


def affinity(**term):
    terms = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


SICK = {"key": "remediator.dev/case", "value": "1234", "effect": "NoSchedule"}


def test_the_emptiest_node_is_chosen():
    assert choose(a_pod(), [a_node("a"), a_node("b")], {"a": 2, "b": 1}) == Bind("b")


def test_of_equally_empty_nodes_the_first_by_name_is_chosen():
    assert choose(a_pod(), [a_node("b"), a_node("a")], {}) == Bind("a")


@pytest.mark.parametrize(
    "closed",
    [
        a_node("a", ready="False"),
        a_node("a", ready="Unknown"),
        a_node("a", cordoned=True),
        a_node("a", taints=[SICK]),
        a_node("a", taints=[{"key": "gone", "effect": "NoExecute"}]),
    ],
    ids=["not ready", "unknown", "cordoned", "tainted", "tainted NoExecute"],
)
def test_a_closed_node_is_passed_over(closed):
    assert choose(a_pod(), [closed, a_node("b")], {"b": 9}) == Bind("b")


def test_a_taint_that_only_discourages_closes_nothing():
    assert choose(a_pod(), [a_node("a", taints=[{"key": "x", "effect": "PreferNoSchedule"}])], {}) == Bind("a")


@pytest.mark.parametrize(
    ("toleration", "accepted"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "remediator.dev/case", "operator": "Exists"}, True),
        ({"key": "remediator.dev/case", "value": "1234"}, True),
        ({"key": "remediator.dev/case", "value": "1234", "effect": "NoSchedule"}, True),
        ({"key": "remediator.dev/case", "value": "other"}, False),
        ({"key": "remediator.dev/case", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_taint_is_borne_only_where_key_value_and_effect_fit(toleration, accepted):
    chosen = choose(a_pod(tolerations=[toleration]), [a_node("a", taints=[SICK])], {})
    assert isinstance(chosen, Bind) is accepted


def test_a_pod_that_bears_everything_may_go_to_a_cordoned_node():
    assert choose(a_pod(tolerations=[{"operator": "Exists"}]), [a_node("a", cordoned=True)], {}) == Bind("a")


def test_a_node_selector_must_match_whole():
    nodes = [a_node("a", labels={"gpu": "yes"}), a_node("b", labels={"gpu": "yes", "rack": "1"})]
    assert choose(a_pod(nodeSelector={"gpu": "yes", "rack": "1"}), nodes, {"b": 5}) == Bind("b")


@pytest.mark.parametrize(
    ("requirement", "accepted"),
    [
        (expression("pool", "In", "a", "b"), True),
        (expression("pool", "In", "b"), False),
        (expression("pool", "NotIn", "a"), False),
        (expression("pool", "NotIn", "b"), True),
        (expression("absent", "NotIn", "b"), True),
        (expression("absent", "In", "b"), False),
        (expression("pool", "Exists"), True),
        (expression("absent", "Exists"), False),
        (expression("pool", "DoesNotExist"), False),
        (expression("absent", "DoesNotExist"), True),
        (expression("pool", "Gt", "1"), False),
    ],
)
def test_required_expressions_decide(requirement, accepted):
    chosen = choose(a_pod(**affinity(matchExpressions=[requirement])), [a_node("n", labels={"pool": "a"})], {})
    assert isinstance(chosen, Bind) is accepted


def test_a_field_requirement_keeps_a_pod_off_one_node_by_name():
    pod = a_pod(**affinity(matchFields=[expression("metadata.name", "NotIn", "a")]))
    assert choose(pod, [a_node("a"), a_node("b")], {"b": 7}) == Bind("b")


def test_a_term_that_asks_nothing_matches_no_node():
    assert isinstance(choose(a_pod(**affinity()), [a_node("a")], {}), Unschedulable)


def test_the_refusal_counts_nodes_by_reason():
    nodes = [a_node("a", cordoned=True), a_node("b", cordoned=True), a_node("c", taints=[SICK])]
    said = choose(a_pod(), nodes, {})
    assert said == Unschedulable(
        "0/3 nodes are available: 1 node(s) had untolerated taints, 2 node(s) were unschedulable."
    )


def test_without_any_node_the_refusal_says_so():
    assert choose(a_pod(), [], {}) == Unschedulable("0/0 nodes are available: there are none.")


def with_gpus(name, count):
    node = a_node(name)
    node["status"]["allocatable"] = {"nvidia.com/gpu": str(count)}
    return node


def wanting(count):
    return a_pod(containers=[{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(count)}}}])


@pytest.mark.parametrize(
    ("wanted", "used", "refused"),
    [
        pytest.param(2, {"a": 3}, {"a", "c"}, id="one of four left, and a node without any"),
        pytest.param(1, {"a": 3}, {"c"}, id="just enough left"),
        pytest.param(0, {"a": 4}, set(), id="a pod that wants none goes anywhere"),
    ],
)
def test_a_node_with_too_few_free_gpus_is_full(wanted, used, refused):
    nodes = [with_gpus("a", 4), with_gpus("b", 4), a_node("c")]
    assert set(full(wanting(wanted), nodes, used)) == refused


def test_what_an_extender_refuses_is_left_out_and_what_it_likes_best_comes_first():
    nodes = [a_node(name) for name in "abc"]
    advice = Advice(refused={"a": "found unhealthy"}, scores={"b": 10, "c": 90})
    assert choose(a_pod(), nodes, {"c": 5}, advice) == Bind("c"), "its score outweighs the pods that are there"
    nobody = choose(a_pod(), nodes[:1], {}, advice)
    assert nobody == Unschedulable("0/1 nodes are available: 1 node(s) found unhealthy.")


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [({"remediator.dev/cordoned-by": "a case"}, "a"), ({}, "b")],
    ids=["cordoned by us", "cordoned by a user"],
)
def test_where_nobody_marks_unhealthy_nodes_a_pod_goes_to_one_but_not_to_one_that_a_user_has_cordoned(
    annotations, expected
):
    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    unhealthy, healthy = a_node("a", cordoned=True, taints=[SICK, cordoned]), a_node("b")
    unhealthy["metadata"]["annotations"] = annotations
    chosen = choose_alone(a_pod(), [unhealthy, healthy], {}, Advice())
    assert chosen["metadata"]["name"] == expected
    assert choose(a_pod(), [unhealthy, healthy], {}) == Bind("b")
