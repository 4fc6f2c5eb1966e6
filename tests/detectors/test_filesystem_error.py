"""filesystem_error, filesystem_damage: damage is told of until it was checked; that of volumes of Pods is not."""

import errno
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodelib.contract.npd import Verdict
from nodelib.host.attributes import number
from nodelib.host.filesystems import Errors, Filesystem, broken, parse_mounts, read_btrfs
from nodelib.host.fs_health import Known, Signs, judge_one, read_codes
from nodelib.kernel.kmsg import Line
from tests.detectors.fixtures.filesystem_damage import FINE as DAMAGE_FINE
from tests.detectors.fixtures.filesystem_error import FINE, POD, XFS_SHUT
from tests.detectors.kernel_tree import BTIME, KernelTree
from tests.harness.examples import examples

OK, FAULT, UNKNOWN = 0, 1, 2
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def tree(tmp_path):
    return KernelTree(tmp_path)


def filesystem(kind, *options, point="/"):
    return Filesystem("sda1", kind, "/dev/sda1", (point,), (point,), frozenset(options or {"rw"}))


WRITABLE, READ_ONLY = Known(1000, True), Known(1000, False)
TABLE = {
    "sound": (filesystem("ext4"), Signs(Errors(0, 0)), WRITABLE, OK, ""),
    "erred in the second of the boot": (filesystem("ext4"), Signs(Errors(1, BTIME)), WRITABLE, FAULT, "has met errors"),
    "erred a second before": (filesystem("ext4"), Signs(Errors(9, BTIME - 1)), WRITABLE, FAULT, "nobody has"),
    "e2fsck has run": (filesystem("ext4"), Signs(Errors(0, BTIME - 1)), WRITABLE, OK, ""),
    "a volume that erred before": (filesystem("ext4", point=POD), Signs(Errors(9, BTIME)), WRITABLE, OK, ""),
    "ext2 without counters": (filesystem("ext2"), Signs(), WRITABLE, OK, ""),
    "shutdown outranks an error": (filesystem("ext4", "shutdown"), Signs(Errors(1, BTIME)), WRITABLE, FAULT, "shut"),
    "shut in a volume": (filesystem("ext4", "emergency_ro", point=POD), Signs(Errors(0, 0)), WRITABLE, FAULT, "shut"),
    "it was writable": (filesystem("f2fs", "ro"), Signs(), WRITABLE, FAULT, "has become read-only"),
    "it never was": (filesystem("f2fs", "ro"), Signs(), READ_ONLY, OK, ""),
    "a volume that was writable": (filesystem("ext4", "ro", point=POD), Signs(Errors(0, 0)), WRITABLE, OK, ""),
    "xfs says EIO": (filesystem("xfs"), Signs(stat=errno.EIO), WRITABLE, FAULT, "was shut by the kernel"),
    "xfs says something else": (filesystem("xfs"), Signs(stat=errno.EACCES), WRITABLE, UNKNOWN, "(EACCES)"),
    "xfs answers, whatever the log says": (filesystem("xfs"), Signs(stat=0, log="XFS"), WRITABLE, OK, ""),
    "xfs hangs": (filesystem("xfs"), Signs(why="has not answered since noon"), WRITABLE, UNKNOWN, "since noon"),
    "btrfs has counted more": (filesystem("btrfs"), Signs(btrfs=8), Known(1000, True, 7), FAULT, "has met errors"),
    "btrfs has counted no more": (filesystem("btrfs"), Signs(btrfs=7), Known(1000, True, 7), FAULT, "nobody has"),
    "btrfs began anew": (filesystem("btrfs"), Signs(btrfs=0), Known(1000, True, 7), OK, ""),
    "btrfs is writable whatever the log says": (filesystem("btrfs"), Signs(btrfs=0, log="BTRFS"), WRITABLE, OK, ""),
}  # fmt: skip


