"""What device_nodes makes of what the kernel has and what /dev has; real nodes; garbage."""

import json
import os
import subprocess
import sys

import pytest
from device_nodes import DeviceFiles, judge
from hypothesis import given, settings
from hypothesis import strategies as st

from nodelib.host.device_nodes import Number, WantedDeviceNode, has, majors, of_gpus, of_infiniband, of_mig
from nodelib.host.gpus import Card, Driven
from tests.detectors.fixtures.device_nodes import DEVICES, MIG, everything, link, node, with_infiniband, without
from tests.detectors.node import DETECTORS, address, run_detector
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = 0, 1, 2
GPUS = {address(index): Driven(f"GPU-{index}", index, excluded=False) for index in range(3)}
CARDS = tuple(Card(address(index), "present", "nvidia") for index in range(3))
MAJORS = {"nvidia": 195, "nvidiactl": 195, "nvidia-uvm": 506, "nvidia-caps": 235}


def paths(wanted):
    return [one.path for one in wanted if not one.optional]


def test_each_gpu_has_a_node_and_all_have_two_together():
    assert paths(of_gpus(GPUS, MAJORS)) == ["nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm"]


def test_a_gpu_that_the_driver_was_told_to_leave_out_has_none():
    some = {**GPUS, address(1): Driven("GPU-1", 1, excluded=True)}
    assert paths(of_gpus(some, {})) == ["nvidia0", "nvidia2", "nvidiactl"], "and nvidia-uvm is not loaded"
    assert of_gpus({}, MAJORS) == []


def test_majors_are_those_that_the_kernel_gave(tmp_path):
    (tmp_path / "devices").write_text(DEVICES)
    known = majors(tmp_path)
    assert known == {"mem": 1, "infiniband_verbs": 231, **MAJORS, "nvidia-nvswitch": 236}
    numbers = {one.path: one.number for one in of_gpus(GPUS, {**MAJORS, "nvidia": 240})}
    assert numbers["nvidia1"] == Number(240, 1)
    assert numbers["nvidia-uvm"] == Number(506, 0)
    assert {one.path: one.number for one in of_gpus(GPUS, {})}["nvidiactl"] == Number(195, 255)


def there(wanted, *gone, **other):
    found = {one.path: one.number for one in wanted if one.path not in gone}
    return found | {path.replace("_", "-"): number for path, number in other.items()}


def see(*gone, wanted=None, driven=GPUS, cards=CARDS, is_dev=True, odd=(), **other):
    wanted = tuple(of_gpus(driven, MAJORS) if wanted is None else wanted)
    return DeviceFiles(cards, driven, wanted, there(wanted, *gone, **other), odd=odd, is_dev=is_dev)


JUDGED = {
    "all there": (see(), OK, "every device has its node"),
    "what may be missing": (see("nvidia-modeset", "nvidia-uvm-tools"), OK, "every device has its node"),
    "two missing": (see("nvidia2", "nvidia0"), FAULT, "/dev/nvidia0, /dev/nvidia2 is missing (nvidia-modprobe)"),
    "another minor": (see(nvidia1=Number(195, 2)), FAULT, "/dev/nvidia1 has the wrong number (nvidia-modprobe)"),
    "another major": (
        see(nvidia_uvm=Number(507, 0)),
        FAULT,
        "/dev/nvidia-uvm has the wrong number (nvidia-modprobe -u -c=0)",
    ),
    "what may be missing is another device": (
        see(nvidia_modeset=Number(1, 3)),
        FAULT,
        "/dev/nvidia-modeset has the wrong",
    ),
    "a folder": (see(nvidia1="a folder"), FAULT, "/dev/nvidia1 is a folder (nvidia-modprobe)"),
    "a number that nobody knows": (see(wanted=[WantedDeviceNode("x", Number(None, 3), "")], x=Number(99, 3)), OK, ""),
    "a minor that is not told": (
        see(driven={**GPUS, address(1): Driven("", None, excluded=False)}),
        UNKNOWN,
        "does not report the minor",
    ),
    "a GPU without driver": (see(driven={}), UNKNOWN, "the driver does not list"),
    "GPUs that nouveau has": (
        see(driven={}, cards=(Card(address(0), "present", "nouveau"),))._replace(driven=None),
        UNKNOWN,
        "the driver does not list",
    ),
    "a fault outranks it": (see("nvidia0", odd=("/proc/devices",)), FAULT, "/dev/nvidia0 is missing"),
    "a file that makes no sense": (see(odd=("/proc/devices",)), UNKNOWN, "/proc/devices makes no sense"),
    "not the node's /dev": (see("nvidia0", "nvidia1", is_dev=False), UNKNOWN, "mount it"),
    "GPUs of virtual machines": (
        see(driven={}, cards=(Card(address(0), "present", "vfio-pci"),)),
        OK,
        "there is no device",
    ),
    "no PCI": (see(cards=None), UNKNOWN, "PCI cannot be read"),
    "missing, and perhaps in a folder that is closed": (see("nvidia0")._replace(closed=True), UNKNOWN, "privileged"),
    "all there, and a folder that is closed": (see("nvidia-modeset")._replace(closed=True), OK, "every device"),
    "another device, and a folder that is closed": (
        see("nvidia0", nvidia1=Number(195, 2))._replace(closed=True),
        FAULT,
        "/dev/nvidia1 has the wrong number (nvidia-modprobe)",
    ),
    "GPUs that only their nodes show": (
        see(driven={}, cards=())._replace(driven=None, minors=frozenset({1, 0})),
        UNKNOWN,
        "/dev/nvidia0 is there, yet neither PCI nor the driver shows a GPU",
    ),
    "nodes of GPUs of virtual machines": (
        see(driven={}, cards=(Card(address(0), "present", "vfio-pci"),))._replace(driven=None, minors=frozenset({0})),
        OK,
        "there is no device",
    ),
    "no device": (see(driven={}, cards=()), OK, "there is no device to have a node"),
}


