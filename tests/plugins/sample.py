"""`--sample`: of the cases of a test that is marked `sampled`, a sixth runs: another one at each commit, in CI half.

`sampled("NAME")` on several tests makes their cases those of one test. Of `sampled(rare=True)`, whose cases take a
processor for a second or longer, a twelfth runs, in CI half. Of `sampled(slow=True)`, whose cases take longer than
five seconds on a real server, a twelfth, in CI an eighth.
"""

import os
from collections.abc import Iterable, Mapping

import pytest

from tests.harness.sample import OPTION, SHARES, one_in, sampled, turn


class Sample:
    """Leaves out what is not in the sample of this number; `shares` says of each kind one case in how many is in it."""

    def __init__(self, number: int, shares: Mapping[str, int]) -> None:
        self._number, self._shares = number, shares

    def pytest_report_header(self) -> str:
        """One line on what is left out."""
        usual, rare, slow = (self._shares[kind] for kind in ("usual", "rare", "slow"))
        share = f"one case in {usual}, in {rare} of rare ones, in {slow} of slow ones"
        return f"of sampled tests: {share}, with TURN={self._number % max(rare, slow)} (SHARE=1 runs all)"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """After what other options leave out."""
        chosen = {item.nodeid for cases in _by_test(items) for item in sampled(cases, self._number, self._of(cases))}
        left_out = [item for item in items if _is_sampled(item) and item.nodeid not in chosen]
        if left_out:
            items[:] = [item for item in items if not _is_sampled(item) or item.nodeid in chosen]
            config.hook.pytest_deselected(items=left_out)

    def _of(self, cases: list[pytest.Item]) -> int:
        marks = [mark.kwargs for case in cases if (mark := case.get_closest_marker("sampled"))]
        kinds = (kind for kind in self._shares if all(mark.get(kind) for mark in marks))
        return self._shares[next(kinds, "usual")]


def _is_sampled(item: pytest.Item) -> bool:
    return item.get_closest_marker("sampled") is not None


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
    parser.addoption(OPTION, action="store_true", help="of tests that are marked sampled, try one in six, in CI in two")


def pytest_configure(config: pytest.Config) -> None:
    """Begin, where the option is given. All workers of a run take the same number."""
    if config.getoption(OPTION):
        os.environ["TURN"] = str(turn())
        sample = Sample(int(os.environ["TURN"]), {kind: one_in(kind) for kind in SHARES})
        config.pluginmanager.register(sample, "sample-of-remediator")