@pytest.mark.parametrize(("one", "seen", "known", "verdict", "words"), TABLE.values(), ids=TABLE.keys())
def test_what_is_seen_becomes_a_verdict(one, seen, known, verdict, words):
    found, said = judge_one(one, seen, known, BTIME)
    assert (found, words in said) == (verdict, True), said


def test_an_error_of_a_time_that_nobody_can_place_is_a_doubt():
    assert judge_one(filesystem("ext4"), Signs(Errors(1, BTIME)), WRITABLE, None)[0] is Verdict.UNKNOWN
    assert judge_one(filesystem("ext4"), Signs(Errors(0, 0)), WRITABLE, None)[0] is Verdict.OK


def test_a_folder_that_hangs_leaves_those_behind_it_unasked():
    assert read_codes(["a", "b", "c"], [0], "hangs") == {"a": (0, ""), "b": (None, "hangs"), "c": (None, "hangs")}
    assert read_codes(["a", "b"], [0, 5], "") == {"a": (0, ""), "b": (5, "")}
    assert read_codes(["a"], "no", "was killed") == {"a": (None, "was killed")}


def test_a_file_system_that_becomes_read_only_is_a_fault_until_it_is_writable_again(tree):
    tree.mount("/data", "8:33", "sdc1", "f2fs")
    assert tree.run("filesystem_damage")[:2] == (OK, DAMAGE_FINE)
    tree.remount("sdc1", "ro")
    for now in (1060, 1120):
        assert tree.run("filesystem_damage", now)[:2] == (FAULT, "f2fs on sdc1 (/data) has become read-only")
    tree.remount("sdc1", "rw")
    assert tree.run("filesystem_damage", 1180).code == OK


def test_what_was_read_only_when_the_detector_first_ran_is_none_and_a_new_mount_begins_anew(tree):
    tree.mount("/data", "8:33", "sdc1", "f2fs")
    tree.run("filesystem_damage")
    tree.unmount("sdc1")
    tree.run("filesystem_damage", 1060)
    tree.mount("/data", "8:33", "sdc1", "f2fs", "ro")
    assert tree.run("filesystem_damage", 1120).code == OK


def test_a_shutdown_in_the_log_is_remembered_until_the_next_boot(tree):
    tree.mount("/scratch", "8:17", "sdb1", "xfs")
    (tree.proc / "1/root/scratch").rmdir()
    tree.log(XFS_SHUT)
    assert tree.run("filesystem_damage").code == FAULT
    tree.log("something else")
    assert tree.run("filesystem_damage", 1060)[:2] == (FAULT, "xfs on sdb1 (/scratch) was shut by the kernel")
    tree.write("proc/sys/kernel/random/boot_id", "two\n")
    (tree.dev / "kmsg").unlink()
    tree.log("Linux version 6.18.44")
    assert tree.run("filesystem_damage", 60).code == UNKNOWN


def test_a_bind_mount_in_a_pod_makes_no_volume_of_the_nodes_own_disk(tree):
    tree.mount(POD, "8:1", "sda1")
    tree.ext4("sda1", 1, BTIME + 5)
    assert tree.run("filesystem_error")[:2] == (FAULT, "ext4 on sda1 (/) has met errors since boot")


@pytest.mark.parametrize("point", ["/var/lib/kubelet", "/var/lib/kubelet/pods", "/var/lib/kubelet/plugins", "/pods/a"])
def test_a_disk_that_holds_the_kubelets_own_folders_is_the_nodes_own(tree, point):
    tree.mount(point, "8:33", "sdc1")
    tree.ext4("sdc1", 1, BTIME + 5)
    assert tree.run("filesystem_error")[:2] == (FAULT, f"ext4 on sdc1 ({point}) has met errors since boot")
    assert tree.run("volume_error").code == OK


