"""collect_diagnostics on a node made of files."""

import json
import os

import pytest
from collect_diagnostics import fit
from hypothesis import given
from hypothesis import strategies as st

from tests.operations.conftest import Program

XID = "NVRM: Xid (PCI:0000:2b:00): 79, GPU has fallen off the bus."


class Node:
    """The files that the program reads, and the program."""

    def __init__(self, folder):
        self.root = folder / "host"
        self.write("proc/sys/kernel/random/boot_id", "boot-1\n")
        self.write("proc/sys/kernel/osrelease", "6.8.0-gpu\n")
        self.write("dev/kmsg", f"6,1,10,-;usb 1-1: new device\n3,2,20,-;{XID}\n SUBSYSTEM=pci\n")
        self.write("sys/bus/pci/devices/0000:2b:00.0/vendor", "0x10de\n")
        self.write("sys/bus/pci/devices/0000:2b:00.0/class", "0x030200\n")
        self.write("sys/bus/pci/devices/0000:2b:00.0/config", b"\xff" * 64)
        self.write("proc/driver/nvidia/gpus/0000:2b:00.0/information", "Model: \t H100\nGPU UUID: \t GPU-abc\n")
        self.evidence = {"detector": "gpu_lost", "line": "lost", "lost": [{"serial": "1563521020403"}]}
        self.write("run/remediator/detectors/evidence/gpu_lost.json", json.dumps(self.evidence))
        self.program = Program(folder, "collect_diagnostics")
        self.program.variables["HOST_ROOT"] = str(self.root)

    def write(self, path, content):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())

    def collect(self):
        ran = self.program()
        assert ran.code == 0, ran.out
        assert len(ran.message.encode()) <= 4096
        return json.loads(ran.message)


@pytest.fixture
def node(tmp_path):
    """A node that has lost a GPU."""
    return Node(tmp_path)


def test_it_keeps_what_a_reboot_destroys(node):
    found = node.collect()
    assert (found["bootID"], found["kernel"]) == ("boot-1", "6.8.0-gpu")
    assert found["detectors"] == [node.evidence]
    assert found["gpus"] == [{"address": "0000:2b:00.0", "fallen": True, "uuid": "GPU-abc"}]
    assert found["kernelLines"] == [XID]
    assert found["truncated"] is False


def test_without_the_kernels_buffer_it_reads_the_end_of_the_log_file(node):
    (node.root / "dev/kmsg").unlink()
    node.write("var/log/kern.log", "x" * 300_000 + f"\nNov 20 10:00:00 gpu-1 kernel: {XID}\n")
    assert node.collect()["kernelLines"] == [f"Nov 20 10:00:00 gpu-1 kernel: {XID}"]


def test_a_log_that_never_answers_does_not_hold_it_up(node):
    (node.root / "dev/kmsg").unlink()
    os.mkfifo(node.root / "dev/kmsg")
    assert node.collect()["kernelLines"] == []


def test_each_part_that_cannot_be_read_is_named_and_hides_no_other(node):
    (node.root / "proc/sys/kernel/osrelease").unlink()
    (node.root / "dev/kmsg").unlink()
    node.write("run/remediator/detectors/evidence/torn.json", "{")
    found = node.collect()
    assert {"kernel", "kernelLines", "torn.json"} <= set(found["unreadable"])
    assert found["detectors"] == [node.evidence]
    assert found["gpus"]


def test_a_node_of_which_nothing_can_be_read_still_gets_an_answer(node, tmp_path):
    node.program.variables["HOST_ROOT"] = str(tmp_path / "nowhere")
    found = node.collect()
    assert found["bootID"] is None
    assert {"bootID", "pci", "driver", "kernelLines"} <= set(found["unreadable"])


def test_a_talkative_kernel_does_not_push_out_serial_numbers(node):
    node.write("dev/kmsg", "".join(f"3,{n},20,-;NVRM: Xid {n} {'y' * 400}\n" for n in range(500)))
    found = node.collect()
    assert found["truncated"] is True
    assert found["detectors"] == [node.evidence]
    assert found["kernelLines"][-1].startswith("NVRM: Xid 499 "), "the newest line is kept"


def test_a_dry_run_prints_and_leaves_no_message(node):
    ran = node.program("--dry-run")
    assert (ran.code, ran.message) == (0, "")
    assert json.loads(ran.out)["bootID"] == "boot-1"


@given(st.lists(st.text(max_size=400), max_size=40), st.lists(st.text(max_size=400), max_size=40))
def test_whatever_was_read_becomes_valid_json_that_fits(first, second):
    text = fit({"bootID": "x"}, [("first", first), ("second", second)], limit=4096)
    found = json.loads(text)
    assert len(text.encode()) <= 4096
    kept = (len(found["first"]), len(found["second"]))
    assert found["first"] == first[len(first) - kept[0] :]
    assert found["second"] == second[len(second) - kept[1] :]
    assert found["truncated"] is (kept != (len(first), len(second)))
