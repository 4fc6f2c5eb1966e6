"""The nodes for Pods with rights in the API, compared with those that policies select."""

import pytest

from remediator.core.places import DEFAULT, SHIPPED, ApiNodes
from remediator.core.policy import Urgency
from remediator.core.selector import may_overlap, parse
from remediator.kube.manifests.api_pods import policies, warnings
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


def test_policies_that_touch_no_node_and_what_cannot_be_read_are_passed_over():
    never = manifest("RemediationPolicy", name="never", urgency={"mode": "Never"})
    wrong = manifest("RemediationPolicy", name="wrong", ladder=7)
    found = policies([("a", manifest("RemediationPolicy", name="acts")), ("b", never), ("c", wrong), ("d", {})])
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