def test_a_name_that_another_kind_of_file_system_had_when_it_was_shut_is_held_against_nobody(tree):
    tree.log(XFS_SHUT)
    tree.mount("/data", "8:17", "sdb1")
    tree.ext4("sdb1")
    assert tree.run("filesystem_error")[:2] == (OK, FINE)


def test_the_kernels_name_of_a_mapped_disk_is_found(tree):
    tree.mount("/data", "253:0", "mapper/vg-data")
    tree.write("sys/devices/virtual/block/dm-0/dev", "253:0\n")
    (tree.sys / "dev/block").mkdir(parents=True)
    (tree.sys / "dev/block/253:0").symlink_to(tree.sys / "devices/virtual/block/dm-0")
    tree.ext4("dm-0", 1, BTIME + 5)
    assert tree.run("filesystem_error")[:2] == (FAULT, "ext4 on dm-0 (/data) has met errors since boot")


def test_evidence_of_the_first_sight_names_the_place_and_what_the_kernel_said(tree):
    tree.ext4("sda1", 1, BTIME + 5)
    tree.log("EXT4-fs error (device sda1): ext4_find_entry:1455: comm python3: reading directory lblock 0", "other")
    tree.run("filesystem_error")
    path = tree.state / "evidence/filesystem_error.json"
    kept = json.loads(path.read_text())
    assert kept["filesystems"][0]["device"] == "sda1"
    assert kept["filesystems"][0]["last error"] == "func=ext4_find_entry line=129"
    assert [line.split(":")[0] for line in kept["kernel"]] == ["EXT4-fs error (device sda1)"]
    assert len(path.read_bytes()) < 1200
    tree.ext4("sda1")
    assert tree.run("filesystem_error", 1060).code == OK
    assert not path.exists()


def test_explain_shows_each_file_system_and_leaves_no_mark(tree):
    ran = tree.run("filesystem_error", 1000, "--explain")
    assert "ext4 on sda1 (/): now (ext4 (total 0, last 0), " in ran.line
    assert not (tree.state / "marks").exists()


def test_a_reboot_that_checks_nothing_ends_no_fault(tree):
    tree.ext4("sda1", 1, BTIME + 5)
    assert tree.run("filesystem_error").code == FAULT
    tree.write("proc/sys/kernel/random/boot_id", "two\n")
    tree.write("proc/stat", f"btime {BTIME + 900}\n")
    unchecked = "ext4 on sda1 (/) has errors from before this boot: nobody has checked it"
    assert tree.run("filesystem_error", 60)[:2] == (FAULT, unchecked)
    tree.ext4("sda1", 0, BTIME + 5)
    assert tree.run("filesystem_error", 120)[:2] == (OK, FINE)


LINES = {
    XFS_SHUT: {"sdb1"},
    "XFS (dm-0): Corruption of in-memory data (0x8) detected at xfs_x+0x1/0x2.  Shutting down filesystem.": {"dm-0"},
    "XFS (sda1): xfs_do_force_shutdown(0x8) called from line 1368 of file fs/xfs/xfs_trans.c.": {"sda1"},
    "XFS (sda1): Filesystem has been shut down due to log error (0x2).": {"sda1"},
    "BTRFS info (device sdc1): forced readonly": {"sdc1"},
    "BTRFS info (device sdc1 state E): forced readonly": {"sdc1"},
    "XFS (sdb1): Mounting V5 Filesystem 0f1e": set(),
    "XFS (sdb1): xlog_verify_grant_tail: space > BBTOB(tail_blocks)": set(),
    "EXT4-fs (sda1): mounted filesystem r/w": set(),
}  # fmt: skip


@pytest.mark.parametrize(("text", "devices"), LINES.items())
def test_lines_of_the_kernel_tell_who_has_given_up(text, devices):
    assert broken([Line(1, 1.0, text)], {}).keys() == devices