@pytest.mark.parametrize(("seen", "verdict", "line"), JUDGED.values(), ids=JUDGED.keys())
def test_each_device_needs_its_node(seen, verdict, line):
    assert judge(seen)[0] == verdict
    assert line in judge(seen)[1]


def test_many_names_are_cut():
    wanted = [WantedDeviceNode(f"nvidia{index}", Number(195, index), "nvidia-modprobe") for index in range(16)]
    line = judge(see(*(one.path for one in wanted), wanted=wanted))[1]
    assert line.endswith("/dev/nvidia5 and more is missing (nvidia-modprobe)")


def test_what_stands_in_place_of_a_node_is_told(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "by-number").symlink_to("/dev/char/195:7")
    folders = [tmp_path / "none", tmp_path]
    names = ("file", "folder", "null", "dangling", "by-number", "absent", "file/below")
    assert [has(folders, name) for name in names] == [
        "a file",
        "a folder",
        Number(1, 3),
        None,
        Number(195, 7),
        None,
        None,
    ]


CLOSED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from nodelib.host.device_nodes import has, is_closed
if os.geteuid() == 0:
    os.setuid(65534)
own = Path("/proc/1/root/run/nvidia/driver/dev")
print(*map(is_closed, [own, Path("/none"), Path("/dev")]), has([own], "null"), has([own, Path("/dev")], "null"))
"""


def test_a_folder_of_process_1_is_closed_to_who_is_not_privileged_and_hides_no_other(tmp_path):
    done = subprocess.run(
        [sys.executable, "-I", "-c", CLOSED, DETECTORS.parent], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.strip() == f"True False False None {Number(1, 3)}"


def run(root, *options):
    roots = [f"--{name}={root / name}" for name in ("proc", "sys", "dev", "state")]
    return run_detector("device_nodes", *roots, f"--driver-root={root / 'driver'}", *options)[:2]


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes can be made by root only")
def test_real_nodes_are_told_by_their_numbers(tmp_path):
    node(tmp_path, everything)
    path = tmp_path / "dev/nvidia1"
    for device, verdict in (((195, 1), OK), ((195, 2), FAULT), ((1, 1), FAULT)):
        path.unlink()
        try:
            os.mknod(path, 0o20666, os.makedev(*device))
        except PermissionError:
            pytest.skip("this root may make no device nodes (CAP_MKNOD)")
        assert run(tmp_path)[0] == verdict, device


def test_evidence_is_of_the_first_sight_and_each_node_is_explained(tmp_path):
    node(tmp_path, lambda root: without(root, "nvidia1", "infiniband/uverbs0"))
    code, line = run(tmp_path)
    assert (code, line) == (
        FAULT,
        "/dev/infiniband/uverbs0 is missing (udevadm trigger); /dev/nvidia1 is missing (nvidia-modprobe)",
    )
    kept = json.loads((tmp_path / "state/evidence/device_nodes.json").read_text())
    assert kept["wrong"] == {
        "nvidia1": "is missing (nvidia-modprobe)",
        "infiniband/uverbs0": "is missing (udevadm trigger)",
    }
    link(tmp_path / "dev", "nvidia1", "195:1")
    link(tmp_path / "dev", "infiniband/uverbs0", "231:193")
    assert run(tmp_path) == (FAULT, "/dev/infiniband/uverbs0 has the wrong number (udevadm trigger)")
    assert json.loads((tmp_path / "state/evidence/device_nodes.json").read_text()) == kept
    assert "nvidiactl: none" in run(tmp_path, "--explain")[1]


@settings(max_examples=examples(100))
@given(st.binary(max_size=60))
def test_garbage_of_the_kernel_never_makes_a_traceback(tmp_path_factory, content):
    root = tmp_path_factory.mktemp("garbled")
    node(root, everything)
    for path in ("proc/devices", f"proc/{MIG}", "sys/class/infiniband_verbs/uverbs0/dev"):
        (root / path).write_bytes(content)
    assert isinstance(majors(root / "proc"), dict)
    for source in (lambda: of_mig(root / "proc", MAJORS), lambda: of_infiniband(root / "sys")):
        with pytest.raises(ValueError, match=r".+"):
            source()


@pytest.mark.parametrize("path", [f"proc/{MIG}", "sys/class/infiniband_verbs/uverbs0/dev", "proc/driver/nvidia/gpus"])
def test_what_makes_no_sense_is_cannot_tell(tmp_path, path):
    node(tmp_path, everything)
    if path.endswith("gpus"):
        (tmp_path / path / address(0) / "information").write_bytes(b"\xff\x00 nothing")
    else:
        (tmp_path / path).write_bytes(b"\xff\x00 nothing")
    assert run(tmp_path)[0] == UNKNOWN


def test_a_node_with_infiniband_and_no_gpu_is_looked_at(tmp_path):
    node(tmp_path, with_infiniband, gpus=0)
    assert run(tmp_path) == (OK, "every device has its node")
    (tmp_path / "dev/infiniband/uverbs0").unlink()
    assert run(tmp_path)[0] == FAULT
