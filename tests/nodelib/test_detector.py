"""What a run of any detector keeps, and that what cannot be kept costs no verdict on a fault."""

import argparse
import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nodelib.contract import detector as contract
from nodelib.contract.detector import Detector, Findings, Run, parser, perform
from nodelib.contract.memory import Scope
from nodelib.contract.npd import Verdict

OK, FAULT, UNKNOWN = Verdict
FULL = f"OSError: [Errno {errno.ENOSPC}] No space left on device"


class Count(NamedTuple):
    runs: int = 0


def says(verdict: Verdict, evidence: Callable[[], Mapping[str, Any]] | None = dict) -> Detector[Count]:
    """A detector that counts its runs and always says the same."""

    def check(run: Run[Count]) -> Findings:
        known = Count(run.last.runs + 1)
        return Findings(verdict, f"run {known.runs}", known, evidence, lambda: print("explained"))

    return Detector("counter", "Counted", check, Count)


@pytest.fixture
def options(tmp_path: Path) -> argparse.Namespace:
    """Options of a run on a node that is files."""
    return parser("").parse_args([f"--proc={tmp_path}", f"--state={tmp_path / 'state'}", "--now=1000"])


def files(options: argparse.Namespace) -> set[str]:
    return {path.relative_to(options.state).as_posix() for path in options.state.rglob("*.json")}


def test_a_run_leaves_its_memory_and_a_mark_and_at_a_fault_evidence(options: argparse.Namespace) -> None:
    assert [perform(options, says(OK)) for _ in range(2)] == [(OK, "run 1"), (OK, "run 2")]
    assert files(options) == {"counter.json", "marks/counter.json"}
    assert perform(options, says(FAULT)) == (FAULT, "run 3")
    assert files(options) == {"counter.json", "marks/counter.json", "evidence/counter.json"}


def test_evidence_is_of_the_first_sight_outlasts_doubt_and_goes_when_all_is_well(options: argparse.Namespace) -> None:
    path = options.state / "evidence/counter.json"
    for verdict, line in ((FAULT, "run 1"), (FAULT, "run 1"), (UNKNOWN, "run 1")):
        perform(options, says(verdict, lambda: {"gpus": [7]}))
        kept = json.loads(path.read_text())
        assert (kept["detector"], kept["condition"], kept["line"], kept["gpus"]) == ("counter", "Counted", line, [7])
    perform(options, says(OK))
    assert not path.exists()


@pytest.mark.parametrize("left", ["", '{"detector": "coun', "[]"])
def test_evidence_that_was_cut_is_written_anew(options: argparse.Namespace, left: str) -> None:
    path = options.state / "evidence/counter.json"
    path.parent.mkdir(parents=True)
    path.write_text(left)
    perform(options, says(FAULT))
    assert json.loads(path.read_text())["line"] == "run 1"


def test_a_run_by_hand_keeps_nothing(options: argparse.Namespace, capsys: pytest.CaptureFixture[str]) -> None:
    options.explain = True
    assert [perform(options, says(FAULT)) for _ in range(2)] == [(FAULT, "run 1")] * 2
    assert (capsys.readouterr().out, options.state.exists()) == ("explained\n" * 2, False)


def unreadable() -> Mapping[str, Any]:
    raise ValueError("a counter makes no sense")


@pytest.mark.parametrize("verdict", [OK, FAULT, UNKNOWN])
def test_evidence_that_cannot_be_had_or_written_costs_no_verdict(options: argparse.Namespace, verdict: Verdict) -> None:
    options.state.mkdir()
    (options.state / "evidence").write_text("a file where a folder should be")
    assert perform(options, says(verdict)) == (verdict, "run 1")
    (options.state / "evidence").unlink()
    assert perform(options, says(verdict, unreadable)) == (verdict, "run 2")


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("what", ["keep", "leave_mark"])
@pytest.mark.parametrize(
    ("verdict", "told"),
    [(OK, (UNKNOWN, FULL)), (FAULT, (FAULT, "run 1")), (UNKNOWN, (UNKNOWN, f"run 1; {FULL}"))],
)
def test_on_a_full_disk_a_fault_is_a_fault_and_health_is_cannot_tell(
    options: argparse.Namespace, monkeypatch: pytest.MonkeyPatch, what: str, verdict: Verdict, told: tuple[Verdict, str]
) -> None:
    monkeypatch.setattr(contract.memory if what == "keep" else contract, what, full)
    assert perform(options, says(verdict)) == told


class Seen(NamedTuple):
    bad: bool = False


@pytest.mark.parametrize(
    ("seconds", "scope", "verdict"),
    [
        (60.0, Scope.BOOT, FAULT),
        (300.0, Scope.BOOT, FAULT),
        (301.0, Scope.BOOT, UNKNOWN),
        (89_000.0, Scope.BOOT, UNKNOWN),
        (89_000.0, Scope.NODE, FAULT),  # what is known of the node whatever boots does not get old
    ],
)
def test_a_fault_that_rests_on_what_was_known_long_ago_is_cannot_tell(
    options: argparse.Namespace, monkeypatch: pytest.MonkeyPatch, seconds: float, scope: Scope, verdict: Verdict
) -> None:
    """Bad in two runs in a row is a fault; between them the state folder could not be written."""

    def check(run: Run[Seen]) -> Findings:
        return Findings(FAULT if run.last.bad else UNKNOWN, "bad", Seen(bad=True))

    twice = Detector("twice", "Twice", check, Seen, scope)
    perform(options, twice)
    monkeypatch.setattr(contract.memory, "keep", full)
    options.now += seconds
    assert perform(options, twice) == (verdict, "bad" if verdict is FAULT else f"bad; {FULL}")


def test_a_full_disk_costs_no_fault_that_was_seen_without_a_memory(
    options: argparse.Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract.memory, "keep", full)
    (options.state).mkdir()
    (options.state / "counter.json").write_text(json.dumps({"boot_id": "of before", "at": 1.0, "runs": 7}))
    assert perform(options, says(FAULT)) == (FAULT, "run 1")


def test_a_memory_that_does_not_say_when_it_was_kept_is_old(
    options: argparse.Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    options.state.mkdir()
    (options.state / "counter.json").write_text(json.dumps({"boot_id": "", "runs": 7}))
    monkeypatch.setattr(contract.memory, "keep", full)
    assert perform(options, says(FAULT)) == (UNKNOWN, f"run 8; {FULL}")


def test_a_run_that_fails_leaves_a_mark_and_the_memory_as_it_was(options: argparse.Namespace) -> None:
    perform(options, says(OK))

    def check(run: Run[Count]) -> Findings:
        raise ValueError(f"{run.last.runs} runs make no sense")

    with pytest.raises(ValueError, match=r"^1 runs make no sense$"):
        perform(options, Detector("counter", "Counted", check, Count))
    assert files(options) == {"counter.json", "marks/counter.json"}
    assert perform(options, says(OK)) == (OK, "run 2")
