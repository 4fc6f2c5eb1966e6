"""What we write to the API server: Pods as templates and safety ask, and statuses that are read back as they were."""

import json
from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from remediator.core import names
from remediator.core.budget import Members, account
from remediator.core.case import Attempt, AttemptOutcome, Block, CaseEvent, Diagnosis, Phase
from remediator.core.policy import RunOn
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import decode as codec
from remediator.kube.api import encode as bodies
from tests.builders import a_budget, a_case, a_node, a_template, an_operation, at, minutes

ENV = {"NODE_NAME": "gpu-1"}
LABELS = {names.OPERATION_LABEL: "reboot"}


def a_body(spec=None, metadata=None, **more):
    containers = [{"name": "main", "image": "i", "env": [{"name": "A", "value": "1"}]}]
    pod = {"metadata": metadata or {}, "spec": {"containers": containers} | (spec or {})}
    return bodies.pod(a_template(pod=pod, **more), "p", "gpu-1", labels=LABELS, env=ENV, deadline=minutes(15))


def test_a_pod_is_ours_ends_and_keeps_our_finalizer():
    body = a_body(metadata={"labels": {"team": "x"}, "annotations": {"a": "b"}})
    assert body["metadata"] == {
        "name": "p",
        "labels": {"team": "x"} | LABELS,
        "annotations": {"a": "b"},
        "finalizers": [names.POD_FINALIZER],
    }
    assert (body["spec"]["restartPolicy"], body["spec"]["activeDeadlineSeconds"]) == ("Never", 900)
    assert body["spec"]["containers"][0]["env"] == [
        {"name": "A", "value": "1"},
        {"name": "NODE_NAME", "value": "gpu-1"},
    ]


def test_on_the_target_it_is_bound_tolerates_all_and_asks_for_nothing():
    limits = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "4"}}
    body = a_body({"containers": [{"name": "a", "image": "i", "resources": limits}, {"name": "b", "image": "i"}]})
    assert (body["spec"]["nodeName"], body["spec"]["tolerations"]) == ("gpu-1", [{"operator": "Exists"}])
    zero = {"cpu": "0", "memory": "0"}
    assert [one["resources"] for one in body["spec"]["containers"]] == [
        {"limits": {"memory": "1Gi"}, "requests": zero},
        {"requests": zero},
    ]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AWAY = {"key": "metadata.name", "operator": "NotIn", "values": ["gpu-1"]}


def test_elsewhere_it_may_run_on_any_node_but_the_target():
    spec = a_body(run_on=RunOn.ELSEWHERE)["spec"]
    assert "nodeName" not in spec
    assert spec["affinity"] == {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [AWAY]}]}}}


def test_elsewhere_the_affinity_of_the_template_stays_and_each_of_its_terms_is_kept_away():
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
    zone, rack = ({"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in ("zone", "rack"))
    written = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [zone, rack]}} | preferred, "podAffinity": {"x": 1}}
    affinity = a_body({"affinity": written}, run_on=RunOn.ELSEWHERE)["spec"]["affinity"]
    assert affinity["podAffinity"] == {"x": 1}
    assert affinity["nodeAffinity"] == preferred | {
        REQUIRED: {"nodeSelectorTerms": [zone | {"matchFields": [AWAY]}, rack | {"matchFields": [AWAY]}]}
    }


def test_the_template_itself_is_not_changed():
    template = a_template(run_on=RunOn.TARGET)
    before = json.dumps(template.pod)
    bodies.pod(template, "p", "gpu-1", labels=LABELS, env=ENV, deadline=minutes(1))
    assert json.dumps(template.pod) == before


def test_a_finalizer_of_somebody_else_stays():
    body = bodies.without_finalizer("7", ["a", names.POD_FINALIZER, "b"], names.POD_FINALIZER)
    assert body == {"metadata": {"resourceVersion": "7", "finalizers": ["a", "b"]}}
    assert bodies.without_finalizer("7", [names.POD_FINALIZER], names.POD_FINALIZER)["metadata"]["finalizers"] is None


# --- written and read back -----------------------------------------------------------------------------------------

