"""The simulator as users get it: two wheels, installed where there is no checkout."""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
OURS = ("remediator", "remediator_sim", "_remediator", "__editable__")
SCENARIO = ("--only", "lost-gpu", "--nodes", "3", "--summary", "json")


def call(folder: Path, *words: str | Path, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a program in `folder`, with nothing of this process's environment that leads to the checkout."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env |= {"TMPDIR": str(folder), "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run([*map(str, words)], cwd=folder, env=env, capture_output=True, text=True, timeout=seconds)


def _others(folder: Path) -> Path:
    """A folder with all packages of this interpreter but ours, as links: what pip would download."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(OURS):
            (folder / path.name).symlink_to(path)
    return folder


def _environment(folder: Path, *options: str) -> Path:
    """The folder of programs of a virtual environment after `pip install` with these options."""
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(f"{_others(folder / 'others')}\n")
    python = folder / "venv/bin/python"
    done = call(folder, *PIP, f"--python={python}", "install", "--no-index", *options)
    assert (done.returncode, done.stderr) == (0, "")
    return python.parent


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs after `pip install --find-links dist 'remediator[sim]'`."""
    folder = tmp_path_factory.mktemp("installed")
    wheels = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder / "dist"))
    assert call(folder, *PIP, *wheels, ROOT, ROOT / "remediator_sim").stderr == ""
    return _environment(folder, "--find-links", str(folder / "dist"), "remediator[sim]")


def where(programs: Path, folder: Path, *code: str) -> Sequence[Path]:
    """What these expressions are, in a Python of that environment that has imported both packages."""
    lines = f"import remediator, remediator_sim.shipped as shipped; print({', '.join(code)}, sep='\\n')"
    return [Path(line) for line in call(folder, programs / "python", "-c", lines).stdout.split()]


@pytest.mark.sampled("installed")
def test_both_packages_and_all_that_is_shipped_come_from_the_wheels(installed: Path, tmp_path: Path) -> None:
    paths = where(installed, tmp_path, "remediator.__file__", "shipped.__file__", "shipped.folder()")
    assert len(paths) == 3
    assert all(path.is_relative_to(installed.parent) for path in paths)
    programs = ("detectors/gpu_ecc.py", "operations/reboot.py", "nodelib/__init__.py", "deploy/crds", "deploy/npd")
    assert [name for name in programs if not (paths[2] / name).exists()] == []


@pytest.mark.sampled("installed")
def test_a_checkout_that_is_installed_editable_runs_its_own_files(tmp_path: Path) -> None:
    options = ("--no-build-isolation", "--editable", str(ROOT), "--editable", str(ROOT / "remediator_sim"))
    programs = _environment(tmp_path, *options)
    assert where(programs, tmp_path, "remediator.__file__", "shipped.folder()") == [
        ROOT / "remediator/__init__.py",
        ROOT,
    ]
    assert "--only" in call(tmp_path, programs / "remediator", "demo", "--help").stdout


@pytest.mark.sampled("installed")
def test_the_wheel_of_the_product_holds_the_product_only(installed: Path, tmp_path: Path) -> None:
    (packages,) = (installed.parent / "lib").glob("python*/site-packages")
    (record,) = packages.glob("remediator-*.dist-info/RECORD")
    names = {line.split("/")[0] for line in record.read_text().splitlines()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"remediator", ".."}, ".. is bin/remediator"


@pytest.mark.sampled("installed")
@pytest.mark.timeout(240)
def test_a_fault_of_the_demo_is_repaired_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    done = call(tmp_path, installed / "remediator", "demo", *SCENARIO, seconds=200)
    assert done.returncode == 0, done.stderr[-4000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    assert [(fault["name"], fault["outcome"]) for fault in summary["faults"]] == [("lost-gpu", "Recovered")]
    assert summary["reboots"] == 1


def test_both_distributions_have_one_version_and_ask_for_each_other() -> None:
    product, simulator = (
        tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"] for name in (".", "remediator_sim")
    )
    assert product["version"] == simulator["version"]
    assert product["optional-dependencies"]["sim"] == [f"remediator-sim=={simulator['version']}"]
    assert f"remediator=={product['version']}" in simulator["dependencies"]
    assert not any("remediator-sim" in name for name in product["dependencies"])
