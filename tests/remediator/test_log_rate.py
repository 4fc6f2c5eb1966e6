"""Of one sort of warnings a log takes 50 lines in 10 seconds, whatever fails how often; of what was done, each."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

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


def test_texts_without_end_are_not_kept() -> None:
    rate = LogRate(lambda: 1.0)
    for number in range(3 * MOST_SORTS):
        rate(None, "warning", {"event": f"text {number}"})
    assert len(rate._windows) <= MOST_SORTS
