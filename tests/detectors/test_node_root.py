"""A detector that may not see the node's own files says so, and what to do, in plain words."""

import os

import pytest

from nodelib.contract.npd import OutOfReach, Verdict
from nodelib.host.root import node_root
from tests.detectors.node import run_detector

REMEDY = "run node-problem-detector privileged and with hostPID"


@pytest.mark.parametrize("program", ["cni", "dns", "runtime_health"])
def test_the_line_of_a_detector_that_cannot_see_the_nodes_files_names_them_and_the_remedy(program, tmp_path):
    boot_id = tmp_path / "proc/sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text("boot-1\n")
    found = run_detector(program, f"--proc={tmp_path}/proc", f"--state={tmp_path}/state")
    why = f"the node's files below {tmp_path}/proc/1/root cannot be read (No such file or directory)"
    assert (found.code, found.line) == (Verdict.UNKNOWN, f"{why}: {REMEDY}")


def test_a_root_that_may_not_be_listed_is_told_without_the_words_of_python(tmp_path, monkeypatch):
    def forbidden(_):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr("nodelib.host.root.os.scandir", forbidden)
    with pytest.raises(OutOfReach) as told:
        node_root(tmp_path)
    assert str(told.value) == f"the node's files below {tmp_path}/1/root cannot be read (Permission denied): {REMEDY}"
