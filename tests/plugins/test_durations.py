"""Files that are handed out whole come in the order of what they took last time, which is kept and told."""

import json

import pytest

from tests.plugins import durations
from tests.plugins.changed_fakes import ROOT

pytest_plugins = ["pytester"]
ONE, THREE = "def test_one(): pass", "".join(f"def test_{number}(): pass\n" for number in range(3))


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run a project of four files on one worker that takes whole files; all that it said."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path))
    pytester.makepyfile(test_a=ONE, test_b=THREE, test_c=ONE, test_d=ONE)
    names = ("xdist", "tests.plugins.one_worker", "tests.plugins.durations")
    plugins = [word for name in names for word in ("-p", name)]

    def running() -> list[str]:
        return pytester.runpytest_subprocess(*plugins, "-n", "1", "--dist", "loadfile", "-v").outlines

    return running


def order(lines: list[str]) -> str:
    """The letters of the files in the order in which they ended."""
    letters = [line.partition("test_")[2][0] for line in lines if "PASSED" in line]
    return "".join(dict.fromkeys(letters))


@pytest.mark.slow
def test_what_has_not_run_here_comes_first_and_then_what_took_longest(run):
    assert order(run()) == "bacd", "nothing is known: the largest first"
    assert durations.load().keys() == {f"test_{letter}.py" for letter in "abcd"}
    durations.path().write_text(json.dumps({"test_a.py": 1, "test_b.py": 0.2, "test_c.py": 3}))
    assert order(run()) == "dcab"


@pytest.mark.slow
def test_what_ran_is_kept_beside_what_other_runs_left_and_the_longest_files_are_told(run):
    durations.path().parent.mkdir()
    durations.path().write_text(json.dumps({"test_a.py": 700, "test_z.py": 0.2}))
    told = run()
    assert durations.load()["test_z.py"] == 0.2
    assert durations.load()["test_a.py"] < 700
    assert sum("s  test_" in line for line in told) == 4


@pytest.mark.parametrize("text", ["", "[1]", '{"a": "b"}'])
def test_what_cannot_be_read_is_as_if_nothing_had_run(text, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert durations.load() == {}
    durations.path().parent.mkdir()
    durations.path().write_text(text)
    assert durations.load() == {}
