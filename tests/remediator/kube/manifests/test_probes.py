"""`remediator lint` warns of probes that are legal and unwise, and refuses those that are not there."""

import pytest

from remediator.kube.manifests import lint, probes
from tests.builders import a_node
from tests.remediator.kube.manifests.examples import manifest


def documents(**spec):
    """A policy with a probe, and the template that it names."""
    template = manifest("NodeOperationTemplate", name="gpu-check", **{"drain": {"strategy": "None"}} | spec)
    ladder = [{"operation": "reboot"}]
    policy = manifest("RemediationPolicy", name="gpu-lost", verify={"probe": "gpu-check"}, ladder=ladder)
    return [("policies.yaml:1", policy), ("policies.yaml:20", template)]


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        pytest.param({}, "", id="it only looks"),
        pytest.param({"drain": {"strategy": "Evict"}}, "drains the node first (drain.strategy Evict)", id="it drains"),
        pytest.param(
            {"success": {"bootIDChanged": True}}, "succeeds by a reboot, which proves nothing", id="it reboots"
        ),
    ],
)
def test_a_probe_should_only_look(spec, warning):
    found = list(probes.warnings(documents(**spec)))
    expected = f"policy gpu-lost: verify.probe gpu-check {warning}; name one that only looks"
    assert found == ([expected] if warning else [])


@pytest.mark.parametrize("probe", ["", "gpu-check"])
def test_a_policy_that_repairs_what_a_test_of_an_idle_node_found_should_name_a_probe(probe):
    when, ladder = [{"condition": "IdleTestFailed", "for": "0s"}], [{"operation": "reboot"}]
    verify = {"probe": probe} if probe else {}
    policy = manifest("RemediationPolicy", name="p", when=when, ladder=ladder, verify=verify)
    found = [line for line in probes.warnings([("p.yaml:1", policy)]) if "idleTest" in line]
    said = (
        "policy p: IdleTestFailed is False once an operation has succeeded, which proves nothing of the GPUs; "
        "name the probe of idleTest in verify.probe"
    )
    assert found == ([] if probe else [said])


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, ""),
        ({"runOn": "Elsewhere"}, "gpu-check does not run on the node that it is about"),
        ({"drain": {"strategy": "Evict"}}, "gpu-check drains the node first"),
    ],
)
def test_a_probe_of_idle_nodes_that_can_never_run_on_one_is_warned_of(spec, why):
    test = {"probe": "gpu-check", "share": 1, "window": {"cron": "0 2 * * *", "duration": "4h"}}
    (_, template), where = documents(**spec)[1], "policies.yaml:1"
    policy = manifest("RemediationPolicy", name="nightly", idleTest=test)
    found = [line for line in probes.warnings([(where, policy), ("t.yaml:1", template)]) if "is tested" in line]
    said = f"policy nightly: idleTest.probe: {why}, so no idle node is tested; "
    assert found == ([f"{said}name one that runs on its node and drains nothing"] if why else [])


def test_a_probe_that_is_not_there_is_an_error_like_a_rung():
    policy = documents()[:1]
    found = [finding for finding in lint.lint(policy, frozenset({"reboot"})) if "probe" in finding.field]
    assert [(finding.field, finding.message) for finding in found] == [
        ("spec.verify.probe", "there is no NodeOperationTemplate named 'gpu-check'")
    ]


def rungs(*names, **verify):
    """A policy with these rungs, and the templates: of these only reboot drains."""
    policy = manifest("RemediationPolicy", ladder=[{"operation": name} for name in names], name="p", verify=verify)
    drains = {"restart": "None", "gpu-check": "None", "reboot": "Evict"}
    templates = [manifest("NodeOperationTemplate", name=name, drain={"strategy": how}) for name, how in drains.items()]
    return [("x.yaml:1", document) for document in (policy, *templates)]


@pytest.mark.parametrize(
    ("names", "verify", "warned"),
    [
        (("reboot",), {"probe": "gpu-check"}, []),
        (("restart", "reboot"), {}, []),
        (("reboot", "gpu-check"), {}, []),
        (
            ("restart", "reboot"),
            {"probe": "gpu-check"},
            [
                "policy p: verify.probe gpu-check cannot tell while Pods use the GPUs, and spec.ladder[0] (restart) "
                "drains nothing; write a drain into its template, or name no probe"
            ],
        ),
        (
            ("restart", "gpu-check"),
            {},
            [
                "policy p: spec.ladder[1] (gpu-check) refuses a GPU that a Pod uses; put a rung before it whose "
                "template drains"
            ],
        ),
    ],
)
def test_a_check_of_gpus_comes_after_a_drain(names, verify, warned):
    assert list(probes.warnings(rungs(*names, **verify))) == warned


GPU = {"remediator.dev/gpu.present": "true"}


def test_a_probe_on_gpus_cannot_tell_on_the_nodes_of_a_policy_that_have_none():
    asked = {"verify": {"probe": "gpu-check"}, "ladder": [{"operation": "reboot"}], "name": "p"}
    pool = [("x.yaml:1", manifest("RemediationPolicy", **asked))]
    workers = {"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}]}
    of_all = [("x.yaml:1", manifest("RemediationPolicy", nodeSelector=workers, **asked))]
    nodes = [a_node("cpu-1"), a_node("gpu-1", labels=GPU | {"pool": "a"}), a_node("cpu-2", labels={"pool": "b"})]
    (told,) = probes.warnings(pool, nodes)
    assert told == (
        "policy p: verify.probe gpu-check cannot tell where there are no GPUs, and 1 of its nodes (cpu-1) have no "
        'label of GPUs; select remediator.dev/gpu.present: "true", or name no probe'
    )
    assert list(probes.warnings(pool, nodes[1:])) == list(probes.warnings(pool)) == [], "it may select GPU nodes alone"
    (told,) = probes.warnings(of_all)
    assert "and its nodeSelector takes nodes that have no label of GPUs; select" in told
