"""Under `--dist loadscope` any worker takes any test, but the tests of a file that share one long run go to one worker.

Under `--dist loadfile` a worker takes whole files, and the tests of real nodes, of which a machine carries one set, go
to one worker. The mark `xdist_group` would say the same; pytest-xdist 3.8 writes it into a field that pytest 9.2 no
longer has.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling, LoadScopeScheduling

# Files whose tests look at one long run: the demo, the wheels that are built and installed, everything that the tables
# of cases and operations answer, the cluster that the commands of the pages are tried on. They start first.
SHARED = frozenset(
    {
        "tests/remediator_sim/scenarios/test_demo.py",
        "tests/remediator_sim/test_installed.py",
        "tests/remediator/core/test_case_table.py",
        "tests/remediator/tickets/test_states.py",
        "tests/contract/docs/test_commands.py",
    }
)

REAL_NODES = "tests/kubelet/"


def scope(nodeid: str) -> str:
    """What is kept together: the file, where it is one of `SHARED`, else the single test."""
    file = nodeid.partition("::")[0]
    return file if file in SHARED else nodeid


class OneWorker(LoadScopeScheduling):
    """Hands out scopes, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """Forgets scopes that are done: the base counts them all again after each test."""
        for name in [name for name, tests in workload.items() if all(tests.values())]:
            del workload[name]
        return sum(list(tests.values()).count(False) for tests in workload.values())


def file_scope(nodeid: str) -> str:
    """What is kept together where files are: the file, or all files of real nodes."""
    return REAL_NODES if nodeid.startswith(REAL_NODES) else nodeid.partition("::")[0]


class WholeFiles(LoadFileScheduling):
    """Hands out files, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        return file_scope(nodeid)


SCHEDULERS = {"loadscope": OneWorker, "loadfile": WholeFiles}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneWorker | WholeFiles | None:
    """The scheduler of these two ways to distribute; others are left to pytest-xdist."""
    scheduler = SCHEDULERS.get(config.getvalue("dist"))
    return scheduler(config, log) if scheduler else None
