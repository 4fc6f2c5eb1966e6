"""Files of a moment lie in memory only where that holds them."""

import os
from types import SimpleNamespace

import pytest

from remediator_sim.scratch import MIB, scratch


@pytest.mark.parametrize(
    ("free", "flags", "taken"),
    [(64 * MIB, 0, True), (64 * MIB - 1, 0, False), (64 * MIB, os.ST_NOEXEC, False), (64 * MIB, os.ST_NOSUID, True)],
    ids=["room enough", "a byte too little", "no program may run there", "another flag"],
)
def test_memory_is_taken_where_64_mib_fit_and_programs_run(tmp_path, monkeypatch, free, flags, taken):
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free, f_frsize=1, f_flag=flags))
    assert scratch(64, tmp_path) == (tmp_path if taken else None)


def test_whoever_says_where_files_go_is_heeded(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    assert scratch(0, tmp_path) is None


def test_a_folder_that_is_not_there_is_none(tmp_path, monkeypatch):
    monkeypatch.delenv("TMPDIR", raising=False)
    assert scratch(0, tmp_path / "none") is None
