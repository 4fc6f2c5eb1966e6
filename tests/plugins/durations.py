"""How long the tests of each file took, where whole files are handed out: kept for the next run, and told at the end.

It stands in the user's cache, beside the programs of the control plane, so that a fresh clone knows it, too.
"""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from deploy.images.programs import cache

TOLD = 12  # files


def path() -> Path:
    """The file of the user's cache."""
    return cache() / "durations.json"


def load() -> dict[str, float]:
    """The seconds by file, as the last run that had tests of it left them; empty where nothing can be read."""
    with suppress(OSError, ValueError, AttributeError):
        return {str(file): float(took) for file, took in json.loads(path().read_text()).items()}
    return {}


class Durations:
    """Adds up what the tests of each file took, with their fixtures, on whatever worker they ran."""

    def __init__(self) -> None:
        self._took: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of each phase of a test."""
        file = report.nodeid.partition("::")[0]
        self._took[file] = self._took.get(file, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Keep it; a cache that cannot be written is no failure of the tests."""
        with suppress(OSError):
            path().parent.mkdir(parents=True, exist_ok=True)
            new = path().with_suffix(".new")
            new.write_text(json.dumps(load() | {file: round(took, 1) for file, took in self._took.items()}))
            new.replace(path())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Which files took longest, and how long all would take one after another."""
        longest = sorted(self._took.items(), key=lambda item: -item[1])
        terminalreporter.section(f"{sum(self._took.values()):.0f} s of tests, the files that took longest")
        for file, took in longest[:TOLD]:
            terminalreporter.write_line(f"{took:6.0f} s  {file}")


def pytest_configure(config: pytest.Config) -> None:
    """In the process that hands out files, not in its workers."""
    if config.getoption("dist", "no") == "loadfile" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(), "durations-of-remediator")
