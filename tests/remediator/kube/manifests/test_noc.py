"""Manifests of node-operation-controller become ours, lint takes them, and what is different is said."""

from typing import Any

import pytest

from remediator.kube.manifests import lint
from remediator.kube.manifests.noc import Conversion, convert
from tests.remediator.kube.manifests import noc_examples as noc

Object = dict[str, Any]
OWNER = [{"apiVersion": "v1", "kind": "NodeRemediation", "name": "x", "uid": "u"}]
FAULT = ("GpuLost", "True")


def converted(*documents: Object, templates: frozenset[str] = frozenset()) -> Conversion:
    conversion = convert([(f"noc.yaml:{line}", each) for line, each in enumerate(documents, start=1)], templates)
    assert lint.lint([("ours", each) for each in conversion.objects], templates) == []
    return conversion


def one(*documents: Object, **options: Any) -> Object:
    """The spec of the last object."""
    spec: Object = converted(*documents, **options).objects[-1]["spec"]
    return spec


def fields(conversion: Conversion) -> list[str]:
    return [note.field for note in conversion.notes]


def refusal(*documents: Object) -> tuple[str, str]:
    (note,) = [note for note in converted(*documents).notes if note.refused]
    return note.field, note.message


def test_a_template_becomes_a_template_and_its_program_still_learns_its_node() -> None:
    spec = one(noc.template())
    assert spec["drain"] == {"strategy": "Evict", "deleteBarePods": True, "deleteEmptyDirData": True}
    assert spec["runOn"] == "Elsewhere", "nothing of theirs puts the Pod on the node"
    (container,) = spec["podTemplate"]["spec"]["containers"]
    assert container["env"] == [{"name": "TARGET_NODE", "value": "$(NODE_NAME)"}]
    assert container["command"] == ["sh", "-c", "echo $TARGET_NODE"]
    assert "restartPolicy" not in spec["podTemplate"]["spec"]


def test_a_variable_of_our_own_name_is_left_to_us() -> None:
    env = [{"name": "NODE_NAME", "valueFrom": noc.BY_ANNOTATION}, {"name": "A", "value": "1"}]
    job = {"template": {"spec": noc.pod(containers=[{"name": "c", "image": "i", "env": env}])}}
    (container,) = one(noc.template(job=job))["podTemplate"]["spec"]["containers"]
    assert container["env"] == [{"name": "A", "value": "1"}]


def test_a_program_that_reads_the_annotation_in_another_way_is_refused_with_what_to_write() -> None:
    volume = {"name": "info", "downwardAPI": {"items": [{"path": "node", **noc.BY_ANNOTATION}]}}
    field, message = refusal(noc.template(job={"template": {"spec": noc.pod(volumes=[volume])}}))
    assert field == "spec.template.spec.jobTemplate.spec.template.spec"
    assert message.endswith("write $(NODE_NAME) in command, args or env")


@pytest.mark.parametrize(
    ("theirs", "skips", "ours"),
    [
        ("", False, "Evict"),
        ("Evict", False, "Evict"),
        ("Evict", True, "Evict"),
        ("Delete", False, "Delete"),
        ("ForceDelete", False, "Delete"),
        ("None", False, "WaitForCompletion"),
        ("None", True, "None"),
    ],
)
def test_each_strategy_has_one_here_that_disturbs_no_more(theirs: str, skips: bool, ours: str) -> None:
    given = {"evictionStrategy": theirs} if theirs else {}
    conversion = converted(noc.template(skipWaitingForEviction=skips, **given))
    assert conversion.objects[0]["spec"]["drain"]["strategy"] == ours
    assert conversion.refused == 0
    said = [field.removeprefix("spec.template.spec.") for field in fields(conversion)]
    assert ("evictionStrategy" in said) == (theirs == "ForceDelete")
    assert ("skipWaitingForEviction" in said) == (skips and theirs != "None")


def test_a_strategy_that_they_do_not_have_is_refused() -> None:
    field, message = refusal(noc.template(evictionStrategy="Evicts"))
    assert field == "spec.template.spec.evictionStrategy"
    assert message == "'Evicts' is none of theirs; write Evict, Delete, ForceDelete or None"


