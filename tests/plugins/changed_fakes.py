"""`--changed-fakes`: tests that hold the fakes to the real thing run only when the fakes, or these tests, have changed.

They are left out when the same files passed them before. The digest of those files stands in pytest's cache. In CI
(the variable CI) they always run.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.harness.sample import OPTION as SAMPLE
from tests.harness.sample import one_in, turn

ROOT = Path(__file__).parents[2]
KEY = "remediator/fakes"
OPTION = "--changed-fakes"
# What the fakes are made of, and what they share with the product: the wire, the types, schema and CEL.
FAKES = ("remediator_sim", "remediator/kube", "pyproject.toml")
# What holds them to the real thing.
TESTS = (
    "tests/contract/api",
    "tests/contract/kubelet",
    "tests/contract/npd",
    "tests/contract/test_nvml_standin.py",
    "tests/remediator_sim/apiserver",
    "tests/remediator_sim/github",
    "tests/remediator_sim/npd",
    "tests/remediator_sim/test_installed.py",
)


def digest(root: Path, parts: Iterable[str]) -> str:
    """One hash over the names and bytes of all files in these parts of `root`; what Python compiled is left out."""
    sums = hashlib.sha256()
    for path in sorted(path for part in parts for path in _files(root / part)):
        data = path.read_bytes()
        sums.update(f"{path.relative_to(root)} {len(data)}\n".encode() + data)
    return sums.hexdigest()


def _files(part: Path) -> list[Path]:
    files = part.rglob("*") if part.is_dir() else [part]
    return [path for path in files if path.is_file() and "__pycache__" not in path.parts]


class ChangedFakes:
    """Leaves `tests` out where `fakes` and they are what passed last; remembers what passes, where a run was whole."""

    def __init__(self, config: pytest.Config, root: Path, fakes: Iterable[str], tests: Iterable[str]) -> None:
        self._config, self._tests, self._failed = config, [root / test for test in tests], False
        self._digest = digest(root, [*fakes, *tests]) + _sample(config)
        self._root = root
        self.unchanged = not os.environ.get("CI") and config.cache.get(KEY, "") == self._digest

    def pytest_report_header(self) -> str:
        """One line on what is left out."""
        left_out = "left out: nothing of them has changed since they passed (CI=1 runs them)"
        return f"contracts of the fakes: {left_out if self.unchanged else 'run'}"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Do not even import them."""
        return True if self.unchanged and collection_path in self._tests else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One test that failed is enough."""
        path = self._root / report.fspath
        self._failed |= report.failed and any(path.is_relative_to(test) for test in self._tests)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """What could not be imported did not pass."""
        self._failed |= report.failed

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Remember what passed, whatever became of other tests; a run that was cut short says nothing."""
        ran_to_the_end = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if ran_to_the_end and not self._failed and not self.unchanged and _whole(self._config):
            self._config.cache.set(KEY, self._digest)


def _sample(config: pytest.Config) -> str:
    """Which of the samples runs, where not all cases do: another one has not passed yet."""
    share = one_in("rare")  # a multiple of the usual one
    return f" sample {turn() % share} of {share}" if config.getoption(SAMPLE, False) else ""


def _whole(config: pytest.Config) -> bool:
    """Whether this process sees all tests of the run, none of them chosen by name."""
    chosen = ("keyword", "file_or_dir", "deselect", "ignore", "ignore_glob", "lf", "maxfail", "collectonly")
    return not hasattr(config, "workerinput") and not any(config.getoption(name, None) for name in chosen)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that `make test` gives."""
    parser.addoption(OPTION, action="store_true", help="contracts of the fakes: only when something has changed")


def pytest_configure(config: pytest.Config) -> None:
    """Begin, where the option is given and pytest has a cache."""
    if config.getoption(OPTION) and hasattr(config, "cache"):
        config.pluginmanager.register(ChangedFakes(config, ROOT, FAKES, TESTS), "changed-fakes-of-remediator")
