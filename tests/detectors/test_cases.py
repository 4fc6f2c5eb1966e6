"""Every detector on nodes made of files: what it says of a healthy one, a sick one, and one that it cannot judge."""

import os
import sys
from pathlib import Path

import pytest

from tests.detectors.conftest import DETECTORS
from tests.detectors.fixtures import all_cases
from tests.harness import node_programs

CASES = all_cases()
PROGRAMS = sorted(path.stem for path in DETECTORS.glob("[!_]*.py"))
COUNTS = ("device_inventory", "node_versions")  # that judge nothing: what they say is True, or cannot be told
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_detector_has_a_healthy_node_a_sick_one_and_one_that_it_cannot_judge(program):
    assert {case.verdict for case in CASES[program]} == ({1, 2} if program in COUNTS else {0, 1, 2})
    assert len({case.name for case in CASES[program]}) == len(CASES[program])


def judge(program, case, root, nvml_library, *, forked):
    """Run the detector over the files of a case, and hold what it says last against the case."""
    case.arrange(root)
    environment = {"PATH": PATH, **case.environment(root, nvml_library)}
    for now in case.runs:
        words = [str(DETECTORS / f"{program}.py"), *case.arguments(root, now)]
        finished = node_programs.run(words, environment, forked=forked)
        assert (finished.err, len(finished.out.splitlines()), finished.out.isascii()) == ("", 1, True), finished
    assert (finished.code, case.part in finished.out) == (case.verdict, True), finished


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("program", "case"),
    [pytest.param(program, case, id=f"{program}: {case.name}") for program in CASES for case in CASES[program]],
)
def test_a_detector_judges_a_node_made_of_files(program, case, tmp_path, nvml_library):
    judge(program, case, tmp_path, nvml_library, forked=True)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("program", "verdict"),
    [(program, verdict) for program in PROGRAMS for verdict in (0, 1, 2) if verdict or program not in COUNTS],
)
def test_a_detector_that_the_kernel_starts_judges_as_one_that_is_forked(program, verdict, tmp_path, nvml_library):
    case = next(case for case in CASES[program] if case.verdict == verdict)
    judge(program, case, tmp_path, nvml_library, forked=False)
