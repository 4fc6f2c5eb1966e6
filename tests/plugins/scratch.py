"""Tests write a hundred thousand small files: in memory, where this machine has room for them, unless TMPDIR is set."""

import os
import tempfile

from remediator_sim.scratch import scratch

ROOM = 4096  # MiB: of a whole run with a control plane


def pytest_configure() -> None:
    """Before the first test, and the first worker."""
    folder = scratch(ROOM)
    if folder:
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None  # which is looked up once
