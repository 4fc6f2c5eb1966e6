"""The reboot program on a node made of files, with an nsenter that writes down how it was called."""

import os
import signal
import time

import pytest
import reboot
import yaml

from nodelib.contract.attempt import create_marker
from nodelib.contract.operation import Environment, Failed, Refused
from tests.contract.test_manifests import ROOT
from tests.operations.conftest import Program

BOOT = "11111111-2222-3333-4444-555555555555"
STILL_RUNS = "the node was asked to reboot and still runs after {:g} s; the reboot may still come"
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
    assert (ran.code, ran.message) == (1, f"failed: {STILL_RUNS.format(0.3)}")
    assert node.calls() == [REBOOT]


def test_after_the_slowest_shutdown_and_all_other_steps_15_minutes_are_left_for_the_boot():
    template = next(
        document
        for document in yaml.safe_load_all((ROOT / "operations/reboot.yaml").read_text())
        if document["kind"] == "NodeOperationTemplate"
    )
    minutes = int(template["spec"]["timeout"].removesuffix("m"))
    others = 2 * reboot.SYNC_SECONDS + len("sub") * reboot.PAUSE + reboot.LAST_SECONDS  # lastResort with them
    left = minutes * 60 - reboot.WAIT_SECONDS - others
    assert left >= 15 * 60


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


@pytest.mark.slow
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


@pytest.fixture
def trigger(node):
    """What stands for the kernel's trigger; nothing here may reach the real one."""
    file = node.root / "proc/sysrq-trigger"
    file.touch()
    return file


def last_words(node, monkeypatch, wait):
    """The failure of a node that survives even sysrq."""
    for name, seconds in (("PAUSE", 0.01), ("LAST_SECONDS", 0.01), ("ANSWER_SECONDS", 0.5)):
        monkeypatch.setattr(reboot, name, seconds)
    monkeypatch.setenv("PATH", node.program.variables["PATH"])
    log = str(node.program.log)
    environment = Environment("gpu-1", "op-uid.1", BOOT, {}, log, "", str(node.root))
    with pytest.raises(Failed) as failure:
        reboot.last_resort(environment, wait)
    return str(failure.value)


@pytest.mark.parametrize(
    ("rest", "wait", "why"),
    [
        ("exit 4", 60, "the node did not take the reboot: nsenter exited 4"),
        ("exec sleep 30 >/dev/null 2>&1", 60, "the node's service manager did not answer within 0.5 s"),
        ("exit 0", 0.2, STILL_RUNS.format(0.2)),
    ],
)
def test_where_nothing_comes_of_it_the_declared_last_resort_is_sync_read_only_reboot(
    node, trigger, monkeypatch, rest, wait, why
):
    node.nsenter(rest)
    said = last_words(node, monkeypatch, wait)
    assert said == f"{why}; sysrq was written and the node still runs: power-cycle it"
    assert trigger.read_text() == "sub"
    assert node.program.log.read_text() == f"reboot of gpu-1 by sysrq: {why}"
    assert node.calls() == [REBOOT]


def test_a_node_without_nsenter_has_the_last_resort_left(node, trigger, monkeypatch):
    (node.bin / "nsenter").unlink()
    node.program.variables["PATH"] = str(node.bin)
    assert "nsenter" in last_words(node, monkeypatch, 60)
    assert trigger.read_text() == "sub"


def test_a_trigger_that_is_not_there_is_told_of_and_not_made(node, monkeypatch):
    node.nsenter("exit 4")
    assert "exited 4; sysrq cannot be written: " in last_words(node, monkeypatch, 60)
    assert not (node.root / "proc/sysrq-trigger").exists()


@pytest.mark.parametrize("parameters", [{}, {"lastResort": None}])
def test_undeclared_it_is_not_used(node, trigger, parameters):
    node.nsenter("exit 4")
    ran = node.program(parameters={"waitSeconds": 1, **parameters})
    assert (ran.code, trigger.read_text()) == (1, "")


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"lastResort": "b"}, "lastResort knows only sysrq"),
        ({"waitSeconds": "soon"}, "waitSeconds is 'soon': write a number from 0 to"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(node, trigger, parameters, why):
    ran = node.program(parameters=parameters)
    assert (ran.code, node.calls(), trigger.read_text()) == (2, [], "")
    assert why in ran.message


def test_the_program_itself_goes_on_to_the_last_resort_and_a_stop_keeps_its_sentence(node, trigger):
    node.nsenter("exit 4")
    process = node.program.start(parameters={"lastResort": "sysrq"})
    until = time.monotonic() + 60
    while trigger.read_text() != "sub":
        assert time.monotonic() < until, "the trigger was not written"
        time.sleep(0.01)
    process.terminate()
    ran = node.program.finish(process)
    assert (ran.code, ran.message) == (0, "reboot of gpu-1 asked for by attempt op-uid.1")
    assert "going on with sysrq" in ran.out


def test_a_dry_run_tells_of_the_last_resort(node, trigger):
    ran = node.program("--dry-run", parameters={"lastResort": "sysrq"})
    assert f"would, if nothing comes of it, write s, u and b to {trigger}" in ran.out
    assert trigger.read_text() == ""
