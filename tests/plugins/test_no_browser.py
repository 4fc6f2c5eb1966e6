"""A run without a browser says at its end how many tests did not run for that, also where others hand them out."""

import pytest

from tests.harness.chromium import NO_CHROMIUM
from tests.plugins.changed_fakes import ROOT

pytest_plugins = ["pytester"]
SKIPPED = f"""
import pytest
@pytest.mark.skipif(True, reason={NO_CHROMIUM!r})
@pytest.mark.parametrize("number", range(2))
def test_in_a_browser(number): pass
"""
OTHER = "import pytest\n@pytest.mark.skip(reason='no amtool')\ndef test_other(): pass\n"


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "by workers"])
def test_tests_that_want_a_browser_and_find_none_are_counted_at_the_end(
    options: tuple[str, ...], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_page=SKIPPED, test_other=OTHER)
    told = pytester.runpytest_subprocess("-q", "-q", "-p", "tests.plugins.no_browser", *options).stdout
    told.fnmatch_lines([f"2 tests of the page did not run: {NO_CHROMIUM}.*"])
    quiet = pytester.runpytest_subprocess("-p", "tests.plugins.no_browser", *options, "test_other.py").stdout
    quiet.no_fnmatch_line("*did not run*")
