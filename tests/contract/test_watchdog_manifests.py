"""deploy/watchdog fits together: who holds the token, who holds privileges, and what may be ordered."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodelib.contract.order import DEEDS
from remediator.core import names
from remediator.core.watchdog_operations import WATCHDOG_OPERATIONS
from remediator.kube.manifests import lint
from tests.contract.test_programs import OPERATIONS, is_privileged, pod_spec
from tests.harness import yaml_files

FOLDER = Path(__file__).parents[2] / "deploy" / "watchdog"
POLICIES = FOLDER.parent / "policies"
FILES = [FOLDER / name for name in yaml_files.read(FOLDER / "kustomization.yaml")["resources"]]
OBJECTS: list[dict[str, Any]] = [each for path in FILES for each in yaml_files.read_all(path)]
(SPEC,) = (each["spec"]["template"]["spec"] for each in OBJECTS if each["kind"] == "DaemonSet")
TEMPLATES = {each["metadata"]["name"]: each["spec"] for each in OBJECTS if each["kind"] == "NodeOperationTemplate"}
PAGE = (Path(__file__).parents[2] / "docs" / "watchdog.md").read_text()


def container(name: str) -> dict[str, Any]:
    (found,) = (each for each in SPEC["containers"] if each["name"] == name)
    return found


def mounts(name: str) -> dict[str, bool]:
    """What a container mounts, and whether it may write there."""
    return {mount["name"]: not mount.get("readOnly", False) for mount in container(name)["volumeMounts"]}


def test_one_container_has_the_token_and_no_privileges_and_the_other_privileges_and_no_token() -> None:
    assert SPEC["automountServiceAccountToken"] is False
    sources = {volume["name"]: volume for volume in SPEC["volumes"]}
    assert {name for name, volume in sources.items() if "projected" in volume} == {"token"}
    assert mounts("take-orders") == {"token": False, "orders": True, "answers": False}
    assert mounts("carry-out") == {"orders": False, "answers": True, "proc": True, "run": True}
    token_side = container("take-orders")["securityContext"]
    assert token_side["runAsNonRoot"] is True
    assert token_side["allowPrivilegeEscalation"] is False
    assert token_side["capabilities"] == {"drop": ["ALL"]}
    assert not any("hostPath" in sources[name] for name in mounts("take-orders"))


def test_the_container_with_privileges_has_those_of_the_operations_that_it_does_and_no_more() -> None:
    of_operations = [pod_spec(OPERATIONS / name)["containers"][0] for name in ("restart_service.yaml", "reboot.yaml")]
    added = {word for each in of_operations for word in each["securityContext"]["capabilities"]["add"]}
    ours = container("carry-out")["securityContext"]
    assert set(ours["capabilities"]["add"]) == added
    assert {key: value for key, value in ours.items() if key != "capabilities"} == {
        key: value for key, value in of_operations[0]["securityContext"].items() if key != "capabilities"
    }
    paths = {mount["mountPath"] for each in of_operations for mount in each["volumeMounts"]}
    assert {mount["mountPath"] for mount in container("carry-out")["volumeMounts"]} == {*paths, "/orders", "/answers"}


def test_what_lies_between_the_containers_goes_with_the_boot() -> None:
    between = [volume for volume in SPEC["volumes"] if "emptyDir" in volume]
    assert {volume["name"] for volume in between} == {"orders", "answers"}
    assert {volume["emptyDir"]["medium"] for volume in between} == {"Memory"}


def test_the_page_tells_how_long_the_token_outlives_the_kubelet() -> None:
    (token,) = (volume for volume in SPEC["volumes"] if volume["name"] == "token")
    seconds = token["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"]
    assert (seconds, seconds // 5) == (24 * 3600, 4 * 3600 + 48 * 60)
    assert "4 h 48 min at least, and 24 h at most" in PAGE


def test_the_templates_are_the_operations_of_a_watchdog_and_name_their_programs() -> None:
    assert set(TEMPLATES) == set(DEEDS)
    for name, deed in DEEDS.items():
        spec = TEMPLATES[name]["podTemplate"]["spec"]
        assert TEMPLATES[name]["runOn"] == "Watchdog"
        assert spec["containers"][0]["command"][-1] == f"/opt/remediator/operations/{deed.program}"
        assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("remediator-host", False)
        assert not is_privileged(spec)


def test_a_reboot_by_the_watchdog_is_drained_for_and_believed_as_every_reboot() -> None:
    reboot = yaml_files.read(OPERATIONS / "reboot.yaml")["spec"]
    ours = TEMPLATES["reboot-by-watchdog"]
    assert [ours[word] for word in ("drain", "timeout", "success")] == [
        reboot[word] for word in ("drain", "timeout", "success")
    ]


def test_the_policy_in_the_page_is_the_shipped_one_of_its_name_with_another_ladder() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    shown = yaml.safe_load(block)
    shipped = yaml_files.read(POLICIES / f"{shown['metadata']['name']}.yaml")
    ladders = [[rung["operation"] for rung in policy["spec"].pop("ladder")] for policy in (shipped, shown)]
    assert shown == shipped
    assert ladders == [
        ["restart-service", "restart-service", "reboot"],
        ["restart-runtime", "restart-kubelet", "reboot-by-watchdog"],
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_its_manifests_pass_lint(path: Path) -> None:
    documents, findings = lint.read(path.name, path.read_text())
    assert [str(finding) for finding in [*findings, *lint.lint(documents)]] == []


def test_its_account_may_write_only_what_the_policy_narrows() -> None:
    roles = [each for each in OBJECTS if each["kind"] in ("Role", "ClusterRole")]
    rights = {
        f"{verb} {resource} {role['metadata'].get('namespace', '')}".strip()
        for role in roles
        for rule in role["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    space = names.OPERATIONS_NAMESPACE
    assert rights == {
        "get nodes",
        "get nodeoperations",
        f"list pods {space}",
        f"watch pods {space}",
        f"patch pods/status {space}",
    }
    (policy,) = (each["spec"] for each in OBJECTS if each["kind"] == "ValidatingAdmissionPolicy")
    assert names.WATCHDOG_SCHEDULER in policy["validations"][0]["expression"]
    (rule,) = policy["matchConstraints"]["resourceRules"]
    assert rule["resources"] == ["pods", "pods/status"]


def test_lint_knows_the_operations_of_a_watchdog_and_what_each_takes() -> None:
    assert {name: deed.allowed for name, deed in DEEDS.items()} == dict(WATCHDOG_OPERATIONS)
