"""The remount program on a node whose mounts are lines of mountinfo and whose servers answer an RPC NULL, or do not."""

import asyncio
import json
from shlex import quote

import pytest

from nodelib.host.mounts import Mount, read_mounts, server_of, why_silent
from remediator_sim.machine.nfs import NfsServer
from tests.operations.scripted import BOOT, ENTER, Node, answer

pytestmark = pytest.mark.sampled("remount nfs")

UID = "8f3c2a10-1111-2222-3333-444455556666"
GROUP = f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{'0' * 64}.scope\n"
VOLUME = f"/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~nfs/data"
STALE = "stat: cannot read file system information for '/mnt/data': Stale file handle"
FINE = answer("stat -f", "nfs")


def row(point, port, device="0:61", fields="shared:40", root="/", options="rw,vers=4.2,hard,proto=tcp"):
    rest = f"{options},port={port},clientaddr=10.0.0.5,local_lock=none,addr=127.0.0.1"
    return f"101 25 {device} {root} {point} rw,relatime {fields} - nfs4 127.0.0.1:/export {rest}\n"


class NfsNode(Node):
    """A node with one NFS mount at /mnt/data, and a server for it."""

    def __init__(self, folder, port):
        super().__init__(folder, "remount_nfs")
        self.port = port
        self.process(1, "0::/init.scope\n", row("/mnt/data", port))

    def process(self, pid, group, mountinfo, state="S"):
        folder = self.root / "proc" / str(pid)
        folder.mkdir(exist_ok=True, parents=True)
        (folder / "stat").write_text(f"{folder.name} (python3) {state} {'0 ' * 18}42 0\n")
        (folder / "cgroup").write_text(group)
        (folder / "mountinfo").write_text(f"25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n{mountinfo}")

    def options(self):
        return f"rw,relatime,vers=4.2,hard,proto=tcp,port={self.port},local_lock=none"

    async def run(self, *options, **variables):
        parameters = {"probeSeconds": 3, "mountSeconds": 5, **variables.pop("parameters", {})}
        return await asyncio.to_thread(self.program, *options, parameters=parameters, **variables)

    def changes(self):
        return [call for call in self.calls() if call.startswith(("mount ", "umount "))]


@pytest.fixture
async def server():
    """A server that answers."""
    async with NfsServer() as server:
        yield server


@pytest.fixture
def node(tmp_path, server):
    """A node whose only mount is stale; a remount mends it."""
    node = NfsNode(tmp_path, server.port)
    node.answers(answer("stat -f", STALE, code=1), answer("umount"), answer("mount", then=[FINE]))
    return node


async def test_a_stale_mount_is_taken_down_and_mounted_as_it_was(node):
    ran = await node.run()
    assert (ran.code, ran.message) == (0, "remounted /mnt/data"), ran.out
    mount = f"mount -t nfs4 -o {node.options()} 127.0.0.1:/export /mnt/data"
    assert node.calls() == [
        "stat -f -c %T /mnt/data",
        "umount -f -l /mnt/data",
        mount,
        "stat -f -c %T /mnt/data",
    ]
    assert not (node.root / "run/remediator/nfs-down.json").exists()


def declare(node, fstab):
    (node.root / "proc/1/root/etc").mkdir(parents=True)
    (node.root / "proc/1/root/etc/fstab").write_text(fstab)


def mounting(node, point):
    """A mount command that mounts: the node's first process sees the mount from then on."""
    line = quote(row(point, node.port, device="0:62"))
    return answer("mount -t nfs", does=f"printf %s {line} >> {quote(str(node.root / 'proc/1/mountinfo'))}")


async def test_a_declared_mount_that_was_absent_is_there_after_it(node):
    node.answers(FINE, mounting(node, "/mnt/home"))
    declare(node, f"127.0.0.1:/home /mnt/home nfs hard,port={node.port} 0 0\n")
    ran = await node.run()
    assert (ran.code, ran.message) == (0, "remounted /mnt/home"), ran.out
    assert [mount.point for mount in read_mounts(node.root / "proc/1/mountinfo")] == ["/mnt/data", "/mnt/home"]
    assert not (node.root / "run/remediator/nfs-down.json").exists()
    ran = await node.run(ATTEMPT_ID="op-uid.2")
    assert (ran.code, ran.message) == (0, "nothing to remount: 2 NFS mounts of gpu-1 answer")


