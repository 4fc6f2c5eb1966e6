"""The Dockerfiles copy all that a manifest names and nothing else, and pin what the rest of the repository pins."""

import json
import re
from pathlib import Path

import pytest
import yaml

from deploy.images.programs import MODULES, PROGRAMS
from tests.kubelet.images.dockerfile import FOLDER, ROOT, image
from tests.kubelet.images.machine import tree

IMAGES = {name: image(name) for name in ("controller", "node")}
TEXTS = {name: (FOLDER / f"{name}.Dockerfile").read_text() for name in IMAGES}


def inside(name):
    """The paths of all files that an image has from the checkout."""
    copied = (tree(ROOT / source, target) for source, target in IMAGES[name].copy.items())
    return {file.path for files in copied for file in files}


def test_there_is_a_dockerfile_for_each_image_of_the_manifests():
    tags = yaml.safe_load((ROOT / "deploy" / "kustomization.yaml").read_text())["images"]
    assert {entry["name"] for entry in tags} == {found.repository for found in IMAGES.values()}
    assert {path.name for path in FOLDER.glob("*.Dockerfile")} == {f"{name}.Dockerfile" for name in IMAGES}


@pytest.mark.parametrize("name", IMAGES)
def test_docker_is_sent_all_that_is_copied_and_no_name_has_a_host(name):
    ignored = (FOLDER / f"{name}.Dockerfile.dockerignore").read_text().splitlines()
    sent = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(\S+)", TEXTS[name], re.MULTILINE)
    assert sorted(copied) == sorted(sent)
    assert all((ROOT / path).exists() for path in copied)
    assert ignored[0] == "*"
    bases = re.findall(r"^FROM (\S+)", TEXTS[name], re.MULTILINE)
    assert bases
    assert not any("." in base.partition("/")[0] for base in bases if "/" in base)


def test_no_image_holds_the_simulator_or_tests_and_each_holds_its_own_programs_only():
    folders = {name: {Path(path).parts[3] for path in inside(name) if path.startswith("/opt/")} for name in IMAGES}
    assert folders == {"controller": {"remediator"}, "node": {"nodelib", "detectors", "operations", "watchdog"}}


def test_both_images_stand_on_the_least_python_and_compile_all_that_they_copy():
    bases = {re.findall(r"^FROM (\S+)", text, re.MULTILINE)[-1] for text in TEXTS.values()}
    (least,) = re.findall(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert bases == {f"python:{least}-slim-bookworm"}
    assert all("compileall -q --invalidation-mode unchecked-hash /opt/remediator\n" in text for text in TEXTS.values())


def test_docker_builds_the_program_that_the_tests_build():
    program = PROGRAMS["node-problem-detector"]
    (source,) = re.findall(r"^COPY (\S+) \.$", TEXTS["node"], re.MULTILINE)
    assert ROOT / source == MODULES / program.module
    (build,) = re.findall(r"^RUN (CGO_ENABLED=0 go .*)$", TEXTS["node"], re.MULTILINE)
    flags = f'-mod=readonly -trimpath -ldflags "{program.ldflags}" -o /{program.name}'
    assert build == f"CGO_ENABLED=0 go build {flags} {program.package}"
    (go,) = re.findall(r"^FROM golang:(\d+\.\d+)-", TEXTS["node"], re.MULTILINE)
    (asked,) = re.findall(r"^go (\d+\.\d+)", (MODULES / program.module / "go.mod").read_text(), re.MULTILINE)
    assert tuple(map(int, asked.split("."))) <= tuple(map(int, go.split(".")))


def test_the_packages_of_the_node_image_are_pinned_as_everywhere():
    pinned = (FOLDER / "node.txt").read_text()
    assert pinned in (ROOT / "requirements-dev.txt").read_text(), "make requirements"
    assert set(IMAGES["node"].packages) == {"nvidia-ml-py"}


def test_the_node_image_has_every_program_that_a_manifest_names():
    wanted = {
        word
        for path in (*(ROOT / "operations").glob("*.yaml"), *(ROOT / "deploy/watchdog").glob("*.yaml"))
        for word in re.findall(r"/opt/[\w./]+\.py", path.read_text())
    }
    rules = [rule for path in (ROOT / "deploy/npd").glob("*.json") for rule in json.loads(path.read_text())["rules"]]
    assert len(rules) >= 6
    assert wanted | {rule["path"] for rule in rules} <= inside("node")
    daemon = next(yaml.safe_load_all((ROOT / "deploy/node-problem-detector.yaml").read_text()))
    (container,) = daemon["spec"]["template"]["spec"]["containers"]
    assert container["command"] == list(IMAGES["node"].command) == list(IMAGES["node"].programs)


def test_the_controller_image_has_the_command_that_its_deployment_runs():
    deployment = next(yaml.safe_load_all((ROOT / "deploy/controller.yaml").read_text()))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    controller = IMAGES["controller"]
    assert f"/usr/local/bin/{container['command'][0]}" in controller.copy.values()
    assert container["command"][: len(controller.command)] == list(controller.command)
    uid = deployment["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert controller.user.split(":")[0] == str(uid)
