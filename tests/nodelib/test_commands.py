"""Commands on the node: however one behaves, who runs it goes on."""

import os
import signal
import time

import pytest

from nodelib.contract.operation import Refused
from nodelib.host.commands import Command, run
from nodelib.nvml import nvidia_smi
from tests.harness.waiting import gone


@pytest.fixture
def nsenter(tmp_path, monkeypatch):
    """Let nsenter be a shell script."""

    def write(script):
        (tmp_path / "nsenter").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "nsenter").chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return write


def wait_until_gone(pid):
    until = time.monotonic() + 10
    while not gone(pid):
        assert time.monotonic() < until, f"process {pid} is left"
        time.sleep(0.01)


def test_both_streams_and_the_exit_code_are_told(nsenter):
    nsenter('echo "$@"; echo trouble >&2; exit 7')
    told = run(("nvidia-smi", "-L"), 10)
    assert (told.code, told.last) == (7, "trouble")
    assert told.text.splitlines()[0].endswith("-- nvidia-smi -L")


def test_its_words_do_not_depend_on_the_language(nsenter, monkeypatch):
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    nsenter('echo "$LC_ALL"')
    assert run((), 10).text == "C\n"


def test_one_that_does_not_end_is_ended_with_its_children(nsenter, tmp_path):
    nsenter(f"echo $$ > {tmp_path}/pids; sleep 60 & echo $! >> {tmp_path}/pids; echo so far; wait")
    told = run((), 0.5)
    assert (told.code, told.text) == (None, "so far\n")
    for pid in (tmp_path / "pids").read_text().split():
        wait_until_gone(int(pid))


def test_one_that_does_not_heed_sigterm_is_killed(nsenter, tmp_path, monkeypatch):
    monkeypatch.setattr("nodelib.host.commands.GRACE", 0.3)
    nsenter(f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done")
    assert run((), 0.5).code is None
    wait_until_gone(int((tmp_path / "pid").read_text()))


def test_one_that_ends_and_leaves_a_child_with_its_output_is_not_waited_for(nsenter, tmp_path):
    nsenter(f"sleep 60 & echo $! > {tmp_path}/pid; echo done")
    begun = time.monotonic()
    assert run((), 30) == (0, "done\n")
    assert time.monotonic() - begun < 10
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_commands_run_at_the_same_time(nsenter):
    nsenter("sleep 0.5")
    begun = time.monotonic()
    commands = [Command(()) for _ in range(6)]
    assert [command.told(begun + 30).code for command in commands] == [0] * 6
    assert time.monotonic() - begun < 2.5


def test_a_driver_that_does_not_answer_takes_no_reset(nsenter, monkeypatch):
    monkeypatch.setattr(nvidia_smi, "ASK_SECONDS", 0.2)
    nsenter("exec sleep 60")
    with pytest.raises(Refused, match=r"does not answer within 0\.2 s, so it will not reset: reboot the node"):
        nvidia_smi.look(nvidia_smi.Smi())