FORCED = "BTRFS info (device sdb1 state E): forced readonly"
MENDED = [
    (XFS_SHUT, "XFS (sdb1): Mounting V5 Filesystem 0f1e"),
    (XFS_SHUT, "XFS (sdb1): Unmounting Filesystem 0f1e"),
    (FORCED, "BTRFS info (device sdb1): first mount of filesystem 0f1e"),
]


@pytest.mark.parametrize(("shut", "anew"), MENDED)
def test_what_is_mounted_anew_after_a_repair_has_not_given_up(shut, anew):
    before, after = broken([Line(1, 1.0, shut)], {}), broken([Line(1, 1.0, shut), Line(2, 2.0, anew)], {})
    assert (before.keys(), after) == ({"sdb1"}, {})
    assert broken([Line(3, 3.0, anew)], before) == {}
    assert broken([Line(3, 3.0, anew.replace("sdb1", "sdb2"))], before) == before


@given(st.text(alphabet="0123456789:/ -rwext4xfs,\n\\", max_size=300))
def test_garbage_for_mounts_is_garbled_and_never_raises(text):
    mounts = parse_mounts(text, Path("/nowhere"))
    assert mounts.garbled or mounts.found or " - " in text


@given(st.lists(st.text(max_size=200)))
def test_no_line_raises(texts):
    broken([Line(index, 1.0, text) for index, text in enumerate(texts)], {})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(st.binary(max_size=40))
def test_a_counter_of_any_bytes_is_a_number_or_refused(tmp_path, content):
    path = tmp_path / "errors_count"
    path.write_bytes(content)
    try:
        assert number(path) == int(content)
    except ValueError:
        assert not content.strip().isdigit() or len(content.strip()) > 20
    disk = tmp_path / "fs/btrfs/0f1e2d3c-1111-2222-3333-444455556666"
    (disk / "devices/sda1").mkdir(parents=True, exist_ok=True)
    (disk / "devinfo/1").mkdir(parents=True, exist_ok=True)
    (disk / "devinfo/1/error_stats").write_bytes(content)
    with pytest.raises(ValueError, match="error_stats"):
        read_btrfs(tmp_path, filesystem("btrfs"))


def lacks():
    """Return why no file system can be damaged here, "" where one can."""
    if os.geteuid():
        return "needs root: mounts a loop device"
    return (
        ""
        if Path("/sbin/mkfs.ext4").exists() and Path("/dev/loop-control").exists()
        else "no mkfs.ext4, no loop device"
    )


@pytest.fixture
def loop(tmp_path):
    """A real ext4 on a loop device, mounted; its device's name. Gone at the end, whatever happened."""
    image, point = tmp_path / "image", tmp_path / "mount"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-e", "remount-ro", image], check=True)
    device = subprocess.run(
        ["losetup", "--find", "--show", image], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        subprocess.run(["mount", device, point], check=True)
        try:
            yield Path(device).name
        finally:
            subprocess.run(["umount", point], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.cluster
@pytest.mark.skipif(bool(lacks()), reason=lacks())
def test_a_real_ext4_that_the_kernel_shuts_is_a_fault_and_its_kernel_leaves_it_writable_in_the_flags(loop, tmp_path):
    def run():
        command = [Path(__file__).parents[2] / "detectors/filesystem_error.py", f"--state={tmp_path / 'state'}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    assert loop not in run()[1]
    Path(f"/sys/fs/ext4/{loop}/trigger_fs_error").write_text("1")
    until = time.monotonic() + 10
    while f"ext4 on {loop} " not in run()[1] and time.monotonic() < until:
        time.sleep(0.1)
    code, line = run()
    assert code == FAULT
    assert f"ext4 on {loop} ({tmp_path / 'mount'})" in line
    kept = json.loads((tmp_path / "state/evidence/filesystem_error.json").read_text())
    assert kept["filesystems"][0]["last error"].startswith("func=trigger_test_error")
    assert any(line.startswith(f"EXT4-fs error (device {loop})") for line in kept["kernel"])