times = st.integers(0, 10**7).map(lambda seconds: at(seconds=seconds))
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=30)
attempts = st.builds(
    Attempt,
    operation=words.filter(bool),
    template=st.sampled_from(["reboot", "reset-gpu"]),
    rung=st.integers(0, 15),
    started=times,
    finished=st.none() | times,
    outcome=st.sampled_from(AttemptOutcome),
    message=words,
    boot_id=words,
    heartbeats=st.dictionaries(words.filter(bool), times, max_size=3),
)
cases = st.builds(
    a_case,
    phase=st.sampled_from(Phase),
    rung=st.integers(0, 15),
    attempts=st.lists(attempts, max_size=3).map(tuple),
    blocks=st.lists(st.builds(Block, st.sampled_from(Reason), words, st.none() | times), max_size=3).map(tuple),
    diagnosis=st.sampled_from(Diagnosis),
    evidence=st.dictionaries(words, words | st.integers(0, 99), max_size=3),
    timeline=st.lists(st.builds(CaseEvent, times, st.sampled_from(Reason), words), max_size=3).map(tuple),
    started=st.none() | times,
    ended=st.none() | times,
    reason=st.none() | st.sampled_from(Reason),
    message=words,
)


def merged(before, patch):
    """What a merge patch leaves."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(before) if isinstance(before, dict) else {}
    changed = {key: merged(kept.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in kept.items() if key not in patch} | changed


def stored(case):
    """The object that carries a case apart from its status."""
    trigger = case.trigger
    body = bodies.new_case(case.name, a_node(case.node), case.policy, trigger)
    body["metadata"] |= {
        "uid": case.uid,
        "resourceVersion": case.version,
        "creationTimestamp": bodies.time(case.created),
    }
    return body


@given(cases)
def test_a_case_is_read_back_as_it_was_written(case):
    wire = merged(stored(case), bodies.case_status(case))
    assert codec.remediation_case(msgspec.json.decode(json.dumps(wire), type=api.NodeRemediation)) == case


@given(cases, cases)
def test_nothing_of_what_stood_before_is_left(before, after):
    after = replace(after, evidence=before.evidence)  # it is written once and never changed
    wire = merged(merged(stored(before), bodies.case_status(before)), bodies.case_status(after))
    assert codec.remediation_case(msgspec.json.decode(json.dumps(wire), type=api.NodeRemediation)) == after


def test_an_operation_is_read_back_as_it_was_written():
    operation = an_operation(
        drain_round=2,
        drained=True,
        drain_started=at(1),
        drain_pod="d",
        pod="p",
        intent_boot_id="boot-1",
        intent_at=at(2),
        finished=at(3),
        reason="Done",
        message="said",
    )
    case = a_case()
    body = bodies.new_operation(case, Attempt(operation.name, "reboot", 0, at(0)), 1, {})
    body["metadata"] |= {"uid": operation.uid, "resourceVersion": "1", "creationTimestamp": bodies.time(at(0))}
    wire = merged(body, bodies.operation_status(operation))
    assert codec.operation(msgspec.json.decode(json.dumps(wire), type=api.NodeOperation)) == operation
    assert "drain" not in bodies.operation_status(operation)["status"], "that part belongs to the drain Pod"


def test_a_ledger_is_read_back_as_adopted_with_its_numbers():
    budget = a_budget(most=3, claims=[("gpu-1", "c1")], adopted=False)
    body = bodies.ledger(budget, account(budget, Members(2, frozenset())))
    meta = {"name": budget.name, "uid": budget.uid, "generation": 1, "resourceVersion": "1"}
    wire = {"metadata": meta, "spec": {"selector": {}, "maxUnavailable": 3}, "status": body["status"]}
    read = codec.disruption_budget(msgspec.json.decode(json.dumps(wire), type=api.NodeDisruptionBudget))
    assert (read.adopted, read.claims, read.numbers) == (True, budget.claims, (2, 1, 2))
    wire["metadata"]["generation"] = 2
    edited = codec.disruption_budget(msgspec.json.decode(json.dumps(wire), type=api.NodeDisruptionBudget))
    assert not edited.adopted, "an edited budget must adopt anew"
