"""The table of what is new in a release names what there is."""

import re
import tomllib
from pathlib import Path

import pytest

from remediator.core.new_criteria import TABLE, Criterion, asked
from remediator.core.policy import Clause
from remediator.core.runbooks import PAGES
from tests.builders import a_policy, when

ROOT = Path(__file__).resolve().parents[3]
AT_ONCE = {"CloudMaintenance"}  # what a release brings, too, and what is no row of the table


def test_each_row_names_a_condition_that_has_a_page_and_none_is_there_twice():
    assert {row.condition for row in TABLE} <= PAGES
    assert len({row.name for row in TABLE}) == len(TABLE) > 0


def test_a_planned_maintenance_is_acted_on_at_once_since_it_comes_before_a_period_would_be_over():
    assert AT_ONCE <= PAGES
    assert AT_ONCE.isdisjoint(row.condition for row in TABLE)
    assert asked(a_policy("cloud-maintenance", when(Clause("CloudMaintenance")))) == ()
    assert [row.name for row in asked(a_policy("kernel-fault", when(Clause("KernelFault"))))] == ["KernelFault"]


def test_the_page_of_what_is_new_names_each_criterion_and_what_acts_at_once():
    page = (ROOT / "docs/quiet.md").read_text()
    (line,) = re.findall(r"now they are the\s+Conditions ([^.]*)\.", page)
    assert re.findall(r"`(\w+)`", line) == [row.name for row in TABLE]
    assert all(f"`{condition}`" in page for condition in AT_ONCE)


def test_each_row_is_of_the_release_that_is_prepared_or_of_one_that_the_changelog_has():
    prepared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    released = re.findall(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert {row.release for row in TABLE} <= {prepared, *released}


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (Clause("A"), True),
        (Clause("A", reasons=frozenset({"new", "old"})), True),
        (Clause("A", reasons=frozenset({"old"})), False),
        (Clause("B"), False),
    ],
)
def test_a_policy_that_names_only_older_reasons_does_not_ask_for_a_new_one(clause, expected):
    assert Criterion("A", "1.0.0", reason="new").asked_by(clause) is expected
