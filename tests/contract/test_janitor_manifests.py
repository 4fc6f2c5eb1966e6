"""deploy/janitor fits together: its options, its rules, its account and what that may do."""

import re
from pathlib import Path
from typing import Any

import pytest

from remediator.janitor.rules import read
from remediator.janitor.selection import OF_THE_CLUSTER, SHIPPED
from tests.harness import yaml_files

FOLDER = Path(__file__).parents[2] / "deploy" / "janitor"
KUSTOMIZATION = yaml_files.read(FOLDER / "kustomization.yaml")
OBJECTS: list[dict[str, Any]] = [
    each for name in KUSTOMIZATION["resources"] for each in yaml_files.read_all(FOLDER / name)
]
ROLE = next(each for each in OBJECTS if each["kind"] == "ClusterRole")
(SPEC,) = (each["spec"]["template"]["spec"] for each in OBJECTS if each["kind"] == "Deployment")
(CONTAINER,) = SPEC["containers"]
COMMAND: list[str] = CONTAINER["command"]


def option(name: str) -> str:
    return COMMAND[COMMAND.index(name) + 1]


def test_the_janitor_only_reports_until_somebody_says_otherwise() -> None:
    assert COMMAND[:2] == ["remediator", "janitor"]
    assert "--mode" not in COMMAND


def test_it_looks_at_the_kinds_that_its_role_names_and_at_no_secrets() -> None:
    deletes = {plural for rule in ROLE["rules"] if "delete" in rule["verbs"] for plural in rule["resources"]}
    assert set(option("--include-resources").split(",")) == deletes == SHIPPED
    assert not {"secrets", "*"} & {plural for rule in ROLE["rules"] for plural in rule["resources"]}


def test_its_account_has_no_more_verbs_than_it_uses() -> None:
    by_verbs = {tuple(rule["verbs"]): set(rule["resources"]) for rule in ROLE["rules"] if "patch" not in rule["verbs"]}
    (tickets,) = (rule["verbs"] for rule in ROLE["rules"] if "tickets" in rule["resources"])
    assert tickets == ["list", "create", "patch"]
    lists = [set(rule["resources"]) for rule in ROLE["rules"] if rule["verbs"] == ["list"]]
    assert {tuple(rule["verbs"]) for rule in ROLE["rules"]} == {
        ("get", "list", "patch", "delete"),
        ("get", "list", "watch", "patch", "delete"),
        ("create",),
        ("list",),
        ("get",),
        ("list", "create", "patch"),
    }
    assert by_verbs[("create",)] == {"events"}
    assert lists == [{"replicasets"}, {"idlepolicies"}]
    assert by_verbs[("get",)] == {"nodes"}
    assert [rule["resources"] for rule in ROLE["rules"] if "watch" in rule["verbs"]] == [["pods"]]
    (role,) = (each for each in OBJECTS if each["kind"] == "Role")
    verbs = {verb for rule in role["rules"] for verb in rule["verbs"]}
    assert (role["metadata"]["namespace"], verbs) == ("remediator-system", {"create", "get", "update"})


def test_admission_keeps_the_namespaces_that_the_janitor_itself_does_not_look_at() -> None:
    """Whoever has its token is not held to its options: without kube-node-lease no node would be alive."""
    rules = {
        each["metadata"]["name"]: str(each["spec"]) for each in OBJECTS if each["kind"] == "ValidatingAdmissionPolicy"
    }
    lists = [
        set(re.findall("'([a-z-]+)'", found))
        for name in ("remediator-janitor-deletes", "remediator-janitor-marks")
        for found in re.findall(r"\['kube-[^]]*\]", rules[name])
    ]
    assert lists == [OF_THE_CLUSTER, OF_THE_CLUSTER]


def test_every_subject_and_the_pod_are_the_one_account() -> None:
    (account,) = (each["metadata"] for each in OBJECTS if each["kind"] == "ServiceAccount")
    subjects = [subject for each in OBJECTS for subject in each.get("subjects", ())]
    assert {(subject["name"], subject["namespace"]) for subject in subjects} == {
        (account["name"], account["namespace"])
    }
    assert SPEC["serviceAccountName"] == account["name"]


def test_it_leaves_the_clusters_and_our_own_namespaces_alone() -> None:
    """Those that it leaves alone by itself: an option in their place would name fewer."""
    assert "--exclude-namespaces" not in COMMAND
    assert {"kube-system", "kube-node-lease"} < OF_THE_CLUSTER


def test_it_prefers_the_nodes_that_the_controller_prefers() -> None:
    """Its token may delete the work of all users: root on a node of a tenant should not have it."""
    (controller,) = (
        each for each in yaml_files.read_all(FOLDER.parent / "controller.yaml") if "replicas" in each["spec"]
    )
    theirs = controller["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert SPEC["affinity"]["nodeAffinity"] == theirs


def test_its_rules_are_read_where_they_are_mounted() -> None:
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    (mount,) = CONTAINER["volumeMounts"]
    (file,) = generated["files"]
    assert option("--rules-file") == f"{mount['mountPath']}/{file}"
    assert SPEC["volumes"] == [{"name": mount["name"], "configMap": {"name": generated["name"]}}]
    assert read((FOLDER / file).read_text()) == ()


@pytest.mark.parametrize("folder", [".", "janitor", "scheduler/second", "shared-gpus", "watchdog", "page"])
def test_no_name_that_kustomize_generates_is_one_that_a_role_names(folder: str) -> None:
    """Kustomize gives both the hash, and the account may do nothing with what it is meant for."""
    place = FOLDER.parent / folder
    kustomization = yaml_files.read(place / "kustomization.yaml")
    generated = {each["name"] for each in kustomization.get("configMapGenerator", ())}
    files = [place / name for name in kustomization.get("resources", ()) if name.endswith(".yaml")]
    rules = [rule for file in files for each in yaml_files.read_all(file) for rule in each.get("rules") or ()]
    assert rules
    assert not generated & {name for rule in rules for name in rule.get("resourceNames", ())}


def test_only_prometheus_reaches_its_report() -> None:
    (policy,) = (each["spec"] for each in OBJECTS if each["kind"] == "NetworkPolicy")
    (deployment,) = (each for each in OBJECTS if each["kind"] == "Deployment")
    assert policy["podSelector"]["matchLabels"] == deployment["spec"]["template"]["metadata"]["labels"]
    (rule,) = policy["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
