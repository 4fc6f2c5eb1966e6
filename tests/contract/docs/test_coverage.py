"""The page about coverage: each fault has a Condition that tests try, or a reason why not and who has it."""

import re

import pytest

from tests.contract.docs.pages import ROOT
from tests.contract.docs.test_tables import table

ROWS = table("coverage.md", "fault | weight | Condition here | who else has it, and why we do not")
CONDITIONS = {cell for row in ROWS for cell in re.findall(r"`(\w+)`", row[2])}


def detectors() -> dict[str, str]:
    """The program of each Condition."""
    documents = {}
    for path in (ROOT / "detectors").glob("*.py"):
        for condition in re.findall(r"^\"\"\"Condition (\w+)", path.read_text(), flags=re.MULTILINE):
            documents[condition] = path.stem
    return documents


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_fault_has_a_condition_whose_fixtures_are_tried_or_a_reason_and_whoever_has_it(row: list[str]) -> None:
    fault, weight, conditions, elsewhere = row
    assert fault
    assert weight.split(" in ")[0] in ("very high", "high", "medium", "low")
    assert bool(conditions) != bool(elsewhere)
    assert not elsewhere or ";" in elsewhere, "who has it; why we do not"
    for condition in re.findall(r"`(\w+)`", conditions):
        program = detectors()[condition]
        assert (ROOT / "tests/detectors/fixtures" / f"{program}.py").exists(), program


def test_no_detector_is_left_out() -> None:
    assert set(detectors()) == CONDITIONS
