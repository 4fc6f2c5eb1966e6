"""Monitors as values: what the shipped files say, and how a demo changes them."""

import json
from pathlib import Path

import pytest

from remediator_sim.npd import Monitor, duration
from remediator_sim.npd.config import Default, Rule

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted((ROOT / "deploy/npd").glob("*.json"))


def monitor(*rules, **settings):
    rules = rules or (Rule("permanent", "A", "Bad", "/bin/true", ("--x",), timeout=40.0),)
    return Monitor("s", (Default("A", "Well", "fine"),), rules, **{"timeout": 45.0, **settings})


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_every_shipped_file_is_read_with_the_programs_of_this_checkout(path):
    read, written = Monitor.read(path, ROOT), json.loads(path.read_text())
    assert [rule.path for rule in read.rules] == [
        str(ROOT / "detectors" / f"{rule['args'][0]}.py") for rule in written["rules"]
    ]
    assert read.interval == duration.seconds(written["pluginConfig"]["invoke_interval"])
    assert read.skip_initial_status


def test_a_programs_path_outside_the_image_stays_as_it_is(tmp_path):
    file = tmp_path / "npd.json"
    rule = {"type": "permanent", "condition": "A", "reason": "Bad", "path": "/bin/true"}
    file.write_text(json.dumps({"plugin": "custom", "source": "s", "conditions": [{"type": "A"}], "rules": [rule]}))
    read = Monitor.read(file, tmp_path)
    assert read == Monitor("s", (Default("A", "", ""),), (Rule("permanent", "A", "Bad", "/bin/true"),))
    assert (read.interval, read.timeout, read.max_output, read.concurrency) == (30, 5, 80, 3)


def test_a_monitor_with_other_seconds_and_arguments_is_another_monitor():
    before = monitor()
    changed = before.with_(interval=2, timeout=20, args=["--proc=/tmp/p"])
    assert (changed.interval, changed.timeout, changed.rules[0].args) == (2, 20, ("--proc=/tmp/p",))
    assert changed.patience(changed.rules[0]) == 20  # the rule's own 40 s would be longer than the monitor's
    assert (before.interval, before.rules[0].args) == (30, ("--x",))


def test_what_is_not_changed_stays():
    assert monitor().with_(interval=2).rules == monitor().rules
    assert monitor().with_(args=()).timeout == 45


def test_an_interval_of_nothing_is_refused_wherever_it_comes_from():
    with pytest.raises(ValueError, match=r"pluginConfig\.invoke_interval must be longer than 0s"):
        monitor().with_(interval=0)


def test_no_concurrency_is_refused_though_the_real_one_takes_it_and_never_runs_anything():
    with pytest.raises(ValueError, match=r"pluginConfig\.concurrency must be 1 or more"):
        monitor(concurrency=0).check()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("1h1m1.5s", 3661.5),
        ("-2ms", -0.002),
        ("+.5s", 0.5),
        ("7.s", 7),
        ("3µs", 3e-6),
        ("3μs", 3e-6),
        ("9ns", 9e-9),
    ],
)
def test_a_duration_is_what_go_makes_of_it(text, seconds):
    assert duration.seconds(text) == pytest.approx(seconds, abs=1e-12)


@pytest.mark.parametrize("text", ["", "1", "s", ".s", "1d", "1 s", "1s ", "--1s", "1e3s", "1S", "۱s", "2562048h"])
def test_what_go_does_not_take_for_a_duration_is_refused(text):
    with pytest.raises(ValueError, match="duration"):
        duration.seconds(text)
