"""The components for hosts: with them lint refuses nothing, and Pods are admitted there."""

import copy
import os
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.images.programs import binary
from remediator.core.hosts import HOSTS, ON_NODE, HostKind
from remediator.kube.manifests import lint
from tests.contract.docs import shapes
from tests.contract.test_manifests import OBJECTS, ROOT, Object, of
from tests.harness import yaml_files

FOLDER = ROOT / "deploy/hosts"
COMPONENTS = sorted(path.parent.name for path in FOLDER.glob("*/kustomization.yaml"))
Key = tuple[str, str, str]
Objects = dict[Key, Object]
QUOTA, ROLE_BINDING = ("ResourceQuota", "remediator-priority-classes"), ("RoleBinding", "remediator-nonroot")
SPACES = ("remediator-system", "remediator-operations")
# What each component adds, and a field that it decides: of which object, by which path, its value.
ADDED: dict[str, set[Key]] = {
    "bottlerocket": set(),
    "gke": {(*QUOTA, space) for space in SPACES},
    "openshift": {
        ("SecurityContextConstraints", "remediator-node", ""),
        ("SecurityContextConstraints", "remediator-pod-network", ""),
        ("SecurityContextConstraints", "remediator-watchdog", ""),
        *((*ROLE_BINDING, space) for space in SPACES),
    },
    "talos": set(),
}
DETECTORS = ("DaemonSet", "node-problem-detector", "remediator-system")
DECIDED: dict[str, tuple[Key, str, Any]] = {
    "bottlerocket": (DETECTORS, "spec/template/spec/containers/0/securityContext/seLinuxOptions/type", "super_t"),
    "gke": ((*QUOTA, SPACES[0]), "spec/hard", {"pods": "100k"}),
    "openshift": (("SecurityContextConstraints", "remediator-watchdog", ""), "allowPrivilegedContainer", False),
    "talos": (("RemediationPolicy", "clock-skew", ""), "spec/urgency", {"mode": "Never"}),
}


