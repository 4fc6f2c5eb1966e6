"""Workers of a run are forked from a process that has imported all test modules: each would do so for three seconds.

pytest-xdist starts a fresh interpreter for each. One that takes the place of a worker that has died still is.
"""

import atexit
import importlib
import os
import random
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest
from execnet import XSpec, gateway_io
from execnet.gateway_base import Popen2IO, get_execmodel
from hypothesis import find, settings, strategies

from remediator_sim.simulation import cluster

# Each worker imports these itself: they hold ports of their own from their import to the end.
OWN = ("tests.contract.npd.", "tests.detectors.")
_path: list[str] = []  # sys.path once all is imported: a conftest.py has added to it, and is not run again


class ForkedIO(Popen2IO):
    """The pipes to a worker that is forked from here, as execnet wants them."""

    def __init__(self) -> None:
        (stdin, to_worker), (from_worker, stdout) = os.pipe(), os.pipe()
        self._process = get_context("fork").Process(target=_work, args=(stdin, stdout))
        self._process.start()
        os.close(stdin)
        os.close(stdout)
        super().__init__(os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb"), get_execmodel("thread"))

    @property
    def pid(self) -> int | None:
        """The worker's."""
        return self._process.pid

    def wait(self) -> int | None:
        """See Popen2IOMaster."""
        self._process.join()
        return self._process.exitcode

    def kill(self) -> None:
        """See Popen2IOMaster."""
        self._process.kill()


def _work(stdin: int, stdout: int) -> None:
    """Be what execnet starts: a process that reads from its standard input what it is to do."""
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(os.dup(number), mode) for number, mode in enumerate("rww"))
    random.seed()
    try:
        exec(eval(sys.stdin.readline()), {})
    finally:
        atexit._run_exitfuncs()  # multiprocessing does not


def modules(config: pytest.Config) -> Iterator[str]:
    """The names of the test modules that this run collects, without those in OWN."""
    for arg in config.args:
        path = config.invocation_params.dir / arg.partition("::")[0]
        for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
            if file.is_relative_to(config.rootpath) and not _ignored(config, file):
                name = ".".join(file.relative_to(config.rootpath).with_suffix("").parts)
                if not name.startswith(OWN):
                    yield name


def _ignored(config: pytest.Config, file: Path) -> bool:
    parts = (file, *(parent for parent in file.parents if config.rootpath in parent.parents))
    return any(config.hook.pytest_ignore_collect(collection_path=part, config=config) for part in parts)


def preload(names: Iterable[str]) -> None:
    """Import these modules. Raises UsageError for one that opens what all workers would then share."""
    for name in names:
        before = _opened()
        with suppress(Exception):  # a worker that imports it says what is wrong
            importlib.import_module(name)
        if _opened() != before:
            raise pytest.UsageError(
                f"{name} opens a file or a socket when it is imported: add its folder to {__name__}.OWN"
            )


def _opened() -> list[str]:
    """What the descriptors of this process are."""
    numbers = os.listdir("/proc/self/fd")  # noqa: PTH208
    paths = [Path(f"/proc/self/fd/{number}") for number in numbers]
    return sorted(f"{path.name} {path.readlink()}" for path in paths if path.is_symlink())


def _warm_up() -> None:
    # What each worker would make once more: hypothesis reads the constants of all modules before its first example.
    cluster.shipped_server()
    find(strategies.none(), lambda _: True, settings=settings(database=None, max_examples=1))


def pytest_configure() -> None:
    """In a worker, which has been given the path with which this run began."""
    sys.path[:] = dict.fromkeys([*_path, *sys.path])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[XSpec]) -> None:
    """Before the first worker is asked for: fork all of them, as long as this process has one thread."""
    if threading.active_count() > 1 or not all(spec.popen and not spec.python for spec in specs):
        return
    preload(modules(config))
    _path.extend(sys.path)
    _warm_up()
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        workers = [ForkedIO() for _ in specs]
    start = gateway_io.create_io
    gateway_io.create_io = lambda spec, execmodel: workers.pop() if workers else start(spec, execmodel)