async def test_a_mount_that_is_declared_and_absent_is_mounted_as_it_is_declared(node):
    node.answers(FINE, answer("mount -t nfs", then=[FINE]))
    options = f"_netdev,nofail,bg,hard,nfsvers=4.1,port={node.port}"
    declare(node, f"127.0.0.1:/home /mnt/home nfs {options} 0 0\n127.0.0.1:/old /mnt/old nfs noauto 0 0\n")
    ran = await node.run()
    assert node.changes() == [f"mount -t nfs -o hard,vers=4.1,port={node.port} 127.0.0.1:/home /mnt/home"]
    assert (ran.code, "not mounted after all: /mnt/home" in ran.message) == (1, True), ran.out  # nothing shows it


async def test_a_declared_mount_whose_server_is_silent_is_not_tried(node):
    node.answers(FINE)
    declare(node, "127.0.0.1:/home /mnt/home nfs port=1 0 0\n")
    ran = await node.run()
    assert (ran.code, node.changes()) == (2, [])
    assert "the server does not answer" in ran.message


async def test_a_declared_mount_that_waits_for_its_first_use_is_there(node):
    node.answers(FINE)
    waiting = "102 25 0:62 / /mnt/home rw,relatime shared:41 - autofs systemd-1 rw\n"
    node.process(1, "0::/init.scope\n", row("/mnt/data", node.port) + waiting)
    declare(node, "127.0.0.1:/home /mnt/home nfs x-systemd.automount 0 0\n")
    assert (await node.run()).code == 0
    assert node.changes() == []


async def test_a_statfs_that_hangs_is_a_stuck_mount(node):
    node.answers(answer("stat -f", hangs=30), answer("umount"), answer("mount", then=[FINE]))
    ran = await node.run()
    assert (ran.code, ran.message) == (0, "remounted /mnt/data"), ran.out


async def test_where_all_mounts_answer_nothing_is_done_and_that_is_a_success(node):
    node.answers(FINE)
    ran = await node.run()
    assert (ran.code, ran.message) == (0, "nothing to remount: 1 NFS mounts of gpu-1 answer")
    assert (node.changes(), (node.root / "run").exists()) == ([], False)


async def test_an_error_that_the_server_gives_is_an_answer(node):
    node.answers(answer("stat -f", STALE.replace("Stale file handle", "Permission denied"), code=1))
    assert (await node.run()).code == 0
    assert node.changes() == []


@pytest.mark.parametrize(("code", "text"), [(127, "nsenter: failed to execute stat"), (1, "nsenter: cannot open ns")])
async def test_a_node_without_stat_loses_no_mount(node, code, text):
    node.answers(answer("stat -f", text, code=code))
    ran = await node.run()
    assert (ran.code, node.changes()) == (2, [])
    assert text in ran.message


async def test_a_mount_that_is_named_is_remounted_though_it_answers_with_what_shares_its_connection(node):
    node.answers(FINE, answer("umount"), answer("mount"))
    shared = row("/mnt/data", node.port) + row("/mnt/data/sub", node.port) + row("/mnt/else", node.port, device="0:70")
    node.process(1, "0::/init.scope\n", shared)
    ran = await node.run(parameters={"mountPoints": ["/mnt/data"]})
    assert (ran.code, ran.message) == (0, "remounted /mnt/data, /mnt/data/sub"), ran.out


@pytest.mark.parametrize("points", [["/mnt/other"], "/mnt/other", [1]])
async def test_names_that_mean_no_mount_are_refused_with_the_remedy(node, points):
    ran = await node.run(parameters={"mountPoints": points})
    assert (ran.code, node.calls()) == (2, [])
    assert "/mnt/other" in ran.message or "not a list of words" in ran.message


async def test_with_a_silent_server_nothing_is_taken_down(node, server):
    await server.stop()
    ran = await node.run()
    assert (ran.code, node.changes()) == (2, [])
    assert ran.message == (
        "refused: the server does not answer, mend it first, the node is not at fault: "
        f"127.0.0.1:{node.port} of 127.0.0.1:/export: Connection refused"
    )


async def test_a_volume_of_a_pod_that_runs_is_refused(node):
    node.process(1, "0::/init.scope\n", row(VOLUME, node.port))
    node.process(77, GROUP, "")
    ran = await node.run()
    assert (ran.code, node.changes()) == (2, [])
    assert f"owns {VOLUME}" in ran.message


