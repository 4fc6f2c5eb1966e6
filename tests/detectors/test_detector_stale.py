"""detector_stale: a detector that stopped running is told of, one that has not had its turn is not."""

import json

import detector_stale
import pytest
from detector_stale import DETECTOR, judge, parse

from nodelib.contract.detector import perform
from nodelib.contract.npd import Verdict, leave_mark
from tests.detectors.node import run_detector

OK, FAULT, UNKNOWN = Verdict
ONE = {"gpu_lost": 60.0}
TWO = {"gpu_lost": 60.0, "nfs": 30.0}

CASES = {
    "a fresh mark": (ONE, {"gpu_lost": 900.0}, {}, OK, "every detector runs"),
    "a mark of exactly three intervals": (ONE, {"gpu_lost": 820.0}, {}, OK, ""),
    "a mark older than three intervals": (ONE, {"gpu_lost": 819.0}, {}, FAULT, "gpu_lost stopped running"),
    "each has its own interval": (TWO, {"gpu_lost": 880.0, "nfs": 880.0}, {}, FAULT, "DetectorStale: nfs stopped"),
    "no mark yet": (ONE, {}, {"gpu_lost": 990.0}, UNKNOWN, "gpu_lost not yet run since boot"),
    "no mark for three intervals": (ONE, {}, {"gpu_lost": 819.0}, FAULT, "gpu_lost stopped running"),
    "one stopped, one not yet run": (TWO, {"nfs": 100.0}, {"gpu_lost": 990.0}, FAULT, "nfs stopped running"),
    "both stopped, in order of name": (TWO, {"nfs": 1.0, "gpu_lost": 1.0}, {}, FAULT, "gpu_lost, nfs stopped"),
    "none declared": ({}, {}, {}, UNKNOWN, "no detector declared"),
}


@pytest.mark.parametrize(("intervals", "marks", "awaited", "verdict", "words"), CASES.values(), ids=CASES.keys())
def test_marks_become_a_verdict(intervals, marks, awaited, verdict, words):
    found, line = judge(intervals, marks, awaited, now=1000.0)
    assert found is verdict
    assert words in line


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the program at a time since boot and returns (exit code, line)."""
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("one\n")

    def run_at(now, *options):
        ours = ("--detector=gpu_lost=60", f"--state={tmp_path}", f"--proc={tmp_path / 'proc'}")
        return run_detector("detector_stale", f"--now={now}", *ours, *options)[:2]

    return run_at


def leave(tmp_path, finished_at, boot="one"):
    path = tmp_path / "marks/gpu_lost.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"detector": "gpu_lost", "finished_at": finished_at, "boot_id": boot}))


def test_a_detector_that_stops_is_told_of_after_three_intervals(run, tmp_path):
    leave(tmp_path, 100.0)
    assert run(280) == (OK, "every detector runs")
    assert run(281) == (FAULT, "DetectorStale: gpu_lost stopped running")


def test_after_a_boot_the_marks_of_the_last_boot_say_nothing(run, tmp_path):
    leave(tmp_path, 100.0, boot="the boot before")
    assert run(400)[0] == UNKNOWN
    assert run(400 + 180)[0] == UNKNOWN
    assert run(400 + 181)[0] == FAULT


def test_a_mark_from_the_future_says_nothing(run, tmp_path):
    leave(tmp_path, 5000.0)
    assert run(100)[0] == UNKNOWN


@pytest.mark.parametrize("mark", ["", "[]", "{", '{"finished_at": "soon", "boot_id": "one"}', "\x00"])
def test_a_mark_that_makes_no_sense_is_cannot_tell(run, tmp_path, mark):
    leave(tmp_path, 1.0)
    (tmp_path / "marks/gpu_lost.json").write_text(mark)
    assert run(100)[0] == UNKNOWN


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (150, (UNKNOWN, "nothing can be written to {} (Is a directory)")),
        (281, (FAULT, "nothing can be written to {} (Is a directory); DetectorStale: gpu_lost stopped running")),
    ],
)
def test_where_no_detector_can_leave_a_mark_that_is_told_with_the_folder(run, tmp_path, now, said):
    leave(tmp_path, 100.0)
    (tmp_path / "marks/trial.json").mkdir()
    assert run(now) == (said[0], said[1].format(tmp_path))
    assert run(now, "--explain")[0] == said[0]


def test_what_it_writes_to_see_whether_it_can_is_gone_after_the_run(run, tmp_path):
    leave(tmp_path, 100.0)
    assert run(150)[0] == OK
    assert sorted(path.name for path in (tmp_path / "marks").iterdir()) == ["detector_stale.json", "gpu_lost.json"]


def test_explain_tells_the_age_of_each_mark(run, tmp_path):
    leave(tmp_path, 100.0)
    assert "gpu_lost: every 60 s, finished 50 s ago" in run(150, "--explain")[1]


def test_a_detector_that_finishes_while_the_marks_are_judged_has_run(run, tmp_path, monkeypatch):
    leave(tmp_path, 940.0)

    def meanwhile(options):
        leave(tmp_path, 1000.2)  # it finishes right after the clock was read
        return 1000.0

    monkeypatch.setattr(detector_stale, "clock", meanwhile)
    options = parse(["--detector=gpu_lost=60", f"--state={tmp_path}", f"--proc={tmp_path / 'proc'}"])
    assert perform(options, DETECTOR) == (OK, "every detector runs")


def test_a_mark_is_never_later_than_the_run_that_left_it(tmp_path):
    leave_mark(tmp_path, "gpu_lost", 99.9996, "one")
    assert json.loads((tmp_path / "marks/gpu_lost.json").read_text())["finished_at"] <= 99.9996
