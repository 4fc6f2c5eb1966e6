"""Of one sort of warnings a log takes 50 lines in 10 seconds, whatever fails how often; of what was done, each."""

import ast
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog

from remediator import log_rate
from remediator.clock import Clock
from remediator.log_rate import MOST, MOST_SORTS, SECONDS, LogRate
from remediator.metrics import configure


class Written:
    """What a process writes to standard error as JSON, on a clock that the test sets."""

    def __init__(self, stderr: io.StringIO) -> None:
        self.seconds, self._stderr = 100.0, stderr
        configure("info", True, Clock(lambda: datetime.now(UTC), lambda: self.seconds))
        self.log = structlog.get_logger()

    def lines(self) -> list[dict[str, Any]]:
        """All of them."""
        return [json.loads(line) for line in self._stderr.getvalue().splitlines()]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    stderr, before = io.StringIO(), structlog.get_config()
    monkeypatch.setattr("sys.stderr", stderr)
    yield Written(stderr)
    structlog.configure(**before)


def test_of_1000_failures_50_are_told_and_the_last_and_the_next_one_say_what_is_missing(written: Written) -> None:
    for number in range(1000):
        written.log.error("one object failed; the others go on", key=number)
    assert [line["key"] for line in written.lines()] == list(range(MOST))
    assert [line["key"] for line in written.lines() if "limit" in line] == [MOST - 1]
    written.log.warning("another text")
    written.seconds += SECONDS
    written.log.error("one object failed; the others go on", key=1000)
    *_, other, newest = written.lines()
    assert (other["event"], newest["key"], newest["left_out"]) == ("another text", 1000, 1000 - MOST)


def test_what_was_decided_and_each_write_have_a_line_however_many_there_are(written: Written) -> None:
    for number in range(2 * MOST):
        written.log.info("case", name=number)
        written.log.warning("audit", name=number)
    assert len(written.lines()) == 4 * MOST


def test_what_is_said_once_has_its_line_however_many_there_are_and_takes_none_from_the_others(written: Written) -> None:
    """500 nodes of which each says it once; then 50 of the same text that may come again."""
    for number in range(10 * MOST):
        written.log.warning("a text", node=number, once=True)
    for number in range(2 * MOST):
        written.log.warning("a text", node=number, once=False)
    assert len(written.lines()) == 11 * MOST
    assert not any("once" in line for line in written.lines())


def test_an_object_that_changes_without_end_has_five_lines_and_takes_none_from_others(written: Written) -> None:
    for _ in range(1000):
        written.log.warning("ignoring an unhealthy condition", node="gpu-1", because="DetectorStale", once=True)
    written.log.warning("ignoring an unhealthy condition", node="gpu-2", because="DetectorStale", once=True)
    assert [line["node"] for line in written.lines()] == ["gpu-1"] * 5 + ["gpu-2"]
    written.seconds += SECONDS
    written.log.warning("ignoring an unhealthy condition", node="gpu-1", because="DetectorStale", once=True)
    assert written.lines()[-1]["left_out"] == 995


SAID_ONCE = {
    "an inventory expects what nothing counts",
    "ignoring an unhealthy condition",
    "object cannot be read",
    "post given up",
    "template not used",
    "the breaker on failures opens",
    "the result of an idle test cannot be kept",
}


def test_what_is_said_at_a_change_alone_is_marked_so() -> None:
    """Each stands behind a comparison with what was said before."""
    files = Path(log_rate.__file__).parent.rglob("*.py")
    sources = [source for file in files if ", once=" in (source := file.read_text())]
    calls = [node for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    marked = [call for call in calls if any(keyword.arg == log_rate.ONCE for keyword in call.keywords)]
    logged = [call for call in marked if isinstance(call.func, ast.Attribute) and call.func.attr in log_rate.LIMITED]
    assert {call.args[0].value for call in logged if isinstance(call.args[0], ast.Constant)} == SAID_ONCE


def test_of_too_many_texts_the_oldest_is_forgotten_and_no_other() -> None:
    """Text 3 has begun again since; text 0 is the oldest."""
    now = 1.0
    rate = LogRate(lambda: now)
    for number in range(MOST_SORTS):
        rate(None, "warning", {"event": f"text {number}"})
    now += SECONDS
    for _ in range(MOST):
        rate(None, "warning", {"event": "text 3"})
    rate(None, "warning", {"event": "one more"})
    assert [f"text {number}" in rate._sorts.begun for number in range(4)] == [False, True, True, True]
    with pytest.raises(structlog.DropEvent):
        rate(None, "warning", {"event": "text 3"})


def test_texts_without_end_are_not_kept() -> None:
    rate = LogRate(lambda: 1.0)
    for number in range(3 * MOST_SORTS):
        rate(None, "warning", {"event": f"text {number}"})
    assert len(rate._sorts.begun) <= MOST_SORTS
