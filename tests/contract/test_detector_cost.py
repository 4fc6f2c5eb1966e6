"""What the detectors of a node cost, in what no machine changes: runs a minute, and modules that a run imports."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from nodelib.state.slots import SHARES
from tests.bench.detectors import environment_of_pod
from tests.harness import yaml_files

ROOT = Path(__file__).resolve().parents[2]
MODULES = 68  # that a detector imports before it begins
# What they need besides: sockets to ask servers, a digest.
MORE = {"cni": 74, "device_inventory": 82, "dns": 75, "nfs_mount": 73, "nfs_server": 70, "runtime_health": 73}
RUNS_A_MINUTE = 21
IMPORTS_A_MINUTE = 1356
# That a run imports which the shared process makes: what reads the request, and the folders it lies in.
FIRST_STAGE = {
    "nodelib", "nodelib.state", "nodelib.state.slots", "nodelib.forks", "nodelib.forks.ask", "nodelib.forks.wire",
    "fcntl", "gc", "_socket",
}  # fmt: skip
FIRST_IMPORTS_A_MINUTE = 188
# Asks the shared process, which begins with nothing, and tells what was imported for that.
STAGE = """
import os, sys
sys.argv += ["--state=/dev/null"]
os.environ["SHARED_PROCESS"] = "yes"
path = sys.argv[1]
before = set(sys.modules)
sys.path.append(path)
from nodelib.state import slots
slots.take()
print(*sorted(set(sys.modules) - before))
"""
# Runs each detector as a fork of the shared process does, on a node without any file, and tells what it imports.
FORKS = """
import io, os, sys
root, state = sys.argv[1:]
sys.path.append(root)
from nodelib.forks.library import Library
from nodelib.forks.wire import Request
from nodelib.forks import run
library = Library()
for name in sorted(os.listdir(f"{root}/detectors")):
    if name.endswith(".py"):
        program = f"{root}/detectors/{name}"
        code, before = library.code(program), set(sys.modules)
        options = [name, *(f"--{word}={state}/{word}" for word in ("state", "proc", "sys", "dev"))]
        if not os.fork():
            end = os._exit
            def tell(code):
                print(name, *sorted(set(sys.modules) - before), file=sys.stderr, flush=True)
                end(0)
            os._exit = tell
            run._become(Request(program, "/", sys.executable, options, ["PATH="]), [os.dup(2), os.dup(2)], code)
            end(1)
        os.wait()
"""
UNITS = {"s": 1, "m": 60, "h": 3600}
IMPORTS = """
import sys
path = sys.argv[1]
before = set(sys.modules)
exec(compile(open(path).read(), path, "exec"), {"__name__": "imported", "__file__": path})
print(*sorted(set(sys.modules) - before))
"""


class Shipped(NamedTuple):
    """A detector as it is shipped; `interval` in seconds."""

    name: str
    condition: str
    interval: int


def shipped() -> list[Shipped]:
    """Every detector, by its monitor."""
    bodies = [json.loads(path.read_text()) for path in sorted((ROOT / "deploy/npd").glob("*.json"))]
    return [
        Shipped(
            body["rules"][0]["args"][0],
            body["rules"][0]["condition"],
            int(body["pluginConfig"]["invoke_interval"].removesuffix("s")),
        )
        for body in bodies
    ]


@cache
def imported(name: str) -> frozenset[str]:
    """The modules that a detector has imported when it begins, those of a bare interpreter left out."""
    command = [sys.executable, "-I", "-S", "-B", "-c", IMPORTS, str(ROOT / f"detectors/{name}.py")]
    return frozenset(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("detector", shipped(), ids=lambda detector: detector.name)
def test_a_detector_imports_at_most_68_modules_and_those_that_ask_a_server_few_more(
    detector: Shipped,
) -> None:
    assert len(imported(detector.name)) <= MORE.get(detector.name, MODULES)


@pytest.mark.parametrize(
    "name", ["gpu_busy", "gpu_ecc", "gpu_lost", "gpu_nvlink", "gpu_recovery", "gpu_throttled", "gpu_use"]
)
def test_who_is_told_what_the_child_of_another_detector_heard_of_nvml_pays_for_no_child(name: str) -> None:
    assert imported(name) & {"subprocess", "threading", "selectors", "ctypes"} == set()


@pytest.mark.slow
def test_40_detectors_run_21_times_a_minute_and_import_1356_modules() -> None:
    assert sum(60 / one.interval for one in shipped()) <= RUNS_A_MINUTE
    assert sum(60 / one.interval * len(imported(one.name)) for one in shipped()) <= IMPORTS_A_MINUTE


def test_a_run_that_the_shared_process_makes_imports_nine_modules_and_all_runs_188_a_minute() -> None:
    command = [sys.executable, "-I", "-S", "-B", "-c", STAGE, str(ROOT)]
    assert set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()) == FIRST_STAGE
    assert sum(60 / one.interval for one in shipped()) * len(FIRST_STAGE) <= FIRST_IMPORTS_A_MINUTE


def test_the_shipped_pod_has_its_runs_made_by_the_shared_process() -> None:
    assert environment_of_pod()[SHARES] == "yes"


def test_a_fork_of_the_shared_process_finds_all_that_it_needs_imported(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-B", "-c", FORKS, str(ROOT), str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    found = {
        words[0].removesuffix(".py"): words[1:] for line in told if (words := line.split()) if words[0][-3:] == ".py"
    }
    assert set(found) == {one.name for one in shipped()}
    assert {name: modules for name, modules in found.items() if modules} == {}


def test_a_detector_runs_at_least_once_in_what_a_policy_on_its_condition_calls_fresh() -> None:
    intervals = {one.condition: one.interval for one in shipped()}
    policies = [yaml_files.read(path)["spec"] for path in sorted((ROOT / "deploy/policies").glob("*.yaml"))]
    held = [
        (trigger["condition"], spec["verify"]["fresh"])
        for spec in policies
        for trigger in spec["when"]
        if "verify" in spec and trigger.get("condition") in intervals
    ]
    assert len(held) >= 15
    late = [pair for pair in held if intervals[pair[0]] >= int(pair[1][:-1]) * UNITS[pair[1][-1]]]
    assert late == []
