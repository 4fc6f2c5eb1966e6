"""What is read from mountinfo and mountstats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nfs_mount import judge

from nodelib.contract.npd import Verdict
from nodelib.host.mountinfo import GARBLED
from nodelib.net.nfs import Counters, NfsMount, NfsTarget, parse_mountinfo, parse_mountstats

ROOT = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"
V4 = "36 22 0:52 / /data rw,relatime shared:9 - nfs4 files:/data rw,vers=4.2,hard,proto=tcp,timeo=600,addr=10.0.0.5"
V3 = "37 22 0:53 / /home rw - nfs 10.0.0.6:/export/home rw,vers=3,proto=tcp,port=2050,mountaddr=10.0.0.9,addr=10.0.0.6"


def read(*lines):
    return parse_mountinfo("".join(f"{line}\n" for line in lines))


def test_nfs_mounts_are_found_among_others_with_server_port_and_version():
    assert read(ROOT, V3, V4) == (
        (
            NfsMount("0:52", "/data", "files:/data", NfsTarget("10.0.0.5", 2049), 4),
            NfsMount("0:53", "/home", "10.0.0.6:/export/home", NfsTarget("10.0.0.6", 2050), 3),
        ),
        0,
    )
    assert [mount.export for mount in read(V3, V4).found] == ["/data", "/export/home"]


OPTIONS = {
    "vers=4.1,proto=tcp6,addr=2001:db8::5": (NfsTarget("2001:db8::5"), 4, "2001:db8::5"),
    "vers=4.1,proto=tcp6,port=2050,addr=2001:db8::5": (NfsTarget("2001:db8::5", 2050), 4, "[2001:db8::5]:2050"),
    "vers=3,proto=rdma,port=20049,addr=10.0.0.5": (NfsTarget("10.0.0.5", 2049, tcp=False), 3, "10.0.0.5"),
    "vers=3,proto=udp,addr=10.0.0.5": (NfsTarget("10.0.0.5", 2049, tcp=False), 3, "10.0.0.5"),
    "vers=4.2": (None, 4, "None"),
    "vers=4.2,addr=10.0.0.5,port=none": (None, 4, "None"),
    "vers=4.2,addr=10.0.0.5,port=70000": (None, 4, "None"),
}


@pytest.mark.parametrize("options", OPTIONS)
def test_the_server_is_read_from_the_options(options):
    [mount] = read(f"36 22 0:52 / /data rw - nfs4 files:/data rw,{options}").found
    assert (mount.server, mount.version, str(mount.server)) == OPTIONS[options]


def test_blanks_in_paths_and_ipv6_sources_are_read_right():
    [mount] = read(r"36 22 0:52 / /my\040data rw - nfs4 [2001:db8::5]:/a\040b rw,addr=2001:db8::5").found
    assert (mount.point, mount.export) == ("/my data", "/a b")


def test_each_super_block_counts_once_and_a_nodes_own_path_goes_first():
    volume = V4.replace(" /data ", " /var/lib/kubelet/pods/u/volumes/kubernetes.io~nfs/pv ")
    mounts = read(volume, V4.replace(" /data ", " /zoo "), V3)
    assert [mount.point for mount in mounts.once] == ["/home", "/zoo"]
    assert len(mounts.found) == 3


def test_a_mount_below_another_on_the_same_path_is_left_out():
    over = "40 36 8:2 / /data rw - ext4 /dev/sdb1 rw"
    assert read(V4, over).found == ()
    assert [mount.point for mount in read(over, V4).found] == ["/data"]


def test_other_file_systems_are_no_mounts_of_nfs():
    lines = [V4.replace("- nfs4 ", f"- {kind} ") for kind in ("nfsd", "cifs", "fuse.nfs", "autofs", "ext4")]
    assert read(*lines) == ((), 0)


GARBAGE = [
    "",
    "nonsense",
    V4.replace("0:52", "x"),
    V4.replace(" - ", " "),
    V4.rpartition(" ")[0],
    V4.replace("36", "", 1),
]


@pytest.mark.parametrize("line", GARBAGE)
def test_a_line_that_makes_no_sense_is_counted(line):
    assert read(line) == ((), 1)
    assert read(V4, line).garbled == 1


JUNK = (st.text() | st.sampled_from([ROOT, V4, V3]).flatmap(st.permutations).map("".join)).filter(
    lambda text: " - " not in text  # without it no line is one
)


@given(st.lists(JUNK, min_size=1, max_size=3).map("\n".join))
def test_garbage_in_mountinfo_is_never_a_traceback_and_never_health(text):
    mounts = parse_mountinfo(text)
    verdict, line = judge({}, mounts.garbled)
    assert mounts.garbled > 0
    assert (verdict, line) == (Verdict.UNKNOWN, GARBLED)


@given(st.data())
def test_a_damaged_line_is_told_of_or_still_names_a_mount_or_another_kind(data):
    at = data.draw(st.integers(0, len(V4) - 1))
    line = V4[:at] + data.draw(st.text(max_size=3)) + V4[at + data.draw(st.integers(1, 30)) :]
    mounts = parse_mountinfo(line)
    kind = line.partition(" - ")[2].partition(" ")[0]
    assert mounts.garbled or mounts.found or kind not in ("nfs", "nfs4")


STATS = """\
device proc mounted on /proc with fstype proc
device files:/data mounted on /data with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,addr=10.0.0.5
\tage:\t1000
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 1 2 0 55 40 39 0 40 0 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 30 33 3 5000 90000 10 20 30 2
\t      STATFS: 9 9 1 1000 900 0 0 0 1

no device mounted on /x with fstype rootfs
device [2001:db8::5]:/a mounted on /my\\040data with fstype nfs statvers=1.0
\tper-op statistics
\t     GETATTR: 7 7 0 44 24 0 0 0
device tmpfs mounted on /tmp with fstype tmpfs
"""


def test_counters_are_summed_over_operations_that_ended_well():
    assert parse_mountstats(STATS) == {"/data": Counters(37, 90924, 4), "/my data": Counters(7, 24, 0)}


@pytest.mark.parametrize(
    ("old", "new"), [("READ: 30", "READ: x"), ("90000 10", "-5 10"), ("READ: 30 33 3 5000 90000 10 20 30 2", "READ: 3")]
)
def test_counters_of_which_one_line_makes_no_sense_are_left_out(old, new):
    assert set(parse_mountstats(STATS.replace(old, new))) == {"/my data"}


@given(st.text() | st.text(alphabet=" \n\tdevice:0123456789abcnfs/").map(lambda text: f"{STATS}{text}"))
def test_garbage_in_mountstats_is_never_a_traceback_and_counts_nothing(text):
    assert set(parse_mountstats(text)) <= {"/data", "/my data"}
