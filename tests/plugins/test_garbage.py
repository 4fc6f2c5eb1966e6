"""The garbage collector looks through what is new, also after a test that has thawed everything."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import gc

def test_thaws():
    assert gc.get_freeze_count() > 10_000
    gc.unfreeze()
    assert gc.get_freeze_count() == 0

def test_comes_after_it():
    assert gc.get_freeze_count() > 10_000
    assert gc.isenabled()
"""


@pytest.mark.slow
def test_what_a_test_thaws_is_frozen_again_when_it_is_over(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_it=TESTS)
    assert pytester.runpytest_subprocess("-p", "tests.plugins.garbage").parseoutcomes() == {"passed": 2}
