"""A test that failed for want of time passes alone; one that fails again, or fails with many others, fails."""

import sys

import pytest

from tests.again import CACHE, MOST, main

pytest_plugins = ["pytester"]

UNSTEADY = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({failing}))
def test_it(number):
    tried = Path(__file__).with_name(f"tried-{{number}}")
    assert tried.exists() or tried.touch()

def test_fine(): pass
"""
BROKEN = "def test_broken(): assert 1 == 2"


def run(pytester: pytest.Pytester, **modules: str) -> int:
    """One run that fails, and what then becomes of it."""
    pytester.makepyfile(**modules)
    first = pytester.run(sys.executable, "-m", "pytest", "-o", f"cache_dir={CACHE}")
    assert first.ret == 1
    return main([], pytester.path)


def test_what_passes_alone_is_named_and_no_failure(pytester, capfd):
    assert run(pytester, test_some=UNSTEADY.format(failing=MOST)) == 0
    said = capfd.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("UNSTEADY")] == [
        f"UNSTEADY: failed beside others, passed alone: test_some.py::test_it[{number}]" for number in range(MOST)
    ]
    assert f"{MOST} passed" in said  # and nothing that passed before runs again


def test_what_fails_again_is_a_failure(pytester, capfd):
    assert run(pytester, test_some=UNSTEADY.format(failing=1), test_other=BROKEN) == 1
    assert "UNSTEADY" not in capfd.readouterr().out


def test_of_many_failures_none_runs_again(pytester, capfd):
    assert run(pytester, test_some=UNSTEADY.format(failing=MOST + 1)) == 1
    assert capfd.readouterr().out.endswith(f"{MOST + 1} tests failed, more than {MOST}: none runs again.\n")
