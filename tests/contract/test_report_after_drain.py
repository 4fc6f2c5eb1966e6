"""The patch by which a bundle is kept once a node is drained, applied to the templates that it is for."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from remediator.kube.manifests import lint
from tests.harness import yaml_files

ROOT = Path(__file__).parents[2]
(SHIPPED,) = yaml_files.read(ROOT / "deploy/examples/report-after-drain/kustomization.yaml")["patches"]
PATCH = yaml_files.parsed(SHIPPED["patch"])
COLLECT = yaml_files.read(ROOT / "operations/collect_diagnostics.yaml")
LOSE_EVIDENCE = ("reboot", "reload_driver", "reset_gpu")
Object = dict[str, Any]


def patched(name: str) -> Object:
    """The shipped template of an operation with the patch (RFC 6902, of which it needs `add` and `replace`)."""
    assert name.replace("_", "-") in SHIPPED["target"]["name"].split("|")
    template: Object = deepcopy(yaml_files.read(ROOT / f"operations/{name}.yaml"))
    for step in PATCH:
        *way, last = step["path"].strip("/").split("/")
        place: Any = template
        for key in way:
            place = place[key]
        assert (step["op"] == "replace") == (last in place), "a replacement replaces, an addition adds"
        if last == "-":
            place.append(step["value"])
        else:
            place[last] = step["value"]
    return template


def mounts(spec: Object, container: Object) -> dict[str, tuple[Object, bool]]:
    """What of the node a container sees, by the path at which it sees it."""
    volumes = {volume["name"]: volume["hostPath"] for volume in spec["volumes"]}
    assert len(volumes) == len(spec["volumes"]), "each name once"
    return {
        mount["mountPath"]: (volumes[mount["name"]], mount.get("readOnly", False))
        for mount in container["volumeMounts"]
    }


@pytest.mark.parametrize("name", LOSE_EVIDENCE)
def test_what_collects_sees_of_the_node_what_it_sees_before_the_drain_and_holds_nothing_up(name: str) -> None:
    spec = patched(name)["spec"]["podTemplate"]["spec"]
    own = COLLECT["spec"]["podTemplate"]["spec"]
    (before,), (collects,) = spec["initContainers"], own["containers"]
    assert mounts(spec, before) == mounts(own, collects)
    assert {key: before[key] for key in ("image", "env", "securityContext")} == {
        key: collects[key] for key in ("image", "env", "securityContext")
    }
    assert before["command"] == ["sh", "-c", f"{' '.join(collects['command'])} || true"]
    assert {key: own[key] for key in ("hostPID", "hostNetwork", "serviceAccountName")} == {
        key: spec[key] for key in ("hostPID", "hostNetwork", "serviceAccountName")
    }


@pytest.mark.parametrize("name", LOSE_EVIDENCE)
def test_the_operation_is_the_same_behind_it_and_has_its_three_minutes_more(name: str) -> None:
    shipped, template = yaml_files.read(ROOT / f"operations/{name}.yaml"), patched(name)
    assert template["spec"]["podTemplate"]["spec"]["containers"] == shipped["spec"]["podTemplate"]["spec"]["containers"]
    assert template["spec"]["drain"]["strategy"] == "Evict", "a GPU in use gives no report"
    assert minutes(template) >= minutes(shipped) + minutes(COLLECT)
    documents = [(name, template), ("after", yaml_files.read(ROOT / "operations/restart_device_plugin.yaml"))]
    assert [str(finding) for finding in lint.lint(documents)] == []


def minutes(template: Object) -> int:
    """The timeout of a template."""
    text = template["spec"]["timeout"]
    assert text.endswith("m")
    return int(text.removesuffix("m"))
