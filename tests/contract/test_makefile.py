"""The Makefile refuses what it cannot work with, before it makes or removes anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a make around this one hands down: with it, make prints more than it was asked for.
CLEAN = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
# A Python that says it runs on a Mac: make gives it `-c CODE`.
ELSEWHERE = """#!{python}
import sys
sys.platform = "darwin"
exec(sys.argv[2])
"""


def make(*args: str) -> tuple[int, str]:
    done = subprocess.run(["make", *args], cwd=ROOT, env=CLEAN, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def test_help_has_a_line_for_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z][a-z-]*):(?!=)", text, re.MULTILINE)
    done = subprocess.run(["make", "help"], cwd=ROOT, env=CLEAN, capture_output=True, text=True, timeout=60)
    lines = [re.fullmatch(r"  make (\S+) +(\S.*)", line) for line in done.stdout.splitlines()]
    assert [line and line[1] for line in lines] == targets
    (phony,) = re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    assert phony.split() == targets
    assert len(targets) > 10


@pytest.mark.parametrize(
    ("target", "markers"),
    [
        ("test", "not cluster and not gpu and not long"),
        ("test-cluster", "cluster and not long"),
        ("test-gpu", "gpu"),
        ("test-long", "long or (cluster and sampled)"),
    ],
)
def test_a_target_runs_the_tests_of_its_markers(target: str, markers: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, env=CLEAN, capture_output=True, text=True, timeout=60)
    runs = [line for line in done.stdout.splitlines() if "bin/pytest" in line]
    asked = [re.search(r' -m (?:"([^"]+)"|(\w+))', line) for line in runs]
    assert {found and (found[1] or found[2]) for found in asked} == {markers}


def test_make_test_is_one_run_that_leaves_out_unchanged_fakes_and_takes_samples_and_ci_leaves_out_nothing() -> None:
    done = subprocess.run(["make", "-n", "test"], cwd=ROOT, env=CLEAN, capture_output=True, text=True, timeout=60)
    (run,) = [line for line in done.stdout.splitlines() if "bin/pytest" in line]
    assert {"--changed-fakes", "--sample"} <= set(run.split())
    assert re.search(r"^export CI=true\b", (ROOT / ".ci/run").read_text(), re.MULTILINE)


def test_make_test_cluster_takes_samples_of_what_make_test_long_tries_whole() -> None:
    runs = {}
    for target in ("test-cluster", "test-long"):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, env=CLEAN, capture_output=True, text=True, timeout=60)
        (runs[target],) = [line.split() for line in done.stdout.splitlines() if "bin/pytest" in line]
    assert {target: "--sample" in run for target, run in runs.items()} == {"test-cluster": True, "test-long": False}


@pytest.mark.parametrize("fails", ["", "ruff", "mypy", "lint-imports", "pytest"])
def test_make_test_fails_where_a_check_or_a_test_does_and_what_the_checks_say_comes_last(
    fails: str, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("ruff", "mypy", "lint-imports", "pytest"):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\necho {name} has run\nexit {int(name == fails)}\n")
        program.chmod(0o755)
    (tmp_path / ".ready").touch()
    done = subprocess.run(["make", "test", f"VENV={tmp_path}"], cwd=ROOT, env=CLEAN, capture_output=True, text=True)
    ran = [line.removesuffix(" has run") for line in done.stdout.splitlines()]
    checks = ["ruff", "ruff", "mypy", "lint-imports"]
    assert ran == ["pytest", *checks[: checks.index(fails) + 1 if fails in checks else None]]
    assert (done.returncode == 0) is (not fails)


@pytest.mark.parametrize(("fails", "parts"), [("nothing", 3), ("soak", 3), ("test-cluster", 2), ("test", 1)])
def test_ci_says_last_how_long_each_part_took_that_ran_and_fails_where_one_does(
    fails: str, parts: int, tmp_path: Path
) -> None:
    program = tmp_path / "make"
    program.write_text(f'#!/bin/sh\necho "$CI $*"\n[ "$1" != {fails} ] || exit 2\n')
    program.chmod(0o755)
    env = {**CLEAN, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([ROOT / ".ci/run"], env=env, capture_output=True, text=True, timeout=60)
    ran, told = done.stdout.splitlines()[:parts], done.stdout.splitlines()[parts:]
    targets = ["test", "test-cluster", "soak SEEDS=200"][:parts]
    assert ran == [f"true {target}" for target in targets]
    last = 0 if fails == "nothing" else 2
    ended = [0] * (parts - 1) + [last]
    assert [re.sub(r"\d+ min \d+ s", "T", line) for line in told] == [
        f"make {target}: T, exit status {code}" for target, code in zip(targets, ended, strict=True)
    ]
    assert done.returncode == last


@pytest.mark.parametrize("folder", ["a b", "", " "])
def test_a_virtual_environment_is_one_folder_without_spaces(folder: str) -> None:
    code, said = make("-n", "clean", f"VENV={folder}")
    assert code == 2
    assert f'VENV is "{folder.strip()}": name one folder, without spaces' in said


def test_setup_on_another_system_than_linux_says_so(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(ELSEWHERE.format(python=sys.executable))
    python.chmod(0o755)
    code, said = make("setup", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}")
    assert code == 2
    assert "remediator needs Linux, and this is darwin; use a Linux machine or container" in said
    assert not (tmp_path / "venv").exists()
