"""The reboot program on a node made of files, with an nsenter that writes down how it was called."""

import os
import signal
import time

import pytest
from _attempt import create_marker
from _operation import Refused

from tests.operations.conftest import Program

BOOT = "11111111-2222-3333-4444-555555555555"
REBOOT = "--target 1 --mount --uts --ipc --net --pid -- systemctl reboot"


class Node:
    """A node's root, and the calls of nsenter on it."""

    def __init__(self, folder):
        self.root, self.calls_file = folder / "host", folder / "nsenter-calls"
        boot = self.root / "proc/sys/kernel/random/boot_id"
        boot.parent.mkdir(parents=True)
        boot.write_text(f"{BOOT}\n")
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.nsenter("exit 0")
        self.program = Program(folder, "reboot")
        self.program.variables |= {
            "HOST_ROOT": str(self.root),
            "EXPECTED_BOOT_ID": BOOT,
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
        }

    def nsenter(self, rest):
        path = self.bin / "nsenter"
        path.write_text(f'#!/bin/sh\necho "$@" >> {self.calls_file}\n{rest}\n')
        path.chmod(0o755)

    def calls(self):
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []

    def files(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())


@pytest.fixture
def node(tmp_path):
    """A node that does not go down when it is asked to."""
    return Node(tmp_path)


def wait_for_call(node):
    until = time.monotonic() + 30
    while not node.calls():
        assert time.monotonic() < until, "nsenter was not called"
        time.sleep(0.01)


def test_it_asks_the_nodes_service_manager_once_and_has_said_so_before(node):
    node.nsenter("exec sleep 5 >/dev/null 2>&1")
    process = node.program.start(parameters={"waitSeconds": 60})
    wait_for_call(node)
    assert node.program.log.read_text() == "reboot of gpu-1 asked for by attempt op-uid.1"
    assert (node.root / "run/remediator/op-uid.1").exists()
    process.kill()  # as the shutdown of the node does
    process.communicate(timeout=10)
    assert node.calls() == [REBOOT]


def test_a_node_that_stays_up_is_a_failure(node):
    ran = node.program(parameters={"waitSeconds": 0.3})
    assert (ran.code, ran.message) == (1, "failed: the node was asked to reboot and still runs after 0.3 s")
    assert node.calls() == [REBOOT]


def test_a_node_that_turns_the_request_down_is_a_failure_at_once(node):
    node.nsenter("exit 4")
    ran = node.program(parameters={"waitSeconds": 60})
    assert (ran.code, ran.message) == (1, "failed: the node did not take the reboot: nsenter exited 4")


def test_a_node_without_nsenter_is_a_failure_with_its_cause(node):
    (node.bin / "nsenter").unlink()
    ran = node.program(PATH=str(node.bin))
    assert ran.code == 1
    assert "nsenter" in ran.message


def test_another_boot_than_the_expected_one_is_refused(node):
    ran = node.program(EXPECTED_BOOT_ID="another")
    assert ran.code == 2
    assert ran.message == f"refused: boot id is {BOOT}, not another: it was rebooted since"
    assert node.calls() == []


def test_the_second_start_of_one_attempt_is_refused(node):
    node.program(parameters={"waitSeconds": 0.1})
    ran = node.program(parameters={"waitSeconds": 0.1})
    assert (ran.code, ran.message) == (2, "refused: attempt op-uid.1 was started before in this boot")
    assert node.calls() == [REBOOT]


def test_of_many_starts_at_the_same_time_one_asks(node):
    starts = [node.program.start(parameters={"waitSeconds": 0.1}) for _ in range(4)]
    codes = [node.program.finish(process).code for process in starts]
    assert sorted(codes) == [1, 2, 2, 2]
    assert node.calls() == [REBOOT]


def test_the_mark_of_an_attempt_can_be_left_once(tmp_path):
    create_marker(tmp_path / "run/op-uid.1")
    with pytest.raises(Refused, match="started before"):
        create_marker(tmp_path / "run/op-uid.1")


@pytest.mark.parametrize(
    "variables", [{"EXPECTED_BOOT_ID": ""}, {"ATTEMPT_ID": ""}, {"ATTEMPT_ID": "../x"}, {"HOST_ROOT": "/nowhere"}]
)
def test_an_incomplete_order_is_refused(node, variables):
    assert node.program(**variables).code == 2
    assert node.calls() == []


def test_a_dry_run_says_the_steps_and_touches_nothing(node):
    before = node.files()
    ran = node.program("--dry-run")
    assert (ran.code, ran.message) == (0, "")
    assert REBOOT in ran.out
    assert "would reboot gpu-1" in ran.out
    assert (node.files(), node.calls()) == (before, [])


def test_being_stopped_after_the_request_keeps_the_sentence(node):
    node.nsenter("exec sleep 5 >/dev/null 2>&1")
    process = node.program.start(parameters={"waitSeconds": 60})
    wait_for_call(node)
    process.send_signal(signal.SIGTERM)
    process.wait(10)
    assert node.program.log.read_text() == "reboot of gpu-1 asked for by attempt op-uid.1"
    assert process.returncode == 0
