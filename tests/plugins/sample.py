"""`--sample`: of the cases of a test that is marked `sampled`, an eighth runs, in CI a third: others at each commit.

`sampled("NAME")` on several tests makes their cases those of one test. Of `sampled(rare=True)`, whose cases take a
processor for a second or longer, a sixteenth runs, in CI a third; of `sampled(on_server=True)`, whose cases take longer
than five seconds on a real server, a sixteenth, in CI an eighth. Tests that are marked `slow`, which take a processor
for a quarter of a second or longer, are cases of one test, of which an eighth runs, in CI all.
"""

import math
import os
from collections.abc import Iterable, Mapping

import pytest

from tests.harness.sample import OPTION, SHARES, one_in, sampled, turn

SLOW = "slow"  # the mark, the kind, and the name of all such tests together


class Sample:
    """Leaves out what is not in the sample of this number; `shares` says of each kind one case in how many is in it."""

    def __init__(self, number: int, shares: Mapping[str, int]) -> None:
        self._number, self._shares = number, shares

    def pytest_report_header(self) -> str:
        """One line on what is left out."""
        shares = ", ".join(f"{kind} 1/{share}" for kind, share in self._shares.items())
        return f"of sampled tests: {shares}, with TURN={self._number % math.lcm(*self._shares.values())} (SHARE=1: all)"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """After what other options leave out."""
        tests = _by_test(items)
        parts = {item.nodeid for cases in tests.values() for item in cases}
        chosen = {item.nodeid for cases in tests.values() for item in sampled(cases, self._number, self._of(cases))}
        others = parts - chosen
        if left_out := [item for item in items if item.nodeid in others]:
            items[:] = [item for item in items if item.nodeid not in others]
            config.hook.pytest_deselected(items=left_out)

    def _of(self, cases: list[pytest.Item]) -> int:
        marks = [mark.kwargs for case in cases if (mark := case.get_closest_marker("sampled"))]
        if not marks:
            return self._shares[SLOW]
        kinds = (kind for kind in self._shares if all(mark.get(kind) for mark in marks))
        return self._shares[next(kinds, "usual")]


def _by_test(items: Iterable[pytest.Item]) -> Mapping[str, list[pytest.Item]]:
    """The cases of each test that runs only in parts, in their order; slow tests are cases of one."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            test = mark.args[0] if mark.args else item.nodeid.partition("[")[0]
            cases.setdefault(test, []).append(item)
        elif item.get_closest_marker(SLOW):
            cases.setdefault(SLOW, []).append(item)
    return cases


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that `make test` gives."""
    parser.addoption(OPTION, action="store_true", help="try a part of the tests that are marked sampled or slow")


def pytest_configure(config: pytest.Config) -> None:
    """Begin, where the option is given. All workers of a run take the same number."""
    if config.getoption(OPTION):
        os.environ["TURN"] = str(turn())
        sample = Sample(int(os.environ["TURN"]), {kind: one_in(kind) for kind in SHARES})
        config.pluginmanager.register(sample, "sample-of-remediator")
