"""disk_fault: a disk that fails is told of by name, a stand-in for one and an order that it does not know are not."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from disk_fault import DiskReadings, Memory, judge, judge_array, judge_state
from hypothesis import given
from hypothesis import strategies as st

from nodelib.contract.memory import Stamp, recall
from nodelib.contract.npd import Verdict
from nodelib.host import smart
from nodelib.host.disks import ARRAY_STATES, Array, Disk, read_arrays
from nodelib.host.smart import ADMIN, COMMAND, WARNINGS, ask_controller, judge_page, page_command, parse_page
from nodelib.kernel.disk_log import Blamed, many, read_log, stands, unit
from nodelib.kernel.kmsg import Line, read_new
from tests.detectors.fixtures.disk_fault import ERRORS, FINE, MODERN, RESET_FAILED
from tests.detectors.kernel_tree import KernelTree
from tests.detectors.test_filesystem_error import ANYTHING

OK, FAULT, UNKNOWN = 0, 1, 2
NOTHING = Memory()


@pytest.fixture
def tree(tmp_path):
    """A node with three NVMe controllers."""
    tree = KernelTree(tmp_path)
    for index in range(3):
        tree.nvme(f"nvme{index}")
    return tree


def forget_controller(tree, name):
    for path in (tree.sys / "class/nvme" / name).iterdir():
        path.unlink()
    (tree.sys / "class/nvme" / name).rmdir()


STATES = [
    ("live", False, OK), ("running", True, OK), ("", True, OK), ("?", True, UNKNOWN), ("dead", False, FAULT),
    ("offline", False, FAULT), ("transport-offline", False, FAULT), ("resetting", False, UNKNOWN),
    ("resetting", True, FAULT), ("blocked", True, FAULT), ("something new", False, UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("state", "before", "verdict"), STATES)
def test_the_kernels_state_of_a_disk_is_believed_at_once_only_when_it_is_final(state, before, verdict):
    assert judge_state(Disk("nvme0", "S1", state, True), frozenset({"S1"} if before else ()))[0] == verdict


@pytest.mark.parametrize(("action", "verdict"), [("idle", FAULT), ("frozen", FAULT), ("recover", UNKNOWN)])
def test_an_array_without_a_member_is_a_fault_unless_it_rebuilds(action, verdict):
    assert judge_array(Array("md0", "clean", 1, action))[0] == verdict
    assert judge_array(Array("md0", "clean", 0, action))[0] is Verdict.OK


def test_a_disk_that_leaves_is_gone_until_it_is_back_under_any_name(tree):
    assert tree.run("disk_fault").code == OK
    forget_controller(tree, "nvme1")
    for now in (1060, 1120):
        assert tree.run("disk_fault", now)[:2] == (FAULT, "disk nvme1 (S-nvme1) is gone")
    tree.nvme("nvme7", serial="S-nvme1")
    assert tree.run("disk_fault", 1180)[:2] == (OK, FINE)


def test_a_volume_of_a_cloud_may_leave(tree):
    tree.nvme("nvme5", model="Amazon Elastic Block Store")
    tree.run("disk_fault")
    forget_controller(tree, "nvme5")
    assert tree.run("disk_fault", 1060).code == OK


def test_a_disk_that_was_gone_before_the_boot_is_only_missed_where_its_number_is_declared(tree):
    tree.run("disk_fault")
    forget_controller(tree, "nvme1")
    tree.write("proc/sys/kernel/random/boot_id", "two\n")
    assert tree.run("disk_fault", 60).code == OK
    assert tree.run("disk_fault", 120, "--expected-disks=3")[:2] == (FAULT, "3 disks expected, 2 present")


def test_disks_that_cannot_be_read_are_not_gone(tree):
    tree.run("disk_fault")
    (tree.sys / "block").rename(tree.sys / "elsewhere")
    ran = tree.run("disk_fault", 1060, "--expected-disks=3")
    assert ran.code == UNKNOWN
    assert "gone" not in ran.line


def test_errors_are_remembered_until_another_disk_bears_the_name(tree):
    tree.log(*[MODERN] * 4)
    assert tree.run("disk_fault")[:2] == (OK, FINE)
    tree.log(MODERN)
    assert tree.run("disk_fault", 1060)[:2] == (FAULT, ERRORS)
    assert tree.run("disk_fault", 90_000)[:2] == (FAULT, ERRORS)
    tree.nvme("nvme1", serial="the new one")
    ran = tree.run("disk_fault", 90_060)
    assert ran[:2] == (FAULT, "disk nvme1 (S-nvme1) is gone"), "the old one is missed until somebody says so"
    (tree.state / "disk_fault.json").unlink()
    (tree.dev / "kmsg").unlink()
    tree.log("nvme nvme1: 16/0/0 default/read/poll queues", at=90_100)
    assert tree.run("disk_fault", 90_120).code == OK


def test_errors_that_are_far_apart_are_not_many(tree):
    for hour in range(8):
        tree.log(MODERN, at=hour * 1000.0)
    assert tree.run("disk_fault", 9000)[:2] == (OK, FINE)
    tree.log(MODERN, at=7100)
    assert tree.run("disk_fault", 9060)[:2] == (FAULT, ERRORS)


def test_a_volume_that_a_pod_took_along_takes_its_errors_along(tree):
    tree.nvme("nvme5", model="Amazon Elastic Block Store")
    tree.log(*[MODERN.replace("nvme1n1", "nvme5n1")] * 5)
    assert tree.run("disk_fault")[:2] == (FAULT, "disk nvme5 has many I/O errors")
    forget_controller(tree, "nvme5")
    assert tree.run("disk_fault", 1060).code == OK


def test_a_disk_that_was_lost_before_the_first_look_is_told_of_by_the_log(tree):
    tree.log("nvme nvme9: Disabling device after reset failure: -19")
    for now in (1000, 1060):
        assert tree.run("disk_fault", now)[:2] == (FAULT, "disk nvme9 was given up")


ANEW = {
    RESET_FAILED: ("nvme nvme1: pci function 0000:3b:00.0", "disk nvme1 was given up"),
    "I/O error, dev sda, sector 2 op 0x1:(WRITE)": (
        "sd 0:0:0:0: [sda] Attached SCSI disk",
        "disk sda has many I/O errors",
    ),
}


@pytest.mark.parametrize(("line", "anew", "told"), [(line, *rest) for line, rest in ANEW.items()])
def test_a_disk_that_the_kernel_finds_anew_begins_anew(tree, line, anew, told):
    tree.log(*[line] * 5)
    assert tree.run("disk_fault")[:2] == (FAULT, told)
    tree.log(anew)
    assert tree.run("disk_fault", 1060)[:2] == (OK, FINE)
    tree.log(*[line] * 5)
    assert tree.run("disk_fault", 1120).code == FAULT


GUESTS = {"iSCSI": ("platform/host1/session1", "0"), "a stick": ("usb1/host2", "1")}


@pytest.mark.parametrize(("where", "removable"), GUESTS.values(), ids=GUESTS.keys())
def test_errors_of_what_does_not_belong_to_the_node_blame_no_disk_even_when_it_has_left(tree, where, removable):
    errors = ["I/O error, dev sdb, sector 2 op 0x1:(WRITE)"] * 5
    tree.scsi("sdb", where=where, removable=removable)
    tree.log(*errors)
    assert tree.run("disk_fault")[:2] == (OK, FINE)
    (tree.sys / "block/sdb").unlink()
    tree.log(*errors)
    assert tree.run("disk_fault", 1060)[:2] == (OK, FINE)
    tree.scsi("sdb", where="pci0000:00/ata9/host0")
    tree.log(*errors)
    assert tree.run("disk_fault", 1120)[:2] == (FAULT, "disk sdb has many I/O errors")


def test_who_stands_in_the_log():
    here, guests = {"nvme0": "S0"}, ["nvme3"]
    assert stands("nvme0", Blamed("S0"), here, guests)
    assert not stands("nvme0", Blamed("S9"), here, guests)
    assert stands("nvme1", Blamed("S1"), here, guests)
    assert not stands("nvme3", Blamed("EBS"), here, guests)


DEVICES = {
    "nvme0n1": "nvme0", "nvme12n3p4": "nvme12", "nvme0c1n1": "nvme1", "sda": "sda", "sdaa15": "sdaa", "vda1": "vda",
    "mmcblk0p2": "mmcblk0", "loop0": "", "dm-0": "", "md0": "", "zram0": "", "nbd3": "", "sr0": "",
}  # fmt: skip


@pytest.mark.parametrize(("device", "disk"), DEVICES.items())
def test_only_a_disk_is_blamed(device, disk):
    assert unit(device) == disk
    found = read_log([Line(1, 5.0, f"I/O error, dev {device}, sector 2 op 0x1:(WRITE) flags 0x0")])
    assert found == ([(disk, 5.0, "error")] if disk else [])


def test_a_reset_that_failed_is_final_and_a_timeout_is_not():
    assert read_log([Line(1, 5.0, RESET_FAILED)]) == [("nvme1", 5.0, "given up")]
    assert read_log([Line(1, 5.0, "nvme nvme1: I/O 22 QID 0 timeout, reset controller")]) == [("nvme1", 5.0, "error")]
    assert read_log([Line(1, 5.0, "nvme nvme1: 16/0/0 default/read/poll queues")]) == []


@given(st.lists(st.integers(0, 10_000), max_size=30), st.integers(1, 6), st.integers(0, 4000))
def test_many_is_what_a_sliding_window_finds(times, most, window):
    brute = any(sum(start <= at <= start + window for at in times) >= most for start in times)
    assert many(times, most, window) == brute


def test_the_order_to_an_nvme_controller_is_that_of_the_kernels_header():
    assert (COMMAND.size, ADMIN) == (72, 0xC0484E41)
    told = page_command(0x1122334455667788)
    assert told[0] == 2
    assert int.from_bytes(told[4:8], "little") == 0xFFFFFFFF
    assert int.from_bytes(told[24:32], "little") == 0x1122334455667788
    assert int.from_bytes(told[36:40], "little") == 512
    assert int.from_bytes(told[40:44], "little") == 0x007F0002


def test_a_health_page_is_read_at_the_places_of_the_specification():
    page = bytearray(512)
    page[0], page[5], page[160] = 0b1001, 104, 7
    assert parse_page(bytes(page)) == {"warning": 9, "used": 104, "media_errors": 7}
    assert judge_page(parse_page(bytes(page))) == ["spare blocks have run low", "it has become read-only"]
    page[0] = 0b10
    assert judge_page(parse_page(bytes(page))) == [], "it is only warm"


def test_what_is_no_nvme_controller_is_asked_in_vain_and_told_of_by_its_number(tmp_path):
    (tmp_path / "nvme0").write_text("")
    assert ask_controller(tmp_path / "nvme0") == {"errno": 25}
    assert ask_controller(tmp_path / "nvme1") == {"errno": 2}
    smart.main([str(tmp_path / "nvme0"), str(tmp_path / "nvme1")], tmp_path / "answer.json")
    assert json.loads((tmp_path / "answer.json").read_text()) == {
        "nvme0": {"errno": 25}, "nvme1": {"errno": 2}, "done": True,
    }  # fmt: skip


ONE = (Disk("nvme0", "S0", "live", True),)
SMART = [
    ({"warning": 0, "used": 3, "media_errors": 0}, "", OK),
    ({"warning": 4, "used": 3, "media_errors": 0}, "", FAULT),
    ({"warning": 2, "used": 130, "media_errors": 9}, "", OK),
    ({"errno": 13}, "", UNKNOWN),
    ({"errno": 1}, "", UNKNOWN),
    ({"errno": 25}, "", OK),
    ({"status": 0x4002}, "", OK),
    ({}, "2026-11-21T23:00Z", UNKNOWN),
]


@pytest.mark.parametrize(("said", "hung", "verdict"), SMART)
def test_what_a_controller_says_of_itself_becomes_a_verdict(said, hung, verdict):
    found, line = judge(DiskReadings(ONE, (), {"nvme0": said}, hung, ()), NOTHING, None)
    assert found == verdict, line
    if verdict == FAULT:
        assert line == f"SMART of nvme0: {WARNINGS[4]}"


def test_a_controller_is_asked_every_ten_minutes_and_a_warning_stands_in_between(tree):
    tree.write("dev/nvme0", "")
    tree.run("disk_fault", 1000)
    path = tree.state / "disk_fault.json"
    memory = json.loads(path.read_text())
    assert (memory["asked_at"], memory["smart"]) == (1000, {"nvme0": {"errno": 25}})
    path.write_text(json.dumps({**memory, "smart": {"nvme0": {"warning": 8}}}))
    assert tree.run("disk_fault", 1599)[:2] == (FAULT, "SMART of nvme0: it has become read-only")
    assert tree.run("disk_fault", 1600)[:2] == (OK, FINE)


def test_evidence_holds_the_serial_number_the_model_and_what_the_kernel_said(tree):
    tree.log(*[MODERN] * 30)
    tree.run("disk_fault")
    path = tree.state / "evidence/disk_fault.json"
    kept = json.loads(path.read_text())
    [disk] = kept["disks"]
    assert (disk["name"], disk["who"], disk["model"]) == ("nvme1", "S-nvme1", "SAMSUNG MZQL21T9")
    assert kept["kernel"] == [MODERN[:110]] * 4
    assert len(path.read_bytes()) < 1200


@pytest.mark.parametrize("value", ["", "-1", "eight", "1.5"])
def test_a_number_that_is_none_is_refused_with_the_remedy(tree, value):
    ran = tree.run("disk_fault", 1000, f"--expected-disks={value}")
    assert ran.code == UNKNOWN
    assert "argument --expected-disks:" in ran.err
    assert "give one like 8" in ran.err


@given(st.lists(st.text(max_size=120)), ANYTHING)
def test_no_line_and_no_memory_raises(tmp_path_factory, texts, memory):
    read_log([Line(index, 1.0, text) for index, text in enumerate(texts)])
    told = dict.fromkeys(("disks", "guests", "blamed", "ill", "smart", "asked_at"), memory)
    path = tmp_path_factory.getbasetemp() / "disk_fault_memory.json"
    path.write_text(json.dumps({"boot_id": "one", **told}))
    known = recall(path, Memory, Stamp("one", 1000.0))
    judge(DiskReadings(ONE, (), known.smart, "", ()), known, None)


@given(ANYTHING | st.dictionaries(st.sampled_from(["warning", "errno", "status", "used"]), ANYTHING, max_size=3))
def test_what_a_controller_never_said_is_not_its_health(said):
    sound = isinstance(said, dict) and any(type(said.get(key)) is int for key in ("warning", "errno", "status"))
    verdict, line = judge(DiskReadings(ONE, (), {"nvme0": said}, "", ()), NOTHING, None)
    assert sound or (verdict, line) == (Verdict.UNKNOWN, "SMART of nvme0 cannot be asked (no answer)")


def test_a_child_that_ends_without_a_word_is_cannot_tell_and_another_is_asked_in_the_next_run(tree):
    tree.nvme("nvme0")
    (tree.root / "dev/nvme0").touch()
    (tree.state / "disk_fault.answer.json.draft").mkdir(parents=True)  # where the child cannot put its answer
    for now in (940, 1000):
        ran = tree.run("disk_fault", now)
        assert (ran.code, ran.line) == (UNKNOWN, "SMART of nvme0 cannot be asked (no answer)")
    (tree.state / "disk_fault.answer.json.draft").rmdir()
    assert tree.run("disk_fault", 1060).code == OK


@given(st.text(max_size=12))
def test_a_state_of_an_array_that_nobody_knows_is_not_whole(state):
    verdict, _ = judge_array(Array("md0", state, 0, "idle"))
    assert (verdict is Verdict.OK) == (state in ARRAY_STATES)


@pytest.mark.parametrize("name", ["array_state", "degraded"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"-1", b"1 2"])
def test_an_array_whose_files_make_no_sense_is_never_whole(tree, name, content):
    tree.array("md0", degraded="1")
    (tree.sys / "block/md0/md" / name).write_bytes(content)
    assert tree.run("disk_fault").code != OK
    if name == "degraded":
        with pytest.raises(ValueError, match="md/degraded"):
            read_arrays(tree.sys)


def lacks():
    """Return why no disk can err here, "" where one can."""
    return "needs root: a loop device" if os.geteuid() or not Path("/dev/loop-control").exists() else ""


@pytest.fixture
def cut_loop(tmp_path):
    """A real loop device whose file was cut to nothing; its name. Gone at the end, whatever happened."""
    image = tmp_path / "image"
    image.write_bytes(bytes(4 << 20))
    command = ["losetup", "--find", "--show", image]
    device = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    try:
        os.truncate(image, 0)
        yield Path(device).name
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.cluster
@pytest.mark.skipif(bool(lacks()), reason=lacks())
def test_real_errors_of_the_kernel_are_read_and_those_of_a_loop_device_blame_no_disk(cut_loop):
    cursor = read_new(Path("/dev"), None).cursor
    with Path("/dev", cut_loop).open("rb", buffering=0) as file, pytest.raises(OSError, match="Input/output error"):
        file.read(4096)
    wanted, until = f"I/O error, dev {cut_loop}, sector ", time.monotonic() + 10
    lines: list[Line] = []
    while not lines and time.monotonic() < until:
        lines = [line for line in read_new(Path("/dev"), cursor).lines if line.text.startswith(wanted)]
    assert lines
    assert read_log(lines) == []
    as_disk = [line._replace(text=line.text.replace(cut_loop, "nvme1n1")) for line in lines]
    assert {name for name, _, _ in read_log(as_disk)} == {"nvme1"}
