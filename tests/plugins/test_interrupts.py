"""A program that a test starts hears Ctrl-C, also where nobody who started the tests wanted to hear of it."""

import signal
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import subprocess, sys

def test_it():
    shows = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    assert subprocess.check_output([sys.executable, "-c", shows], text=True) == "False\\n"
"""


@pytest.mark.slow
@pytest.mark.parametrize(("plugins", "outcome"), [(["-p", "tests.plugins.interrupts"], "passed"), ([], "failed")])
def test_a_program_hears_ctrl_c_where_the_tests_were_started_without(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, plugins: list[str], outcome: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_it=TESTS)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        found = pytester.runpytest_subprocess(*plugins)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.parseoutcomes() == {outcome: 1}
