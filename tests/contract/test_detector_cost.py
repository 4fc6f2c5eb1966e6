"""What the detectors of a node cost, in what no machine changes: runs a minute, and modules that a run imports."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness import yaml_files

ROOT = Path(__file__).resolve().parents[2]
MODULES = 68  # that a detector imports before it begins
# What they need besides: sockets to ask servers, a digest.
MORE = {"cni": 74, "device_inventory": 82, "dns": 75, "nfs_mount": 73, "nfs_server": 70, "runtime_health": 73}
RUNS_A_MINUTE = 20
IMPORTS_A_MINUTE = 1300
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
            Path(body["rules"][0]["path"]).stem,
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


@pytest.mark.parametrize("name", ["gpu_busy", "gpu_ecc", "gpu_lost", "gpu_nvlink", "gpu_recovery", "gpu_throttled"])
def test_who_is_told_what_the_child_of_another_detector_heard_of_nvml_pays_for_no_child(name: str) -> None:
    assert imported(name) & {"subprocess", "threading", "selectors", "ctypes"} == set()


@pytest.mark.slow
def test_36_detectors_run_20_times_a_minute_and_import_1300_modules() -> None:
    assert sum(60 / one.interval for one in shipped()) <= RUNS_A_MINUTE
    assert sum(60 / one.interval * len(imported(one.name)) for one in shipped()) <= IMPORTS_A_MINUTE


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
