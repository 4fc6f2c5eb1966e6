"""The page about node-operation-controller names each of its 22 known bugs with a test that is there."""

import re

import pytest

from tests.contract.docs.pages import ROOT
from tests.contract.docs.test_tables import table

PAGE = "from-node-operation-controller.md"
ROWS = table(PAGE, "bug | theirs (v0.2.2) | here | test")


def test_each_of_the_22_bugs_has_a_row() -> None:
    assert [row[0] for row in ROWS] == [f"B{number}" for number in range(1, 23)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_a_test_that_exists(row: list[str]) -> None:
    ((path, name),) = re.findall(r"`(tests/\S+\.py)::(\w+)`", row[3])
    assert f"def {name}(" in (ROOT / path).read_text()


def test_the_page_shows_the_file_that_its_commands_read() -> None:
    example = (ROOT / "tests/remediator/kube/manifests/noc.yaml").read_text()
    assert f"```text\n{example}```" in (ROOT / "docs" / PAGE).read_text()
