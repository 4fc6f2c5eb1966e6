"""Every boundary of the threat model names tests, and they are there."""

import re

import pytest

from tests.contract.docs.test_tables import ROOT, table

ROWS = table("threat-model.md", "boundary | what holds it | test")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_boundary_names_its_tests_and_they_exist(row):
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", row[2])
    assert named
    assert [name for path, name in named if f"def {name}(" not in (ROOT / path).read_text()] == []


def test_there_is_more_than_one_boundary():
    assert len(ROWS) > 10
