"""The nodes for Pods with rights in the API, compared with those that policies select."""

import pytest

from remediator.core.places import DEFAULT, SHIPPED, ApiNodes
from remediator.core.policy import Urgency
from remediator.core.selector import may_overlap, parse
from remediator.kube.manifests import selected
from remediator.kube.manifests.api_pods import warnings
from remediator.kube.manifests.decoded import disturbing
from tests.builders import a_node, a_policy
from tests.remediator.kube.manifests.examples import manifest

GPU = {"nvidia.com/gpu.present": "true"}


def test_a_cluster_tells_which_nodes_are_both_and_that_none_is_chosen():
    of_gpus, of_all = a_policy(selector=parse("nvidia.com/gpu.present=true")), a_policy(selector=parse(""))
    gpu, plain = a_node("gpu-1", labels=GPU), a_node("cpu-1")
    assert list(warnings([of_gpus], SHIPPED, [gpu, plain])) == []
    (told,) = warnings([of_all], SHIPPED, [gpu, plain])
    assert f"selects nodes on which {DEFAULT!r} lets Pods with rights in the API run: cpu-1; give" in told
    (none,) = warnings([of_gpus], SHIPPED, [gpu])
    assert none.startswith(f"no node is Ready, schedulable and chosen by {DEFAULT!r}: cases")
    assert len(list(warnings([of_gpus], ApiNodes(""), [gpu]))) == 1


def test_of_a_policy_on_all_workers_only_those_with_gpus_must_not_be_chosen():
    workers = a_policy(selector=parse("!node-role.kubernetes.io/control-plane,!node-role.kubernetes.io/etcd"))
    ours = {"remediator.dev/gpu.present": "true"}
    nodes = [a_node("gpu-1", labels=GPU), a_node("gpu-2", labels=ours), a_node("cpu-1")]
    assert list(warnings([workers], SHIPPED, nodes)) == list(warnings([workers], SHIPPED)) == []
    (told,) = warnings([workers], ApiNodes(""), nodes)
    assert "selects nodes on which '' lets Pods with rights in the API run: gpu-1, gpu-2; give" in told
    (told,) = warnings([workers], ApiNodes("!nvidia.com/gpu.present"))
    assert "may select nodes on which '!nvidia.com/gpu.present' lets Pods" in told


def test_a_cluster_tells_how_many_nodes_a_policy_selects_and_that_it_selects_none():
    of_gpus, of_all = a_policy(name="gpus", selector=parse("nvidia.com/gpu.present=true")), a_policy(name="all")
    none = a_policy(name="none", selector=parse("pool=missing"))
    nodes = [a_node("gpu-1", labels=GPU | {"pool": "a"}), a_node("gpu-2", labels=GPU), a_node("cpu-1")]
    assert list(selected.counts([of_gpus, of_all, none], nodes)) == [
        "policy gpus selects 2 of 3 nodes, 2 of them with GPUs",
        "policy all selects 3 of 3 nodes, 2 of them with GPUs",
    ]
    assert list(selected.warnings([of_gpus, of_all, none], nodes)) == [
        "policy none selects none of 3 nodes; give nodes the labels that its spec.nodeSelector asks for, or change it"
    ]


def test_a_cluster_of_0_nodes_is_told_once_and_not_for_each_policy():
    told = list(selected.warnings([a_policy(name="gpus"), a_policy(name="all")], []))
    assert told == ["the cluster has no nodes, so no policy and no budget could be tried on any"]


def test_policies_that_touch_no_node_and_what_cannot_be_read_are_passed_over():
    never = manifest("RemediationPolicy", name="never", urgency={"mode": "Never"})
    wrong = manifest("RemediationPolicy", name="wrong", ladder=7)
    found = disturbing([("a", manifest("RemediationPolicy", name="acts")), ("b", never), ("c", wrong), ("d", {})])
    assert [(policy.name, policy.urgency) for policy in found] == [("acts", Urgency.NOW)]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("gpu=true", "!gpu", False),
        ("gpu", "!gpu", False),
        ("gpu=true", "gpu!=true", False),
        ("gpu=true", "gpu in (true,false)", True),
        ("gpu in (a,b)", "gpu notin (a),pool", True),
        ("gpu", "gpu notin (0,1,2)", True),
        ("pool=a", "!gpu", True),
        ("", "!gpu", True),
    ],
)
def test_selectors_overlap_where_some_labels_match_both(one, other, expected):
    assert may_overlap(parse(one), parse(other)) is expected
