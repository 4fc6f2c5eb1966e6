"""Under `--dist loadscope` any worker takes any test, but the tests of a file that share one long run go to one worker.

The mark `xdist_group` would say the same; pytest-xdist 3.8 writes it into a field that pytest 9.2 no longer has.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# Files whose tests look at one long run: the demo, the wheels that are built and installed, everything that the tables
# of cases and operations answer. They start first.
SHARED = frozenset(
    {
        "tests/remediator_sim/scenarios/test_demo.py",
        "tests/remediator_sim/test_installed.py",
        "tests/remediator/core/test_case_table.py",
    }
)


def scope(nodeid: str) -> str:
    """What is kept together: the file, where it is one of `SHARED`, else the single test."""
    file = nodeid.partition("::")[0]
    return file if file in SHARED else nodeid


class OneWorker(LoadScopeScheduling):
    """Hands out scopes, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneWorker | None:
    """The scheduler of `--dist loadscope`; others are left to pytest-xdist."""
    return OneWorker(config, log) if config.getvalue("dist") == "loadscope" else None
