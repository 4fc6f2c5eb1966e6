"""Workers are forked with all test modules in them."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.plugins.forked_workers import ForkedIO, modules, preload

ROOT = Path(__file__).parents[2]
REMEMBERED = f"of process {os.getpid()}"


def ignoring(*paths):
    """What pytest's hook answers where these are left out."""
    return SimpleNamespace(pytest_ignore_collect=lambda collection_path, config: collection_path in paths or None)


def test_a_worker_reads_what_it_is_to_do_and_holds_what_was_imported_before():
    program = f"""
import os, sys
os.write(1, f"{{sys.modules[{__name__!r}].REMEMBERED}}, not {{os.getpid()}}".encode())
os._exit(7)
"""
    io = ForkedIO()
    io.write(f"{program!r}\n".encode())
    said = f"{REMEMBERED}, not {io.pid}".encode()
    assert io.pid != os.getpid()
    assert io.read(len(said)) == said
    assert io.wait() == 7


def test_a_worker_that_does_not_end_is_ended():
    io = ForkedIO()
    io.kill()
    assert io.wait() == -9


def test_modules_are_those_that_the_run_collects_and_no_others():
    config = SimpleNamespace(
        args=["tests/plugins", "tests/nodelib/test_kmsg.py::test_a", "/elsewhere/test_b.py", "tests/detectors"],
        rootpath=ROOT,
        invocation_params=SimpleNamespace(dir=ROOT),
        hook=ignoring(ROOT / "tests/plugins/test_sample.py", ROOT / "tests/nodelib"),
    )
    names = list(modules(config))
    assert __name__ in names
    assert "tests.plugins.test_sample" not in names
    assert all(name.startswith("tests.plugins.test_") for name in names)


def test_a_module_that_opens_a_socket_is_named(tmp_path, monkeypatch):
    (tmp_path / "holds_a_port.py").write_text("import socket\nheld = socket.socket()")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(pytest.UsageError, match="holds_a_port opens a file or a socket"):
        preload(["holds_a_port"])
    sys.modules.pop("holds_a_port").held.close()
