"""The Pod of an operation: as its template and as safety ask. And finalizers: those of others stay."""

import json

from remediator.core import names
from remediator.core.selector import parse
from remediator.core.template import RunOn
from remediator.kube.api import encode
from remediator_sim.kubelet.container import environment
from tests.builders import a_template, minutes

ENV = {"NODE_NAME": "gpu-1"}
LABELS = {names.OPERATION_LABEL: "reboot"}


def a_body(spec=None, metadata=None, env=ENV, **more):
    containers = [{"name": "main", "image": "i", "env": [{"name": "A", "value": "1"}]}]
    pod = {"metadata": metadata or {}, "spec": {"containers": containers} | (spec or {})}
    return encode.pod(a_template(pod=pod, **more), "p", "gpu-1", labels=LABELS, env=env, deadline=minutes(15))


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
        {"name": "NODE_NAME", "value": "gpu-1"},
        {"name": "A", "value": "1"},
    ]


def test_a_variable_of_the_template_may_name_ours_and_takes_the_place_of_none():
    """A kubelet fills in $(NAME) only of a variable that stands before."""
    target = {"name": "TARGET", "value": "$(NODE_NAME)"}
    container = {"name": "main", "image": "i", "env": [target, {"name": "NODE_NAME", "value": "gpu-2"}]}
    env = a_body({"containers": [container]})["spec"]["containers"][0]["env"]
    assert env == [{"name": "NODE_NAME", "value": "gpu-1"}, target]


def test_what_runs_before_is_given_the_same_environment_and_asks_for_nothing_on_the_target():
    first = {
        "name": "first",
        "image": "i",
        "env": [{"name": "B", "value": "2"}],
        "resources": {"requests": {"cpu": "4"}},
    }
    for run_on, asked in ((RunOn.TARGET, {"cpu": "0", "memory": "0"}), (RunOn.ELSEWHERE, {"cpu": "4"})):
        (before,) = a_body({"initContainers": [first]}, run_on=run_on)["spec"]["initContainers"]
        assert before["env"] == [{"name": "NODE_NAME", "value": "gpu-1"}, {"name": "B", "value": "2"}]
        assert before["resources"]["requests"] == asked
    assert "initContainers" not in a_body()["spec"]


def test_what_a_user_writes_into_parameters_comes_out_of_the_kubelet_as_it_was_written():
    written = '{"path": "$(A) $$(A) $A $", "caseUID": "x"}'
    body = a_body(env={"PARAMETERS": written})
    assert environment({"metadata": {}, "spec": body["spec"]}) == {"A": "1", "PARAMETERS": written}


def test_the_secret_of_a_volume_is_that_of_the_node_and_other_volumes_stay():
    other = [
        {"name": "a", "hostPath": {"path": "/run/$(NODE_NAME)"}},
        {"name": "b", "secret": {"secretName": "tls"}},
        {"name": "c", "secret": {}},
    ]
    mine = {"name": "bmc", "secret": {"secretName": "bmc-$(NODE_NAME)", "optional": True}}
    volumes = a_body({"volumes": [*other, mine]})["spec"]["volumes"]
    assert volumes == [*other, {"name": "bmc", "secret": {"secretName": "bmc-gpu-1", "optional": True}}]
    assert "volumes" not in a_body()["spec"]


def test_on_the_target_it_is_bound_tolerates_all_and_asks_for_nothing():
    limits = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "4"}}
    body = a_body({"containers": [{"name": "a", "image": "i", "resources": limits}, {"name": "b", "image": "i"}]})
    assert (body["spec"]["nodeName"], body["spec"]["tolerations"]) == ("gpu-1", [{"operator": "Exists"}])
    zero = {"cpu": "0", "memory": "0"}
    assert [container["resources"] for container in body["spec"]["containers"]] == [
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


def test_elsewhere_it_runs_on_the_nodes_of_the_settings_and_bears_the_taint_of_control_planes():
    own = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    borne = {"key": "mine", "operator": "Exists"}
    written = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [own]}}}, "tolerations": [borne]}
    template = a_template(run_on=RunOn.ELSEWHERE, pod={"spec": written})
    chosen = parse("!nvidia.com/gpu.present,pool in (infra)")
    body = encode.pod(template, "p", "gpu-1", labels=LABELS, env=ENV, deadline=minutes(1), on=chosen)
    (term,) = body["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "zone", "operator": "Exists"},
        {"key": "nvidia.com/gpu.present", "operator": "DoesNotExist"},
        {"key": "pool", "operator": "In", "values": ["infra"]},
    ]
    assert term["matchFields"] == [AWAY]
    control_plane = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
    assert body["spec"]["tolerations"] == [borne, control_plane]


def test_for_a_watchdog_it_is_placed_nowhere_and_has_the_label_of_its_node():
    body = a_body({"nodeSelector": {"pool": "a"}}, run_on=RunOn.WATCHDOG)
    assert body["spec"]["schedulerName"] == "remediator-watchdog"
    assert not {"nodeName", "affinity", "tolerations"} & set(body["spec"])
    assert body["metadata"]["labels"] == LABELS | {"remediator.dev/watchdog": "dfe1f80ee72a6580f631f18758ece83e"}


def test_the_template_itself_is_not_changed():
    template = a_template(run_on=RunOn.TARGET)
    before = json.dumps(template.pod)
    encode.pod(template, "p", "gpu-1", labels=LABELS, env=ENV, deadline=minutes(1))
    assert json.dumps(template.pod) == before


def test_a_finalizer_of_somebody_else_stays():
    body = encode.without_finalizer("7", ["a", names.POD_FINALIZER, "b"], names.POD_FINALIZER)
    assert body == {"metadata": {"resourceVersion": "7", "finalizers": ["a", "b"]}}
    assert encode.without_finalizer("7", [names.POD_FINALIZER], names.POD_FINALIZER)["metadata"]["finalizers"] is None
