"""Tests of fakes run when something of them has changed, and in CI always."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.changed_fakes import FAKES, ROOT, TESTS, digest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.sampled("changed fakes")

CONFTEST = """
from pathlib import Path
from tests.plugins.changed_fakes import ChangedFakes

def pytest_configure(config):
    fakes, tests = ["fake.py"], ["test_fake.py", "folder"]
    config.pluginmanager.register(ChangedFakes(config, Path(__file__).parent, fakes, tests))
"""
PASSES, FAILS = "def test_it(): pass\n", "def test_it(): assert False\n"
Run = Callable[..., tuple[int, int]]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a project of one fake, two tests of it and another test; how many passed and failed."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a worker takes longer to import them than to run
    pytester.makeconftest(CONFTEST)
    files = {"fake": "", "test_fake": PASSES, "folder/test_more": PASSES, "test_other": PASSES}
    for name, text in files.items():
        path = pytester.path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def running(*options: str) -> tuple[int, int]:
        done = pytester.runpytest_inprocess("--import-mode=importlib", "-p", "xdist.plugin", *options).parseoutcomes()
        return done.get("passed", 0), done.get("failed", 0)

    return running


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "with workers"])
def test_what_passed_runs_again_only_once_a_fake_has_changed(
    run: Run, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    assert run(*workers) == (3, 0)
    assert run(*workers) == (1, 0)
    (pytester.path / "fake.py").write_text("changed = True\n")
    assert run(*workers) == (3, 0)
    assert run(*workers) == (1, 0)


def test_a_test_that_has_changed_runs(run: Run, pytester: pytest.Pytester) -> None:
    assert run() == (3, 0)
    (pytester.path / "folder/test_more.py").write_text(PASSES + "def test_another(): pass\n")
    assert run() == (4, 0)


def test_in_ci_all_of_them_run_always(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert [run(), run()] == [(3, 0), (3, 0)]


def test_what_failed_runs_until_it_passes(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "test_fake.py").write_text(FAILS)
    assert [run(), run()] == [(2, 1), (2, 1)]
    (pytester.path / "test_fake.py").write_text(PASSES)
    assert [run(), run()] == [(3, 0), (1, 0)]


def test_that_another_test_failed_says_nothing_of_the_fakes(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "test_other.py").write_text(FAILS)
    assert [run(), run()] == [(2, 1), (0, 1)]


@pytest.mark.parametrize(
    "options", [("-k", "it"), ("-x",), ("test_fake.py",), ("--deselect", "test_other.py"), ("--co",)]
)
def test_a_run_of_some_tests_is_not_remembered(run: Run, options: tuple[str, ...]) -> None:
    run(*options)
    assert run() == (3, 0)


def test_a_test_that_cannot_be_imported_has_not_passed(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "test_fake.py").write_text("import nothing_of_this_name\n")
    run("--continue-on-collection-errors")
    (pytester.path / "test_fake.py").write_text(PASSES)
    assert run() == (3, 0)


def test_a_digest_is_of_names_and_bytes_and_of_nothing_that_python_compiled(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    before = digest(tmp_path, ["."])
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/a.pyc").write_text("2")
    assert digest(tmp_path, ["."]) == before
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert digest(tmp_path, ["."]) != before


def test_every_file_and_folder_that_is_named_is_there() -> None:
    assert [part for part in (*FAKES, *TESTS) if not (ROOT / part).exists()] == []
