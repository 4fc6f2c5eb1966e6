"""The policies of deploy/foreign on nodes as the detectors of others leave them: sick, well, and with nobody to ask."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from remediator.core.health import Health
from remediator.core.judgement import judge
from remediator.core.node import Node
from remediator.core.policy import Mode, Policy
from remediator.core.reporters import ALL, asked, of_condition, own_condition
from remediator.kube import api
from remediator.kube.api import builtin, decode, reporter_pods
from remediator.kube.manifests import lint
from remediator_sim.invariants import clauses
from tests.contract.foreign.objects import RECORDED, Object, Recorded
from tests.harness.yaml_files import read_all

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "deploy" / "foreign").glob("*.yaml"))
SELECTED = {"remediator.dev/gpu.present": "true", "nvidia.com/gpu.deploy.operator-validator": "true"}


def policies() -> dict[str, Policy]:
    documents = [document for path in FILES for document in read_all(path)]
    read = [decode.remediation_policy(msgspec.convert(one, api.RemediationPolicy)) for one in documents]
    return {policy.name: policy for policy in read}


POLICIES = policies()


def reported(recorded: Recorded, policy: Policy, ready: bool) -> list[Object]:
    """What the controller says of the source's Pod on the node, where the policy asks for it: its labels must match."""
    if recorded.pod is None:
        return []
    (type,) = set(asked(policy))
    who, status = of_condition(type), {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    assert (who.namespace, dict(who.labels).items() <= recorded.pod["labels"].items()) == (
        recorded.pod["namespace"],
        True,
    )
    wire = {"metadata": recorded.pod, "spec": {"nodeName": "n"}, "status": status}
    speaks = reporter_pods.reporter_pod(msgspec.convert(wire, reporter_pods.ReporterPod)).speaks_for
    words = own_condition(type, speaks == "n", speaks == ALL)
    times = {"lastHeartbeatTime": recorded.at, "lastTransitionTime": recorded.at}
    return [{"type": type, "status": words.status.value, "reason": words.reason, **times}]


def node(recorded: Recorded, *conditions: Object) -> Node:
    """The node, of which the kubelet was heard of just then."""
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": recorded.at, "lastTransitionTime": recorded.at}
    status = {"conditions": [ready, *conditions]}
    return decode.node(msgspec.convert({"metadata": {"name": "n", "labels": SELECTED}, "status": status}, builtin.Node))


def health(recorded: Recorded, conditions: tuple[Object, ...], *, ready: bool = True) -> Health:
    policy = POLICIES[recorded.policy]
    seen = node(recorded, *conditions, *reported(recorded, policy, ready))
    assert policy.selects(seen)
    return judge(seen, policy, datetime.fromisoformat(recorded.at).astimezone(UTC)).health


def judged(recorded: Recorded, conditions: tuple[Object, ...], *, ready: bool = True) -> bool | None:
    """The same as the judge of the simulation sees it: whether the node is sick; None where nobody can tell."""
    policy = next(one for path in FILES for one in read_all(path) if one["metadata"]["name"] == recorded.policy)
    ours = {"type": "Ready", "status": "True", "lastHeartbeatTime": recorded.at, "lastTransitionTime": recorded.at}
    seen = {"status": {"conditions": [ours, *conditions, *reported(recorded, POLICIES[recorded.policy], ready)]}}
    return clauses.sick(seen, policy, datetime.fromisoformat(recorded.at).astimezone(UTC), timedelta(minutes=15))


def sick(recorded: Recorded) -> tuple[Object, ...]:
    """As well, but for one Condition."""
    fault = recorded.sick
    if fault is None:
        return recorded.well
    return (*(one for one in recorded.well if one["type"] != fault["type"]), fault)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.policy)
def test_a_policy_finds_what_its_source_has_found_and_nothing_on_a_node_that_is_well(recorded):
    assert health(recorded, recorded.well) is Health.HEALTHY
    assert judged(recorded, recorded.well) is False
    ready = recorded.sick is not None
    assert health(recorded, sick(recorded), ready=ready) is Health.UNHEALTHY
    assert judged(recorded, sick(recorded), ready=ready) is True


@pytest.mark.parametrize("recorded", [one for one in RECORDED if one.pod and one.sick], ids=lambda one: one.policy)
def test_where_the_pod_of_its_source_is_not_ready_nothing_is_known(recorded):
    """Each was written hours before: without the Pod nobody says that it still holds."""
    assert health(recorded, sick(recorded), ready=False) is Health.UNKNOWN
    assert health(recorded, recorded.well, ready=False) is Health.UNKNOWN
    assert judged(recorded, sick(recorded), ready=False) is judged(recorded, recorded.well, ready=False) is None


@pytest.mark.slow
def test_each_policy_has_an_object_of_its_source_watches_only_and_passes_lint():
    assert sorted(POLICIES) == sorted(recorded.policy for recorded in RECORDED)
    assert {policy.mode for policy in POLICIES.values()} == {Mode.DRY_RUN}
    shipped = [*FILES, *sorted((ROOT / "operations").glob("*.yaml"))]
    documents = [(path.name, one) for path in shipped for one in read_all(path) if "kind" in one]
    ours = [pair for pair in documents if pair[1]["kind"] in ("RemediationPolicy", "NodeOperationTemplate")]
    assert [str(found) for found in lint.lint(ours)] == []
