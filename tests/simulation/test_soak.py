"""What many seeds have come to: kept in a file, and told at the end."""

import sys
from io import StringIO

import pytest
from rich.console import Console

from remediator_sim.simulation import __main__ as program
from remediator_sim.simulation import soak
from remediator_sim.simulation.seed import Verdict

GOOD = Verdict(1, (), (("I1", 3), ("I13", 0)), 1.5)
BAD = Verdict(2, ("I1: too many nodes",), (("I1", 2), ("I13", 0)), 1.5)


def summary(verdicts: list[Verdict]) -> str:
    results = soak.Results({verdict.seed: verdict for verdict in verdicts})
    console = Console(file=StringIO(), width=200)
    program._summarise(results, console)
    return console.file.getvalue()


def test_a_verdict_is_known_to_the_next_run_of_the_same_code_and_to_no_other(tmp_path, monkeypatch):
    path = tmp_path / "soak"
    soak.keep(path, GOOD)
    assert soak.load(path, range(1, 3)).verdicts == {1: GOOD}
    monkeypatch.setattr(soak, "code", lambda: "other")
    assert soak.load(path, range(1, 3)).verdicts == {}


def test_the_code_is_another_one_when_a_file_of_the_product_changes(tmp_path, monkeypatch):
    (tmp_path / "remediator").mkdir()
    monkeypatch.setattr(soak, "folder", lambda: tmp_path)
    codes = set()
    for text in ("A = 1", "A = 2"):
        (tmp_path / "remediator" / "a.py").write_text(text)
        codes.add(soak.code.__wrapped__())
    assert len(codes) == 2


def test_a_last_line_that_was_cut_off_costs_its_own_seed_only(tmp_path):
    path = tmp_path / "soak"
    soak.keep(path, GOOD)
    soak.keep(path, BAD)
    path.write_text(path.read_text()[:-20])
    assert soak.load(path, range(1, 3)).verdicts == {1: GOOD}
    soak.keep(path, BAD)
    assert soak.load(path, range(1, 3)).verdicts == {1: GOOD, 2: BAD}


def test_the_summary_names_each_failed_seed_with_the_command_that_repeats_it():
    lines = summary([GOOD, BAD])
    assert "seed 2: .venv/bin/python -m remediator_sim.simulation --first 2 --minimise" in lines
    assert "I1: too many nodes" in lines
    assert "seed 1:" not in lines


def test_the_summary_ends_with_what_a_seed_costs():
    spent = [Verdict(seed, (), (("I1", 1),), seed / 10) for seed in range(1, 21)]
    costs = "core-seconds of a seed: median 1.05, 90th percentile 1.80, most 2.00"
    assert summary(spent).splitlines()[-1] == f"20 seeds, 0 broken; {costs}"


def test_the_log_of_200_seeds_tells_at_each_twentieth_how_far_it_is():
    results, console = soak.Results(), Console(file=StringIO(), width=200)
    for seed in range(1, 61):
        results.verdicts[seed] = Verdict(seed, ("I1: too many",) if seed == 30 else (), (), 1.0)
        program._log(200, results, console)
    lines = ["20 of 200 seeds, 0 broken", "40 of 200 seeds, 1 broken", "60 of 200 seeds, 1 broken"]
    assert console.file.getvalue().splitlines() == lines


def test_of_the_verdicts_that_are_kept_only_those_of_the_seeds_asked_for_count(tmp_path):
    path = tmp_path / "soak"
    soak.keep(path, GOOD)
    soak.keep(path, BAD)
    assert soak.load(path, range(2, 9)).verdicts == {2: BAD}


@pytest.mark.parametrize(("seeds", "code"), [(40, 1), (39, 0)])
def test_a_run_of_40_good_seeds_that_put_i13_to_no_test_fails_and_one_of_39_does_not(
    tmp_path, monkeypatch, seeds, code
):
    path = tmp_path / "soak"
    for seed in range(1, 41):
        soak.keep(path, GOOD.__class__(seed, (), GOOD.checks, 1.0))
    monkeypatch.setattr(sys, "argv", ["simulation", "--seeds", str(seeds), "--state", str(path)])
    monkeypatch.setattr(program.cluster, "shipped_server", lambda: None)
    assert program.main() == code


def test_of_40_seeds_in_which_nothing_put_i13_to_the_test_the_summary_says_so_and_of_39_not():
    seeds = [GOOD.__class__(seed, (), GOOD.checks, 1.0) for seed in range(40)]
    assert "I13 never put to the test: no seed has reached it, so the run fails" in summary(seeds).splitlines()
    assert "never put to the test" not in summary(seeds[:39])
