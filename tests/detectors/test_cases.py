"""Every detector on nodes made of files: what it says of a healthy one, a sick one, and one that it cannot judge."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.detectors.conftest import DETECTORS
from tests.detectors.fixtures import all_cases

CASES = all_cases()
PROGRAMS = sorted(path.stem for path in DETECTORS.glob("[!_]*.py"))
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_detector_has_a_healthy_node_a_sick_one_and_one_that_it_cannot_judge(program):
    assert {case.verdict for case in CASES[program]} == {0, 1, 2}
    assert len({case.name for case in CASES[program]}) == len(CASES[program])


@pytest.mark.parametrize(
    ("program", "case"),
    [pytest.param(program, case, id=f"{program}: {case.name}") for program in CASES for case in CASES[program]],
)
def test_a_detector_judges_a_node_made_of_files(program, case, tmp_path, nvml_library):
    case.arrange(tmp_path)
    environment = {"PATH": PATH, **case.environment(tmp_path, nvml_library)}
    for now in case.runs:
        done = subprocess.run(
            [str(DETECTORS / f"{program}.py"), *case.arguments(tmp_path, now)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment,
        )
    assert (done.returncode, case.part in done.stdout) == (case.verdict, True), done.stdout + done.stderr
    assert done.stdout.isascii()
    assert len(done.stdout.splitlines()) == 1
