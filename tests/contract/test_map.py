"""The maps of README and CONTRIBUTING show the tree as it is, and the versions in README are the pinned ones."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from deploy.images import programs
from deploy.images.programs import MODULES
from remediator_sim.apiserver import version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
README, CONTRIBUTING = (ROOT / "README.md").read_text(), (ROOT / "CONTRIBUTING.md").read_text()


def entries(page: str) -> list[str]:
    """The first word of each line of the map of a page."""
    (drawn,) = re.findall(r"^## Where things are\n\n```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [line.split()[0] for line in drawn.splitlines()]


def folders(depth: int) -> set[str]:
    """The folders so deep in the repository that hold a file that git knows; the hidden ones left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    parts = [Path(name).parts for name in files if not name.startswith(".")]
    return {f"{'/'.join(part[:depth])}/" for part in parts if len(part) > depth}


@pytest.mark.parametrize("page", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_what_a_map_names_is_there(page: str) -> None:
    names = entries(page)
    assert len(names) == len(set(names))
    assert [name for name in names if not (ROOT / name).exists()] == []
    assert [name for name in names if (ROOT / name).is_dir() and not name.endswith("/")] == []


@pytest.mark.parametrize("page", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_a_map_has_every_folder_of_the_repository(page: str) -> None:
    assert {f"{name.partition('/')[0]}/" for name in entries(page) if "/" in name} == folders(1)


def test_the_map_of_contributors_has_every_package_of_the_product() -> None:
    packages = {f"remediator/{path.parent.name}/" for path in (ROOT / "remediator").glob("*/__init__.py")}
    assert {name for name in entries(CONTRIBUTING) if name.startswith("remediator/")} == packages


def test_the_map_of_contributors_has_every_folder_of_tests_that_is_not_named_after_what_it_tests() -> None:
    named_after = {f"tests/{name}" for name in folders(1)}
    tests = {name for name in folders(2) if name.startswith("tests/")}
    assert {name for name in entries(CONTRIBUTING) if name.startswith("tests/")} == tests - named_after


def test_the_map_of_readme_opens_with_what_a_reader_looks_for_first() -> None:
    assert entries(README)[:6] == ["pyproject.toml", "remediator/", "detectors/", "operations/", "deploy/", "tests/"]
    assert re.findall(r"There is a `(\w+)/`\s+because", README) == ["nodelib", "remediator_sim"]


def test_the_layers_that_contributors_read_are_those_that_import_linter_holds() -> None:
    (contract,) = [found for found in PROJECT["tool"]["importlinter"]["contracts"] if found["type"] == "layers"]
    (line,) = re.findall(r"Imports point down only: `([^`]+)`", CONTRIBUTING)
    assert line.split(" → ") == contract["layers"]


def test_the_versions_that_readme_names_are_the_pinned_ones() -> None:
    cells = dict(re.findall(r"^\| (\w[^|]*?) \| (.*) \|$", README, re.MULTILINE))
    pinned = {
        "Kubernetes": ("kubernetes", r"^\tk8s.io/kubernetes v(\S+)"),
        "node-problem-detector": ("node-problem-detector", r"^\tk8s.io/node-problem-detector v(\S+)"),
    }
    for name, (module, pattern) in pinned.items():
        (version,) = re.findall(pattern, (MODULES / module / "go.mod").read_text(), re.MULTILINE)
        assert cells[name].endswith(f"| {version}"), name
    payloads = {path.name.split("-")[0].removeprefix("am") for path in (ROOT / "tests").rglob("am*-*.json")}
    assert set(re.findall(r"\d+\.\d+\.\d+", cells["Alertmanager"])) == payloads
    (python,) = [text for name, text in cells.items() if name.startswith("Python")]
    assert f">={python.split(',')[0]}" == PROJECT["project"]["requires-python"]


def test_simulated_nodes_and_the_embedded_server_say_the_version_of_kubernetes_that_is_built():
    assert version.KUBERNETES == programs.KUBERNETES == programs.pinned("kubernetes", "k8s.io/kubernetes")
    with pytest.raises(ValueError, match=r"kubernetes/go.mod: pins no k8s.io/nothing"):
        programs.pinned("kubernetes", "k8s.io/nothing")
