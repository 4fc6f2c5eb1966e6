"""`--sample`: of the cases of a test that is marked `sampled`, an eighth runs, in CI a third: others at each commit.

`sampled("NAME")` on several tests makes their cases those of one test. Of `sampled(rare=True)`, whose cases take a
processor for a second or longer, a sixteenth runs, in CI a third. Tests that are marked `slow`, which take a processor
for a quarter of a second or longer, are cases of one test, of which in CI all run.
"""

import math
import os
from collections.abc import Iterable

import pytest

from tests.harness.sample import OPTION, one_in, one_slow_in, sampled, turn


class Sample:
    """Leaves out what is not in the sample of this number."""

    def __init__(self, number: int, share: int, rare: int, slow: int) -> None:
        self._number, self._share, self._rare, self._slow = number, share, rare, slow

    def pytest_report_header(self) -> str:
        """One line on what is left out."""
        share = f"one case in {self._share}, in {self._rare} of rare ones; of slow tests one in {self._slow}"
        turn = self._number % math.lcm(self._share, self._rare, self._slow)
        return f"of sampled tests: {share}, with TURN={turn} (SHARE=1 runs all)"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """After what other options leave out."""
        chosen = {item.nodeid for cases in _by_test(items) for item in sampled(cases, self._number, self._of(cases))}
        chosen |= {
            item.nodeid for item in sampled([item for item in items if _is_slow(item)], self._number, self._slow)
        }
        left_out = [item for item in items if _is_part(item) and item.nodeid not in chosen]
        if left_out:
            items[:] = [item for item in items if not _is_part(item) or item.nodeid in chosen]
            config.hook.pytest_deselected(items=left_out)

    def _of(self, cases: list[pytest.Item]) -> int:
        marks = (case.get_closest_marker("sampled") for case in cases)
        return self._rare if all(mark and mark.kwargs.get("rare") for mark in marks) else self._share


def _is_sampled(item: pytest.Item) -> bool:
    return item.get_closest_marker("sampled") is not None


def _is_slow(item: pytest.Item) -> bool:
    return not _is_sampled(item) and item.get_closest_marker("slow") is not None


def _is_part(item: pytest.Item) -> bool:
    """Whether it runs only in some samples."""
    return _is_sampled(item) or _is_slow(item)


def _by_test(items: Iterable[pytest.Item]) -> Iterable[list[pytest.Item]]:
    """The cases of each test, in their order."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            test = mark.args[0] if mark.args else item.nodeid.partition("[")[0]
            cases.setdefault(test, []).append(item)
    return cases.values()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that `make test` gives."""
    parser.addoption(OPTION, action="store_true", help="try a part of the tests that are marked sampled or slow")


def pytest_configure(config: pytest.Config) -> None:
    """Begin, where the option is given. All workers of a run take the same number."""
    if config.getoption(OPTION):
        os.environ["TURN"] = str(turn())
        config.pluginmanager.register(
            Sample(int(os.environ["TURN"]), one_in(), one_in(rare=True), one_slow_in()), "sample-of-remediator"
        )
