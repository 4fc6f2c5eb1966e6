"""Lint of gates of new nodes."""

import pytest

from remediator.core.policy import Admit
from remediator.kube.manifests import lint, new_nodes, probes
from tests.builders import a_policy
from tests.remediator.kube.manifests.examples import manifest


def admits(name, taint):
    return a_policy(name, admit=Admit("gpu-check", f"remediator.dev/{taint}"))


def test_two_policies_with_one_taint_are_named_and_others_are_not():
    (warning,) = new_nodes.warnings([admits("b", "unproven"), a_policy("c"), admits("a", "unproven"), admits("d", "x")])
    assert warning == (
        "policies a, b: all have admit.taint remediator.dev/unproven; on a node that several select a alone opens the "
        "gate; give each its own taint, or see that their selectors do not overlap"
    )


@pytest.mark.parametrize(
    ("admit", "wrong"),
    [
        ({"probe": "gpu-check", "taint": "remediator.dev/unproven"}, []),
        ({"probe": "gpu-chekc", "taint": "remediator.dev/unproven"}, ["spec.admit.probe"]),
        ({"taint": "remediator.dev/unproven"}, ["spec.admit.probe"]),
        ({"probe": "gpu-check"}, ["spec.admit.taint"]),
        ({"probe": "gpu-check", "taint": "node.kubernetes.io/not-ready"}, ["spec.admit.taint"]),
        ({"probe": "gpu-check", "taint": "remediator.dev/case"}, ["spec.admit.taint"]),
        ({"probe": "gpu-check", "taint": "remediator.dev/degraded"}, ["spec.admit.taint"]),
    ],
)
def test_a_gate_without_a_known_probe_or_with_a_taint_that_is_not_its_own_is_wrong(admit, wrong):
    document = manifest("RemediationPolicy", admit=admit)
    findings = lint.lint([("x.yaml:1", document)], {"gpu-check", "reboot", "reset-gpu"})
    assert sorted({finding.field for finding in findings if "admit" in finding.field}) == wrong


def test_a_probe_of_new_nodes_that_drains_is_named():
    policy = manifest("RemediationPolicy", name="p", admit={"probe": "big", "taint": "remediator.dev/unproven"})
    template = manifest("NodeOperationTemplate", name="big", drain={"strategy": "Evict"})
    assert list(probes.warnings([("x.yaml:1", policy), ("x.yaml:9", template)])) == [
        "policy p: admit.probe big drains the node first (drain.strategy Evict); name one that only looks"
    ]