def test_the_shorter_deadline_is_the_timeout_and_no_deadline_is_told() -> None:
    pod = noc.pod(activeDeadlineSeconds=90)
    conversion = converted(noc.template(job={"activeDeadlineSeconds": 600, "template": {"spec": pod}}))
    assert conversion.objects[0]["spec"]["timeout"] == "90s"
    assert "activeDeadlineSeconds" not in conversion.objects[0]["spec"]["podTemplate"]["spec"]
    told = [note.message for note in converted(noc.template()).notes if "activeDeadlineSeconds" in note.message]
    assert told == [
        "has no activeDeadlineSeconds: here the Pod is stopped after 15m, and counts as failed; set timeout"
    ]


def test_what_a_job_does_beyond_one_pod_is_told_or_refused() -> None:
    conversion = converted(noc.template(job={"backoffLimit": 2, "ttlSecondsAfterFinished": 60, "completions": 1}))
    job = "spec.template.spec.jobTemplate.spec"
    assert {f"{job}.backoffLimit", f"{job}.ttlSecondsAfterFinished"} < set(fields(conversion))
    assert refusal(noc.template(job={"parallelism": 2}))[0] == f"{job}.parallelism"


def test_what_the_pod_takes_from_its_namespace_is_named() -> None:
    used = {
        "serviceAccountName": "repair",
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [{"name": "a", "configMap": {"name": "settings"}}, {"name": "b", "secret": {"secretName": "key"}}],
    }
    container = {"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "token"}}]}
    job = {"template": {"spec": noc.pod(containers=[container], **used)}}
    (message,) = [note.message for note in converted(noc.template(job=job)).notes if "namespace" in note.message]
    assert message.startswith(
        "ConfigMap settings, Secret key, Secret pull, Secret token, ServiceAccount repair: must be"
    )


def test_an_operation_that_somebody_asked_for_becomes_a_template_and_says_how_to_ask_again() -> None:
    conversion = converted(noc.operation())
    assert [(each["kind"], each["metadata"]["name"]) for each in conversion.objects] == [
        ("NodeOperationTemplate", "by-hand")
    ]
    (note,) = [note for note in conversion.notes if note.field == "spec.nodeName"]
    assert "kubectl get node gpu-1 -o jsonpath={.metadata.uid}" in note.message
    assert conversion.refused == 0


@pytest.mark.parametrize(
    "bound", [{"nodeName": "gpu-1"}, {"nodeSelector": {"kubernetes.io/hostname": "gpu-1"}}], ids=["name", "selector"]
)
def test_an_operation_whose_pod_is_put_on_its_node_runs_there(bound: Object) -> None:
    spec = one(noc.operation(job={"template": {"spec": noc.pod(**bound)}}))
    assert "runOn" not in spec, "Target is the default"
    assert not {"nodeName", "nodeSelector"} & set(spec["podTemplate"]["spec"])


def test_a_template_whose_pod_is_put_on_one_node_is_refused() -> None:
    field, _ = refusal(noc.template(job={"template": {"spec": noc.pod(nodeName="gpu-1")}}))
    assert field == "spec.template.spec.jobTemplate.spec.template.spec.nodeName"


@pytest.mark.parametrize(
    "document",
    [
        noc.operation() | {"status": {"phase": "Completed"}},
        noc.operation() | {"metadata": {"name": "made", "ownerReferences": OWNER}},
        noc.remediation(FAULT, ownerReferences=OWNER),
        noc.budget(),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
    ],
    ids=["has ended", "made for a remediation", "made by a template", "limits nothing", "of others"],
)
def test_what_has_no_use_here_is_left_out_with_a_word_and_is_no_error(document: Object) -> None:
    conversion = converted(document)
    (note,) = conversion.notes
    assert (conversion.objects, note.refused, note.message.startswith("is left out: ")) == ((), False, True)


def test_remediations_of_a_template_become_one_policy_that_only_watches() -> None:
    spec = one(noc.template(), noc.remediations(FAULT))
    assert (spec["mode"], spec["nodeSelector"]) == ("DryRun", {"matchLabels": {"auto-remediation": ""}})
    assert (spec["when"], spec["ladder"]) == ([{"condition": "GpuLost"}], [{"operation": "repair"}])


def test_conditions_of_one_rule_must_hold_together() -> None:
    spec = one(noc.template(), noc.remediations(FAULT, ("Ready", "False")))
    assert spec["when"] == [{"all": [{"condition": "GpuLost"}, {"condition": "Ready", "status": "False"}]}]


def test_a_selector_of_every_node_is_said_as_such() -> None:
    spec = one(noc.template(), noc.remediations(FAULT, nodes={}))
    assert (spec["allNodes"], spec["nodeSelector"]) == (True, {})


def test_a_remediation_of_one_node_becomes_a_policy_for_its_hostname() -> None:
    spec = one(noc.template(), noc.remediation(FAULT))
    assert spec["nodeSelector"] == {"matchLabels": {"kubernetes.io/hostname": "gpu-1"}}


def test_an_empty_rule_which_means_every_node_is_refused() -> None:
    field, message = refusal(noc.template(), noc.remediations())
    assert field == "spec.template.spec.rule.conditions"
    assert message == "is empty, which means every node at all times; name the Conditions that are the fault"


def test_a_status_that_no_condition_has_is_refused() -> None:
    field, _ = refusal(noc.template(), noc.remediations(("type1", "status2")))
    assert field == "spec.template.spec.rule.conditions[0].status"


def test_a_fault_that_nobody_can_tell_is_refused_with_the_words_of_lint() -> None:
    _, message = refusal(noc.template(), noc.remediations(("Other", "Unknown")))
    assert message.startswith('RemediationPolicy/sick may not be so: spec.when[0].status: status "Unknown" is for')


def test_a_template_that_nobody_knows_is_asked_for() -> None:
    _, message = refusal(noc.remediations(FAULT))
    assert message.endswith("name its file, too, or give --template NAME if it is in the cluster")
    assert len(converted(noc.remediations(FAULT), templates=frozenset({"repair"})).objects) == 1


def test_what_needs_an_object_that_was_refused_is_refused_too() -> None:
    conversion = converted(noc.template(job={"parallelism": 2}), noc.remediations(FAULT))
    assert (conversion.objects, conversion.refused) == ((), 2)


def test_both_amounts_of_a_budget_hold_as_two_budgets() -> None:
    conversion = converted(noc.budget({"pool": "a"}, maxUnavailable=1, minAvailable=3))
    most, fewest = conversion.objects
    selector = {"matchLabels": {"pool": "a"}}
    assert (most["metadata"]["name"], most["spec"]) == ("workers", {"selector": selector, "maxUnavailable": 1})
    assert fewest["metadata"]["name"] == "workers-min-available"
    assert fewest["spec"] == {"selector": selector, "minAvailable": 3}
    assert fields(conversion) == ["spec.minAvailable"]


@pytest.mark.parametrize("amount", [-1, "10%"])
def test_an_amount_that_their_controller_does_not_read_is_refused(amount: object) -> None:
    field, message = refusal(noc.budget(maxUnavailable=amount))
    assert field == "spec.maxUnavailable"
    assert message.endswith("correct it as their CRD has it")


@pytest.mark.parametrize("mistake", ["job", "jobSpec"])
def test_a_field_that_their_api_server_drops_in_silence_is_named(mistake: str) -> None:
    """The README has `job`, the samples have `jobSpec`: such a template never ran anything."""
    document = noc.template()
    spec = document["spec"]["template"]["spec"]
    spec[mistake] = spec.pop("jobTemplate")
    field, message = refusal(document)
    assert field == "spec.template.spec"
    assert f"`{mistake}`" in message


@pytest.mark.parametrize("count", [2])
def test_two_of_one_kind_and_name_are_both_refused(count: int) -> None:
    assert converted(*[noc.template()] * count).refused == count


def test_kubectls_own_copy_of_a_manifest_is_left_behind_and_labels_are_kept() -> None:
    document = noc.budget(labels={"team": "ml"}, maxUnavailable=1)
    document["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}
    (ours,) = converted(document).objects
    assert ours["metadata"] == {"name": "workers", "labels": {"team": "ml"}, "annotations": {"a": "b"}}


@pytest.mark.parametrize("nonsense", [None, 5, [], {"template": None}, {"selector": 5}])
def test_nonsense_is_refused_and_never_raises(nonsense: object) -> None:
    for kind in ("NodeOperation", "NodeOperationTemplate", "NodeRemediation", "NodeRemediationTemplate"):
        assert converted({"apiVersion": f"{noc.GROUP}/v1alpha1", "kind": kind, "spec": nonsense}).refused == 1


@pytest.mark.parametrize(
    "spec", [{"containers": 5}, {"containers": [5]}, {"containers": [{"env": [5]}]}, {"volumes": 5}]
)
def test_a_pod_that_no_server_would_take_is_refused(spec: Object) -> None:
    assert converted(noc.template(job={"template": {"spec": spec}})).refused == 1