async def test_a_process_whose_first_thread_has_ended_is_of_its_pod_by_another(node):
    node.process(1, "0::/init.scope\n", row(VOLUME, node.port))
    node.process(77, "4:pids:/\n", "", "Z")
    node.process("77/task/78", GROUP, "", "D")
    ran = await node.run()
    assert (ran.code, node.changes()) == (2, [])
    assert f"owns {VOLUME}" in ran.message


async def test_a_volume_of_a_pod_that_is_gone_is_taken_down_and_not_mounted_again(node, server):
    await server.stop()  # nobody needs it
    node.process(1, "0::/init.scope\n", row(VOLUME, node.port))
    node.answers(answer("stat -f", hangs=30), answer("umount"))
    ran = await node.run()
    assert (ran.code, node.changes()) == (1, [f"umount -f -l {VOLUME}"])
    assert ran.message == f"failed: could not be taken down: {VOLUME}: reboot the node"  # our mountinfo is but a file


async def test_a_copy_in_a_pod_that_would_stay_is_refused_and_one_that_follows_is_not(node):
    node.process(77, GROUP, row("/data", node.port, fields=""))
    ran = await node.run()
    assert (ran.code, node.changes()) == (2, [])
    assert f"Pod {UID.replace('-', '')} has 127.0.0.1:/export at /data" in ran.message
    node.process(77, GROUP, row("/host/mnt/data", node.port, fields="master:40"))
    assert (await node.run()).code == 0


async def test_all_mounts_of_one_connection_are_down_before_the_first_is_mounted(node):
    both = row("/mnt/data", node.port) + row("/mnt/data/sub", node.port, root="/sub")
    node.process(1, "0::/init.scope\n", both + row("/mnt/else", node.port, device="0:70"))
    node.answers(
        answer("stat -f -c %T /mnt/else"), answer("stat", hangs=30), answer("umount"), answer("mount", then=[FINE])
    )
    ran = await node.run()
    assert (ran.code, ran.message) == (0, "remounted /mnt/data, /mnt/data/sub"), ran.out
    assert [call.split()[0] + " " + call.split()[-1] for call in node.changes()] == [
        "umount /mnt/data/sub",
        "umount /mnt/data",
        "mount /mnt/data",
        "mount /mnt/data/sub",
    ]
    assert "127.0.0.1:/export/sub /mnt/data/sub" in node.changes()[-1]
    assert len(node.calls("stat -f -c %T /mnt/data")) == 2, "each connection is asked once, before and after"


async def test_a_mount_that_fails_is_remembered_and_mounted_by_the_next_attempt(node):
    node.answers(answer("stat", STALE, code=1), answer("umount"), answer("mount -t", "mount.nfs4: Bad export", code=32))
    ran = await node.run()
    assert (ran.code, ran.message) == (
        1,
        "failed: could not be mounted again: /mnt/data from 127.0.0.1:/export: exit 32: mount.nfs4: Bad export",
    )
    node.process(1, "0::/init.scope\n", "")  # nothing shows that it is missing
    node.answers(FINE, answer("mount"))
    ran = await node.run(ATTEMPT_ID="op-uid.2")
    assert ran.message == "failed: not mounted after all: /mnt/data"  # our mountinfo is but a file
    assert node.changes()[-1] == f"mount -t nfs4 -o {node.options()} 127.0.0.1:/export /mnt/data"


async def test_a_mount_that_is_stuck_as_before_is_a_failure(node):
    node.answers(answer("stat -f", STALE, code=1), answer("umount"), answer("mount"))
    ran = await node.run()
    assert (ran.code, ran.message) == (1, "failed: stuck as before: /mnt/data: reboot the node")


async def test_a_mount_command_that_hangs_is_left_behind(node):
    node.answers(answer("stat -f", STALE, code=1), answer("umount"), answer("mount -t", hangs=30))
    ran = await node.run(parameters={"mountSeconds": 0.3})
    assert ran.code == 1
    assert "no answer within 0.3 s" in ran.message


async def test_an_umount_that_fails_is_a_failure(node):
    node.answers(answer("stat -f", STALE, code=1), answer("umount", "umount: /mnt/data: target is busy.", code=32))
    ran = await node.run()
    assert ran.code == 1
    assert ran.message == "failed: /mnt/data could not be taken down (exit 32): umount: /mnt/data: target is busy."


