"""A sample is an eighth of the cases, in CI a third: eight commits in a row, there three, try them all."""

import subprocess
from pathlib import Path

import pytest

from tests.harness.sample import SHARE, sampled, turn
from tests.plugins.changed_fakes import ROOT

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.sampled
@pytest.mark.parametrize("number", range(24))
def test_many(number): pass

@pytest.mark.sampled
@pytest.mark.parametrize("number", range(3))
def test_few(number): pass

@pytest.mark.sampled(rare=True)
@pytest.mark.parametrize("number", range(48))
def test_rare(number): pass

@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("number", range(32))
def test_on_a_server(number): pass

@pytest.mark.sampled("both")
@pytest.mark.parametrize("number", range(2))
def test_one(number): pass

@pytest.mark.sampled("both")
@pytest.mark.parametrize("number", range(2))
def test_other(number): pass

@pytest.mark.parametrize("number", range(8))
def test_whole(number): pass

@pytest.mark.slow
@pytest.mark.parametrize("number", range(15))
def test_slow(number): pass

@pytest.mark.slow
def test_slow_alone(): pass
"""


@pytest.mark.parametrize("first", [0, 5, 1000])
def test_samples_in_a_row_have_each_case_once(first):
    items = list(range(45))
    samples = [sampled(items, number) for number in range(first, first + SHARE)]
    assert sorted(item for sample in samples for item in sample) == items
    assert {len(sample) for sample in samples} == {5, 6}


def test_the_number_of_commits_chooses_the_sample_and_the_environment_another(monkeypatch):
    monkeypatch.delenv("TURN", raising=False)
    command = ["git", "rev-list", "--count", "HEAD"]
    counted = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False).stdout
    assert turn() == int(counted or 0)
    monkeypatch.setenv("TURN", "3")
    assert turn() == 3


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run a project of sampled tests and a whole one with this TURN; the cases that ran, by test."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("SHARE", raising=False)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_it=TESTS)

    def running(number: int, *options: str) -> dict[str, set[str]]:
        monkeypatch.setenv("TURN", str(number))
        done = pytester.inline_run("-p", "tests.plugins.sample", *options)
        ran: dict[str, set[str]] = {}
        for report in done.getreports("pytest_runtest_logreport"):
            if report.when == "call":
                name, _, case = report.nodeid.rpartition("::")[2].partition("[")
                ran.setdefault(name, set()).add(case.rstrip("]"))
        return ran

    return running


def numbers(count: int) -> set[str]:
    return {str(number) for number in range(count)}


@pytest.mark.slow
def test_a_sampled_test_runs_an_eighth_of_its_cases_of_few_one_and_eight_turns_run_each(run):
    turns = [run(number, "--sample") for number in range(8, 16)]
    assert {(len(ran["test_many"]), len(ran["test_few"]), len(ran["test_whole"])) for ran in turns} == {(3, 1, 8)}
    assert set().union(*(ran["test_many"] for ran in turns)) == numbers(24)
    assert set().union(*(ran["test_few"] for ran in turns)) == numbers(3)


@pytest.mark.slow
def test_of_rare_cases_a_sixteenth_runs_so_that_sixteen_turns_run_each_and_in_ci_a_third_of_them(run, monkeypatch):
    turns = [run(number, "--sample")["test_rare"] for number in range(8, 24)]
    assert {len(ran) for ran in turns} == {3}
    assert set().union(*turns) == numbers(48)
    monkeypatch.setenv("CI", "true")
    assert [len(run(number, "--sample")["test_rare"]) for number in range(8, 11)] == [16, 16, 16]


def test_of_cases_that_are_slow_on_a_server_a_sixteenth_runs_and_in_ci_an_eighth(run, monkeypatch):
    assert [len(run(number, "--sample")["test_on_a_server"]) for number in range(2)] == [2, 2]
    monkeypatch.setenv("CI", "true")
    turns = [run(number, "--sample")["test_on_a_server"] for number in range(8, 16)]
    assert [len(ran) for ran in turns] == [4] * 8
    assert set().union(*turns) == numbers(32)


def test_of_all_slow_tests_an_eighth_runs_and_in_ci_all(run, monkeypatch):
    turns = [run(number, "--sample") for number in range(8)]
    assert [len(ran.get("test_slow", ())) + len(ran.get("test_slow_alone", ())) for ran in turns] == [2] * 8
    assert set().union(*(ran.get("test_slow", set()) for ran in turns)) == numbers(15)
    monkeypatch.setenv("CI", "true")
    ran = run(5, "--sample")
    assert (ran["test_slow"], len(ran["test_slow_alone"])) == (numbers(15), 1)


@pytest.mark.slow
def test_tests_that_are_sampled_under_one_name_share_the_sample(run):
    ran = [run(number, "--sample") for number in range(4)]
    assert [{name: one[name] for name in ("test_one", "test_other") if name in one} for one in ran] == [
        {"test_one": {"0"}},
        {"test_one": {"1"}},
        {"test_other": {"0"}},
        {"test_other": {"1"}},
    ]


def test_in_ci_a_third_of_the_cases_runs(run, monkeypatch):
    monkeypatch.setenv("CI", "true")
    turns = [run(number, "--sample") for number in range(8, 11)]
    assert [len(ran["test_many"]) for ran in turns] == [8, 8, 8]
    assert set().union(*(ran["test_many"] for ran in turns)) == numbers(24)


@pytest.mark.slow
def test_without_the_option_and_with_a_share_of_one_every_case_runs(run, monkeypatch):
    both = {"test_one": numbers(2), "test_other": numbers(2)}
    every = {"test_many": numbers(24), "test_few": numbers(3), "test_whole": numbers(8), **both}
    every |= {"test_rare": numbers(48), "test_slow": numbers(15), "test_slow_alone": {""}}
    every |= {"test_on_a_server": numbers(32)}
    assert run(1) == every
    monkeypatch.setenv("SHARE", "1")
    assert run(1, "--sample") == every
