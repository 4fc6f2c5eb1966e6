"""A sample is a fourth of the cases, and four commits in a row try them all."""

import subprocess
from pathlib import Path

import pytest

from tests.cluster.e2e.sample import SHARE, sampled, turn


@pytest.mark.parametrize("first", [0, 5, 1000])
def test_samples_in_a_row_have_each_case_once(first):
    items = list(range(45))
    samples = [sampled(items, number) for number in range(first, first + SHARE)]
    assert sorted(item for sample in samples for item in sample) == items
    assert {len(sample) for sample in samples} == {11, 12}


def test_the_number_of_commits_chooses_the_sample_and_the_environment_another(monkeypatch):
    monkeypatch.delenv("TURN", raising=False)
    command = ["git", "rev-list", "--count", "HEAD"]
    counted = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False).stdout
    assert turn() == int(counted or 0)
    monkeypatch.setenv("TURN", "3")
    assert turn() == 3