async def test_another_boot_and_a_second_start_are_refused(node):
    ran = await node.run(EXPECTED_BOOT_ID="another")
    assert (ran.code, ran.message) == (2, f"refused: boot id is {BOOT}, not another: it was rebooted since")
    await node.run()
    ran = await node.run()
    assert (ran.code, ran.message) == (2, "refused: attempt op-uid.1 was started before in this boot")


async def test_a_dry_run_prints_what_would_be_run_and_changes_nothing(node):
    before = node.files()
    ran = await node.run("--dry-run")
    assert (ran.code, ran.message) == (0, "")
    assert f"would run nsenter {ENTER} umount -f -l /mnt/data\n" in ran.out
    assert f"would run nsenter {ENTER} mount -t nfs4 -o {node.options()} 127.0.0.1:/export /mnt/data\n" in ran.out
    assert (node.changes(), node.files()) == ([], before)


def mounted(tmp_path, line):
    (tmp_path / "mountinfo").write_text(line)
    [mount] = read_mounts(tmp_path / "mountinfo")
    return mount


def test_a_read_only_mount_stays_read_only_and_blanks_in_paths_are_kept(tmp_path):
    line = row("/mnt/my\\040data", 2049).replace("rw,relatime", "ro,relatime")
    mount = mounted(tmp_path, line)
    assert mount.point == "/mnt/my data"
    assert mount.wanted == "ro,relatime,vers=4.2,hard,proto=tcp,port=2049,local_lock=none"


def test_a_version_3_mount_asks_its_server_anew_for_the_port_of_mountd(tmp_path):
    found = "mountaddr=10.0.0.9,mountvers=3,mountport=20048,mountproto=udp"
    options = (
        f"rw,vers=3,rsize=1048576,namlen=255,hard,proto=tcp,timeo=600,sec=sys,{found},local_lock=none,addr=10.0.0.9"
    )
    mount = mounted(tmp_path, f"101 25 0:61 / /mnt/data rw,relatime shared:40 - nfs nfs1:/export {options}\n")
    assert mount.wanted == "rw,relatime,vers=3,rsize=1048576,hard,proto=tcp,timeo=600,sec=sys,local_lock=none"


async def test_a_volume_below_another_folder_of_the_kubelet_is_its_pods(node, server):
    volume = VOLUME.replace("/var/lib/kubelet", "/data/kubelet")
    node.process(1, "0::/init.scope\n", row(volume, node.port))
    node.process(77, GROUP, "")
    ran = await node.run(parameters={"kubeletRoot": "/data/kubelet"})
    assert (ran.code, node.changes()) == (2, [])
    assert f"owns {volume}" in ran.message
    ran = await node.run(parameters={"kubeletRoot": "data"})
    assert (ran.code, "kubeletRoot is not an absolute path" in ran.message) == (2, True)


@pytest.mark.parametrize(
    ("source", "options", "server"),
    [
        ("nfs1:/export", "vers=4.1,proto=tcp,addr=10.0.0.9", ("10.0.0.9", 2049, 4)),
        ("[fd00::1]:/export", "vers=3,proto=tcp6,port=20490", ("fd00::1", 20490, 3)),
        ("nfs1:/export", "vers=4.2,proto=rdma,port=20049,addr=10.0.0.9", ("10.0.0.9", 2049, 4)),
    ],
)
def test_the_server_is_read_from_the_options(source, options, server):
    assert server_of(Mount("/m", "0:1", "/", "nfs4", source, options, False)) == server


async def test_only_a_server_of_this_version_answers_for_it(server):
    ask = [(server.address, server.port, version) for version in (4, 3, 2)]
    told = [await asyncio.to_thread(why_silent, one, 5.0) for one in ask]
    assert told == ["", "", "it does not serve NFS version 2"]


async def test_a_server_that_takes_the_call_and_says_nothing_is_silent():
    async def silent(reader, writer):
        await reader.read()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        assert await asyncio.to_thread(why_silent, ("127.0.0.1", port, 4), 0.2) == "timed out"


def test_what_makes_no_sense_is_not_remembered(tmp_path):
    from remount_nfs import recall

    for text in ("", "{", "[1]", json.dumps([["too", "short"]])):
        (tmp_path / "down").write_text(text)
        assert recall(tmp_path / "down") == []
