"""Which Pods are of one gang, by their metadata alone, and by the PodGroup of Kubernetes that they name."""

import json

import pytest

from nodelib.k8s.api import ApiReply
from nodelib.k8s.gangs import membership_of, units, with_groups
from nodelib.k8s.pods import pod_of


def item(name="a", labels=None, annotations=None, group=""):
    meta = {"namespace": "team", "name": name, "uid": f"uid-{name}", "labels": labels, "annotations": annotations}
    return {"metadata": meta, "spec": {"schedulingGroup": {"podGroupName": group}} if group else {}}


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("remediator.dev/gang", "gang"),
        ("jobset.sigs.k8s.io/jobset-name", "JobSet"),
        ("leaderworkerset.sigs.k8s.io/group-key", "LeaderWorkerSet"),
        ("training.kubeflow.org/job-name", "training job"),
        ("volcano.sh/job-name", "Volcano job"),
        ("ray.io/cluster", "RayCluster"),
        ("scheduling.x-k8s.io/pod-group", "PodGroup"),
        ("kueue.x-k8s.io/pod-group-name", "Kueue group"),
    ],
)
def test_a_label_that_means_all_or_nothing_names_the_gang(label, kind):
    assert membership_of(item(labels={label: "train-7"})).gang == f"{kind} team/train-7"


@pytest.mark.parametrize(
    "labels",
    [
        None,
        {"app": "web"},
        {"batch.kubernetes.io/job-name": "thousand", "job-name": "thousand"},
        {"kueue.x-k8s.io/queue-name": "gpu", "kueue.x-k8s.io/podset": "main"},
        {"ray.io/cluster": ""},
        {"remediator.dev/gang": "false", "ray.io/cluster": "serve"},
    ],
)
def test_other_labels_name_none(labels):
    assert membership_of(item(labels=labels)).gang == ""


@pytest.mark.parametrize(("group", "gang"), [("train-7", "Volcano group team/train-7"), ("podgroup-1f0a", "")])
def test_a_group_of_volcano_counts_but_not_one_that_it_makes_by_itself_for_any_owner(group, gang):
    assert membership_of(item(annotations={"scheduling.k8s.io/group-name": group})).gang == gang


def test_of_two_labels_the_larger_unit_counts():
    labels = {"kueue.x-k8s.io/pod-group-name": "part", "jobset.sigs.k8s.io/jobset-name": "whole"}
    assert membership_of(item(labels=labels)).gang == "JobSet team/whole"


class Server:
    """Answers for PodGroups, and counts the questions."""

    def __init__(self, status, mode=None):
        self.reply = ApiReply(status, json.dumps({"spec": {"disruptionMode": mode} if mode else {}}).encode(), {})
        self.asked = []

    def get(self, path):
        self.asked.append(path)
        return self.reply


@pytest.mark.parametrize(
    ("server", "together"),
    [
        (Server(200, {"all": {}}), True),
        (Server(200, {"single": {}}), False),
        (Server(200), False),
        (Server(404), False),
        (Server(403), True),
    ],
)
def test_a_pod_group_is_asked_once_whether_it_is_disrupted_as_a_whole(server, together):
    pods = [pod_of(item(name, group="train-7"), None) for name in "ab"]
    known = {}
    for _ in range(2):
        pods = with_groups(server, pods, known)
    assert server.asked == ["/apis/scheduling.k8s.io/v1beta1/namespaces/team/podgroups/train-7"]
    assert [len(unit) for unit in units(pods)] == ([2] if together else [1, 1])


def test_a_pod_that_says_it_is_in_no_gang_asks_for_no_pod_group():
    server = Server(200, {"all": {}})
    pods = [pod_of(item(labels={"remediator.dev/gang": "false"}, group="train-7"), None)]
    assert with_groups(server, pods, {})[0].member.gang == ""
    assert server.asked == []


def test_units_stand_in_the_place_of_their_first_pod():
    label = {"ray.io/cluster": "r"}
    pods = [pod_of(item(name, label if name in "bd" else None), None) for name in "abcd"]
    assert [[pod.name for pod in unit] for unit in units(pods)] == [["a"], ["b", "d"], ["c"]]
