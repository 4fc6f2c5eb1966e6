"""The page about coverage: each fault has a Condition that tests try, or a reason why not and who has it."""

import re
from pathlib import Path

import pytest

from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.node_versions import NODE_DRIFT
from remediator.core.reboot_loop import REBOOT_LOOP
from remediator.core.stuck_pods import STUCK_PODS
from tests.contract.docs.pages import ROOT
from tests.contract.docs.test_tables import table

ROWS = table("coverage.md", "fault | weight | Condition here | who else has it, and why we do not")
WEIGHTS = ("very high", "high", "medium", "low")
# Those that the controller sets, with their own tests.
OF_CONTROLLER = {
    IDLE_TEST_FAILED: "tests/remediator/controller/test_idle_tests.py",
    NODE_DRIFT: "tests/remediator/controller/node_conditions/test_drifts.py",
    REBOOT_LOOP: "tests/remediator/controller/node_conditions/test_boots.py",
    STUCK_PODS: "tests/remediator/controller/node_conditions/test_stuck_pods.py",
}
CONDITIONS = {cell for row in ROWS for cell in re.findall(r"`(\w+)`", row[2])}


def detectors() -> dict[str, str]:
    """The program of each Condition."""
    documents = {}
    for path in (ROOT / "detectors").glob("*.py"):
        for condition in re.findall(r"^\"\"\"Condition (\w+)", path.read_text(), flags=re.MULTILINE):
            documents[condition] = path.stem
    return documents


def trials_of(condition: str) -> Path:
    """The nodes that it is tried on."""
    if condition in OF_CONTROLLER:
        return ROOT / OF_CONTROLLER[condition]
    return ROOT / "tests/detectors/fixtures" / f"{detectors()[condition]}.py"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_fault_has_a_condition_whose_fixtures_are_tried_or_a_reason_and_whoever_has_it(row: list[str]) -> None:
    fault, weight, conditions, elsewhere = row
    assert fault
    assert weight.split(" in ")[0] in WEIGHTS
    assert bool(conditions) != bool(elsewhere)
    assert not elsewhere or ";" in elsewhere, "who has it; why we do not"
    for condition in re.findall(r"`(\w+)`", conditions):
        assert trials_of(condition).exists(), condition


def test_the_heaviest_come_first() -> None:
    weights = [WEIGHTS.index(row[1].split(" in ")[0]) for row in ROWS]
    assert weights == sorted(weights)


def test_no_detector_is_left_out_nor_what_the_controller_alone_can_see() -> None:
    assert {*detectors(), *OF_CONTROLLER} == CONDITIONS
