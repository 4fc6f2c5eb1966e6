"""The second kube-scheduler of deploy/scheduler/second fits together: names, rights, configuration, what it mounts."""

from pathlib import Path
from typing import Any

import pytest

from remediator.core.kubernetes_version import Kubernetes
from remediator.scheduler.config.traps import traps
from remediator.scheduler.config.written import Wanted, written
from tests.harness import yaml_files

FOLDER = Path(__file__).parents[2] / "deploy" / "scheduler" / "second"
URL = "https://remediator-extender.remediator-system.svc:8443/scheduler"
KUBERNETES = Kubernetes(1, 34)
WRITTEN = {
    "scheduler-config.yaml": Wanted(KUBERNETES, url=URL, name="gpu"),
    "packing-config.yaml": Wanted(KUBERNETES, name="gpu", packs=True, asks=False),
}
KUSTOMIZATION = yaml_files.read(FOLDER / "kustomization.yaml")
OBJECTS: list[dict[str, Any]] = [
    each for name in KUSTOMIZATION["resources"] for each in yaml_files.read_all(FOLDER / name)
]
(DEPLOYMENT,) = (each for each in OBJECTS if each["kind"] == "Deployment")
SPEC = DEPLOYMENT["spec"]["template"]["spec"]
CONFIG = yaml_files.read(FOLDER / "scheduler-config.yaml")


@pytest.mark.parametrize("name", WRITTEN)
def test_each_configuration_is_what_the_command_writes_and_has_no_trap(name: str) -> None:
    assert (FOLDER / name).read_text() == written(WRITTEN[name])
    assert traps(yaml_files.read(FOLDER / name), KUBERNETES) == []


def test_the_plugin_alone_packs_from_empty_to_full() -> None:
    (profile,) = yaml_files.read(FOLDER / "packing-config.yaml")["profiles"]
    strategy = profile["pluginConfig"][0]["args"]["scoringStrategy"]
    assert strategy["type"] == "RequestedToCapacityRatio"
    shape = strategy["requestedToCapacityRatio"]["shape"]
    assert shape == [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def test_it_may_change_the_lease_that_its_configuration_names_and_no_other() -> None:
    (role,) = (each for each in OBJECTS if each["kind"] == "Role")
    (rule,) = role["rules"]
    assert rule["resourceNames"] == [CONFIG["leaderElection"]["resourceName"]] == ["gpu"]
    assert role["metadata"]["namespace"] == "kube-system", "where kube-scheduler keeps Leases"


def test_every_right_is_that_of_its_own_account() -> None:
    (account,) = (each for each in OBJECTS if each["kind"] == "ServiceAccount")
    assert SPEC["serviceAccountName"] == account["metadata"]["name"]
    bindings = [each for each in OBJECTS if "roleRef" in each]
    subject = {"kind": "ServiceAccount", **account["metadata"]}
    assert [each["subjects"] for each in bindings] == [[subject]] * 4
    assert {each["roleRef"]["name"] for each in bindings if each["kind"] == "ClusterRoleBinding"} == {
        "system:kube-scheduler",
        "system:volume-scheduler",
    }


def test_it_reads_the_configuration_and_the_certificate_where_they_are_mounted() -> None:
    (container,) = SPEC["containers"]
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert container["command"][-1] == f"--config={mounts['config']}/config.yaml"
    assert generated["files"] == ["config.yaml=scheduler-config.yaml"]
    config, shown = SPEC["volumes"]
    assert config["configMap"]["name"] == generated["name"]
    (extender,) = CONFIG["extenders"]
    assert {str(Path(extender["tlsConfig"][key]).parent) for key in ("caFile", "certFile", "keyFile")} == {
        mounts[shown["name"]]
    }


def test_its_pods_are_placed_by_the_schedulers_of_the_cluster() -> None:
    assert "schedulerName" not in SPEC
    (image,) = KUSTOMIZATION["images"]
    assert SPEC["containers"][0]["image"] == f"{image['name']}:{image['newTag']}"


def test_it_prefers_the_nodes_that_the_controller_prefers() -> None:
    """Its token may place and delete Pods of all users: root on a node of a tenant should not have it."""
    (controller,) = (
        each for each in yaml_files.read_all(FOLDER.parents[1] / "controller.yaml") if "replicas" in each["spec"]
    )
    theirs = controller["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    assert SPEC["affinity"]["nodeAffinity"] == theirs
