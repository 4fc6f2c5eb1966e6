"""Each boundary of the threat model, and each danger of a repair, names tests, and they are there."""

import re

import pytest

from tests.contract.docs.test_tables import ROOT, table

BOUNDARIES = table("threat-model.md", "boundary | what holds it | test")
DANGERS = table("enforce.md", "danger | what Remediator does | test")


@pytest.mark.parametrize("row", BOUNDARIES + DANGERS, ids=lambda row: row[0])
def test_a_boundary_and_a_danger_name_their_tests_and_they_exist(row):
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", row[2])
    assert named
    assert len(named) == row[2].count("`") / 2
    assert [name for path, name in named if f"def {name}(" not in (ROOT / path).read_text()] == []


def test_no_boundary_and_no_danger_is_left_out():
    assert len(BOUNDARIES) > 10
    assert len(DANGERS) == 29


def test_most_dangers_are_held_by_tests_that_need_no_cluster():
    apart = ("tests/cluster/", "tests/kubelet/")
    assert [row[0] for row in DANGERS if all(path.startswith(apart) for path in re.findall(r"`(\S+)::", row[2]))] == []