def keyed(objects: Iterable[Object]) -> Objects:
    return {(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace", "")): one for one in objects}


def at(value: Any, path: str) -> Any:
    """What is at a path, as JSON patches write it."""
    for word in path.split("/"):
        value = value[int(word)] if isinstance(value, list) else value[word]
    return value


def changed(one: Object, steps: list[Object]) -> Object:
    """An object after a JSON patch of members of objects and of containers."""
    new: Any = copy.deepcopy(one)
    for step in steps:
        way, _, last = step["path"].strip("/").rpartition("/")
        place = at(new, way)
        assert step["op"] == "add" or last in place, f"{step['path']} is not there"
        if step["op"] == "remove":
            del place[last]
        else:
            place[last] = step["value"]
    return new


def patched(name: str, whole: Objects) -> Objects:
    """What kustomize makes of these objects with a component: a test below holds this to kustomize itself."""
    component, objects = yaml_files.read(FOLDER / name / "kustomization.yaml"), dict(whole)
    for patch in component.get("patches", ()):
        targets = [key for key in objects if key[:2] == (patch["target"]["kind"], patch["target"]["name"])]
        assert len(targets) == 1, patch["target"]
        objects[targets[0]] = changed(objects[targets[0]], yaml.safe_load(patch["patch"]))
    own = [one for file in component.get("resources", ()) for one in yaml_files.read_all(FOLDER / name / file)]
    return objects | keyed(own)


@cache
def applied(name: str) -> tuple[Object, ...]:
    """All objects of `deploy` with the component beside it."""
    return tuple(patched(name, keyed(OBJECTS)).values())


def built(folder: Path) -> Objects:
    """What kustomize itself, as it is in kubectl, makes of a folder."""
    command = [str(binary("kubectl")), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return keyed(yaml.load_all(done.stdout, yaml_files.LOADER))


@cache
def deploy_built() -> Objects:
    return built(ROOT / "deploy")


@pytest.mark.cluster
@pytest.mark.parametrize("name", COMPONENTS)
def test_kustomize_builds_the_file_of_the_page_with_each_component_and_makes_what_the_tests_here_judge(
    name: str, tmp_path: Path
) -> None:
    (page,) = [one for one in shapes.of("kustomization") if one.title.startswith("docs/hosts.md:")]
    text = page.text.replace("../remediator", os.path.relpath(ROOT, tmp_path)).replace("hosts/gke", f"hosts/{name}")
    (tmp_path / "kustomization.yaml").write_text(text)
    made, plain = built(tmp_path), deploy_built()
    assert made == patched(name, plain)
    assert set(made) - set(plain) == ADDED[name]
    key, path, value = DECIDED[name]
    assert at(made[key], path) == value


def found(objects: tuple[Object, ...] | list[Object], *kinds: HostKind) -> list[str]:
    return [str(finding) for finding in lint.lint([("x", one) for one in objects], frozenset(), kinds)]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPONENTS)
def test_lint_refuses_nothing_with_the_component_of_its_host(name: str) -> None:
    assert found(applied(name), HostKind(name)) == []


@pytest.mark.parametrize("kind", [kind for kind, row in HOSTS.items() if set(row.refused) & set(ON_NODE)])
def test_of_what_is_shipped_for_all_lint_refuses_the_rungs_that_a_host_refuses(kind: HostKind) -> None:
    acting = [one["spec"] for one in of("RemediationPolicy") if one["spec"].get("urgency", {}).get("mode") != "Never"]
    ladders = [rung["operation"] for spec in acting for rung in spec["ladder"]]
    probes = [spec.get("verify", {}).get("probe", "") for spec in acting]
    refused = [name for name in (*ladders, *probes) if name in HOSTS[kind].refused]
    assert refused
    assert len(found(OBJECTS, kind)) == len(refused)


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_policy_with_nothing_but_refused_rungs_is_named_on_the_page(name: str) -> None:
    refused, text = HOSTS[HostKind(name)].refused, (ROOT / "docs/hosts.md").read_text()
    acting = [one for one in of("RemediationPolicy") if one["spec"].get("urgency", {}).get("mode") != "Never"]
    empty = [
        one["metadata"]["name"] for one in acting if all(rung["operation"] in refused for rung in one["spec"]["ladder"])
    ]
    assert [policy for policy in empty if f"`{policy}`" not in text] == []
    assert bool(empty) == (name == "talos")


def test_each_component_is_named_in_the_table_and_each_that_it_names_is_there() -> None:
    named = {kind.value for kind, row in HOSTS.items() if row.needs.startswith(f"deploy/hosts/{kind}: ")}
    assert named == {kind.value for kind, row in HOSTS.items() if row.needs} == set(COMPONENTS)


def test_gke_has_a_quota_for_each_priority_class_of_the_system_in_each_of_our_namespaces() -> None:
    quotas = [one for one in applied("gke") if one["kind"] == "ResourceQuota"]
    pods = [one["spec"].get("podTemplate", one["spec"].get("template")) for one in OBJECTS if "spec" in one]
    classes = {pod["spec"]["priorityClassName"] for pod in pods if pod and "priorityClassName" in pod["spec"]}
    assert classes == {"system-node-critical", "system-cluster-critical"}
    for quota in quotas:
        (scope,) = quota["spec"]["scopeSelector"]["matchExpressions"]
        assert (scope["scopeName"], set(scope["values"])) == ("PriorityClass", classes)
    assert {quota["metadata"]["namespace"] for quota in quotas} == {one["metadata"]["name"] for one in of("Namespace")}


def hook_accounts() -> set[str]:
    """The accounts of the Pods that the chart alone has, as OpenShift writes them: each is one of hookPod."""
    templates = "".join(path.read_text() for path in sorted((ROOT / "deploy/chart/templates").rglob("*.yaml")))
    names = re.findall(r'include "remediator\.hookPod" \(list \. "([\w-]+)"', templates)
    assert len(names) == templates.count("remediator.hookPod")
    return {f"system:serviceaccount:remediator-system:{name}" for name in names}


def _pods() -> list[tuple[str, Object]]:
    """Every Pod of the manifests, with the account that it has as OpenShift writes it."""
    beside = (
        "watchdog/daemonset.yaml",
        "pod-network/daemonset.yaml",
        "janitor/deployment.yaml",
        "scheduler/second/deployment.yaml",
    )
    applied_too = [one for path in beside for one in yaml_files.read_all(ROOT / "deploy" / path)]
    specs = []
    for one in (*OBJECTS, *applied_too):
        template = one.get("spec", {}).get("podTemplate") or one.get("spec", {}).get("template")
        if template:
            namespace = one["metadata"].get("namespace", "remediator-operations")
            account = f"system:serviceaccount:{namespace}:{template['spec']['serviceAccountName']}"
            specs.append((account, template["spec"]))
    return specs


def _has_folder_of_node(pod: Object) -> bool:
    return any("hostPath" in volume for volume in pod.get("volumes", ()))


def constraints() -> list[Object]:
    return [one for one in applied("openshift") if one["kind"] == "SecurityContextConstraints"]


def test_openshift_lets_each_account_use_the_constraints_that_its_pods_need_and_no_other_those_of_nodes() -> None:
    bindings = [one for one in applied("openshift") if one["metadata"]["name"] == "remediator-nonroot"]
    plain = {
        f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
        for one in bindings
        for subject in one["subjects"]
    }
    on_host = {account for account, pod in _pods() if pod.get("hostPID") or _has_folder_of_node(pod)}
    assert sorted(user for one in constraints() for user in one["users"]) == sorted(on_host)
    assert plain == {account for account, _ in _pods()} - on_host | hook_accounts()


@pytest.mark.parametrize("constraint", constraints(), ids=lambda one: one["metadata"]["name"])
def test_the_constraints_of_openshift_allow_what_one_of_their_pods_has_and_nothing_else(constraint: Object) -> None:
    pods = [pod for account, pod in _pods() if account in constraint["users"]]
    contexts = [container["securityContext"] for pod in pods for container in pod["containers"]]
    volumes = [volume for pod in pods for volume in pod.get("volumes", ())]
    allowed = {
        "allowPrivilegedContainer": any(context.get("privileged") for context in contexts),
        "allowHostNetwork": any(pod.get("hostNetwork") for pod in pods),
        "allowHostPID": any(pod.get("hostPID") for pod in pods),
        "allowHostIPC": any(pod.get("hostIPC") for pod in pods),
        "allowHostDirVolumePlugin": any("hostPath" in volume for volume in volumes),
        "readOnlyRootFilesystem": all(context.get("readOnlyRootFilesystem") for context in contexts),
    }
    assert {name: constraint[name] for name in allowed} == allowed
    added = {name for context in contexts for name in context.get("capabilities", {}).get("add", ())}
    assert set(constraint["allowedCapabilities"]) == added
    kinds = {next(iter(set(volume) - {"name"})) for volume in volumes}
    assert kinds | {"projected"} <= set(constraint["volumes"]), "a token is one, where a Pod has any"


@pytest.mark.parametrize("path", ["gke/quota.yaml", "openshift/scc.yaml"])
def test_what_the_page_says_of_other_namespaces_leaves_no_name_of_ours(path: str) -> None:
    """The command of the page, with its names: everything that it makes is of these two namespaces."""
    command = next(line for line in (ROOT / "docs/hosts.md").read_text().splitlines() if line.startswith("sed "))
    words = command.replace("openshift/scc.yaml", path).split()
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    made = list(yaml.load_all(done.stdout, yaml_files.LOADER))
    spaces = {one["metadata"]["namespace"] for one in made if "namespace" in one["metadata"]}
    accounts = {user.split(":")[2] for one in made for user in one.get("users", ())}
    accounts |= {subject["namespace"] for one in made for subject in one.get("subjects", ())}
    assert (spaces, accounts - spaces) == ({"gpu-repair", "gpu-operations"}, set())


def test_bottlerocket_gives_every_container_with_privileges_the_type_that_may_do_most() -> None:
    for one in applied("bottlerocket"):
        template = one.get("spec", {}).get("podTemplate") or one.get("spec", {}).get("template")
        for container in template["spec"]["containers"] if template else ():
            context = container.get("securityContext", {})
            if context.get("privileged") or context.get("capabilities", {}).get("add"):
                assert context["seLinuxOptions"]["type"] == "super_t", one["metadata"]["name"]
