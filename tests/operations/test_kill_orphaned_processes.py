"""The program that kills what Pods leave behind: on files that stand for /proc, and on real processes."""

import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from kill_orphaned_processes import confirm, orphans

from nodelib.contract.operation import Refused
from nodelib.host.cgroups import pod_of
from nodelib.host.processes import Process, read, require_own
from nodelib.host.terminate import send
from tests.operations.scripted import BOOT, NO_RKE2, Node, answer

GONE, ALIVE = "8f3c2a10-1111-2222-3333-444455556666", "d80f4a0e-576f-47a8-a0cf-69dc23dc1980"
STATIC = "3a1f2b4c5d6e7f8091a2b3c4d5e6f708"
HERE = (GONE.replace("-", ""), ALIVE.replace("-", ""))
CONTAINER = "4f" * 32


def group(uid):
    return f"0::/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope\n"


class OrphanNode(Node):
    """A node whose processes are real ones, shown with cgroups of our choice; its kubelet keeps one Pod."""

    def __init__(self, folder):
        super().__init__(folder, "kill_orphaned_processes")
        (self.root / "proc/self").symlink_to("/proc/self")
        self.children = []
        self.keeps(ALIVE)

    def keeps(self, *uids, crictl=None):
        absent = answer("crictl", "nsenter: failed to execute crictl: No such file or directory", code=127)
        self.answers(answer("ls -1A /var/lib/kubelet/pods", "\n".join(uids)), NO_RKE2, *(crictl or [absent]))

    def start(self, uid, *words, **options):
        """Start a process in a Pod, ready to be signalled."""
        words = words or ("sleep", "300")
        child = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True, **options)
        self.children.append(child)
        folder = self.root / "proc" / str(child.pid)
        folder.mkdir()
        for name in ("stat", "task"):
            (folder / name).symlink_to(f"/proc/{child.pid}/{name}")
        (folder / "cgroup").write_text(group(uid))
        return child

    def end(self):
        for child in self.children:
            child.kill()
            child.communicate()


@pytest.fixture
def node(tmp_path):
    node = OrphanNode(tmp_path)
    yield node
    node.end()


def run(node, *options, **given):
    return node.program(*options, parameters={"graceSeconds": 5, "killSeconds": 5, **given}, POD_UID=ALIVE)


def test_a_process_of_a_gone_pod_is_killed_and_its_twin_of_a_live_one_is_spared(node):
    orphan, twin = node.start(GONE), node.start(ALIVE)
    ran = run(node)
    assert (ran.code, ran.message) == (0, f"killed sleep (pid {orphan.pid}) of Pod {HERE[0]}"), ran.out
    assert (orphan.wait(10), twin.poll()) == (-signal.SIGTERM, None)


def test_one_that_does_not_heed_sigterm_gets_sigkill_after_the_grace(node):
    orphan = node.start(GONE, "sh", "-c", "trap '' TERM; echo set; while :; do sleep 0.05; done")
    assert orphan.stdout.readline() == b"set\n"
    ran = run(node, graceSeconds=0.3)
    assert (ran.code, orphan.wait(10)) == (0, -signal.SIGKILL), ran.out


def test_a_static_pod_goes_by_its_hash(node):
    node.keeps(ALIVE, STATIC)
    static = node.start(STATIC)
    assert run(node).message == "nothing to kill: no process of a Pod that is gone runs on gpu-1"
    assert static.poll() is None


@pytest.mark.parametrize("part", ["pods", "ps"])
def test_a_pod_that_the_runtime_still_runs_is_not_gone(node, part):
    sandbox = {"metadata": {"uid": GONE}, "state": "SANDBOX_READY" if part == "pods" else "SANDBOX_NOTREADY"}
    containers = [{"labels": {"io.kubernetes.pod.uid": GONE}}] if part == "ps" else []
    says = {"pods": json.dumps({"items": [sandbox]}), "ps": json.dumps({"containers": containers})}
    node.keeps(ALIVE, crictl=[answer(f"crictl {name}", text) for name, text in says.items()])
    orphan = node.start(GONE)
    assert run(node).code == 0
    assert orphan.poll() is None


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([answer("ls", "", code=2)], "cannot determine which Pods live"),
        ([answer("ls", "")], "cannot determine which Pods live"),
        ([answer("ls", STATIC)], "does not know this very Pod"),
        (
            [answer("ls", ALIVE), answer("crictl", "connection refused", code=1)],
            "the container runtime does not answer",
        ),
    ],
)
def test_not_to_know_who_lives_kills_nobody(node, answers, why):
    node.answers(*answers)
    orphan = node.start(GONE)
    ran = run(node)
    assert (ran.code, orphan.poll()) == (2, None)
    assert why in ran.message


def test_only_the_pods_that_are_named_are_looked_at_and_a_live_one_is_refused(node):
    orphan, other = node.start(GONE), node.start(STATIC)
    ran = run(node, podUIDs=[ALIVE])
    assert (ran.code, ran.message.partition(":")[0]) == (2, "refused")
    assert HERE[1] in ran.message
    ran = run(node, podUIDs=[GONE])
    assert (ran.code, orphan.wait(10), other.poll()) == (0, -signal.SIGTERM, None), ran.out


def test_a_dry_run_names_them_and_signals_nobody(node):
    orphan, before = node.start(GONE), node.files()
    ran = run(node, "--dry-run")
    assert (ran.code, ran.message, orphan.poll(), node.files()) == (0, "", None, before)
    assert f"send SIGTERM, and after 5 s SIGKILL, to sleep (pid {orphan.pid}) of Pod {HERE[0]}" in ran.out


def test_another_boot_and_a_second_start_are_refused(node):
    orphan = node.start(GONE)
    ran = node.program(EXPECTED_BOOT_ID="another")
    assert (ran.code, ran.message) == (2, f"refused: boot id is {BOOT}, not another: it was rebooted since")
    assert run(node).code == 0
    orphan.wait(10)
    assert run(node).message == "refused: attempt op-uid.1 was started before in this boot"


def test_pids_of_another_namespace_are_refused(node):
    orphan = node.start(GONE)
    (node.root / "proc/self").unlink()
    (node.root / "proc/self").symlink_to("/proc/1")
    ran = run(node)
    assert (ran.code, orphan.poll()) == (2, None)
    assert "hostPID: true" in ran.message
    require_own(Path("/proc"))


def test_a_pid_that_means_another_process_by_now_is_not_signalled(node):
    other = node.start(GONE)
    proc = node.root / "proc"
    process = read(proc, other.pid)
    send(proc, process._replace(start=process.start - 1), signal.SIGKILL)
    send(proc, process._replace(pod=HERE[1]), signal.SIGKILL)
    (proc / str(other.pid) / "cgroup").write_text("0::/system.slice/sshd.service\n")
    send(proc, process, signal.SIGKILL)
    other.terminate()
    assert other.wait(10) == -signal.SIGTERM, "it was killed before"


P = "12345678-1234-1234-1234-123456789abc"
U = P.replace("-", "_")


@pytest.mark.parametrize(
    ("cgroup", "uid"),
    [
        (f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{U}.slice/crio-{CONTAINER}.scope", P),
        (f"11:memory:/kubepods/burstable/pod{P}/{CONTAINER}\n3:pids:/kubepods/burstable/pod{P}/{CONTAINER}", P),
        (f"11:memory:/kubepods/burstable/pod{P}/{CONTAINER}\n3:cpu:/", P),
        (f"0::/../../kubepods-besteffort.slice/kubepods-besteffort-pod{U}.slice/cri-containerd-{CONTAINER}.scope", P),
        (f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{U}.slice/{CONTAINER}", P),
        (f"0::/kubepods/besteffort/pod{P} (deleted)", P),
        (f"0::/kubepods/pod{P}/{CONTAINER}/kubelet/kubepods/pod{GONE}/5e", P),
        (f"0::/kubepods/pod{STATIC}/{CONTAINER}", STATIC),
        # A cluster inside a container: its Pods are none of this kubelet's.
        (f"0::/docker/{CONTAINER}/kubelet/kubepods/pod{P}/5e", ""),
        (f"0::/system.slice/docker-{CONTAINER}.scope/kubelet.slice/kubelet-kubepods-pod{U}.slice/5e", ""),
        (f"0::/lxc.payload.one/kubepods/pod{P}/5e", ""),
        (f"1:a:/kubepods/pod{P}/5e\n2:b:/kubepods/pod{GONE}/5e", ""),
        ("0::/system.slice/kubelet.service", ""),
        (f"0::/user.slice/pod{P[:-1]}x", ""),
        ("", ""),
    ],
)
def test_the_pod_of_a_cgroup_is_one_of_this_nodes_own_kubelet_or_none(cgroup, uid):
    assert pod_of(cgroup) == uid.replace("-", "")


def test_a_process_without_a_pod_is_never_an_orphan():
    one, two = Process(7, 1, "sshd", ""), Process(8, 1, "python3", HERE[0])
    assert orphans([one, two], {HERE[1]}, set()) == [two]
    assert orphans([one, two], {HERE[0]}, set()) == []
    with pytest.raises(Refused, match=HERE[0]):
        orphans([two], {HERE[0]}, {HERE[0]})


def test_one_that_sleeps_in_the_kernel_with_sigkill_pending_needs_a_reboot(tmp_path):
    line = "7 (python3) {} " + " ".join(["0"] * 18) + " 42 0\n"
    for path, state in (("7", "Z"), ("7/task/7", "Z"), ("7/task/9", "D")):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "stat").write_text(line.format(state))
    (tmp_path / "7/cgroup").write_text("4:pids:/\n0::/\n")  # all that version 1 shows of one that has ended
    (tmp_path / "7/task/9/cgroup").write_text(group(GONE))
    (tmp_path / "7/task/9/status").write_text("State:\tD\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n")
    stuck = read(tmp_path, 7)
    assert stuck == Process(7, 42, "python3", HERE[0]), "its leader has ended, another thread has not"
    with pytest.raises(Exception, match=rf"unkillable: python3 \(pid 7\) of Pod {HERE[0]}: reboot the node"):
        confirm(tmp_path, [stuck], [stuck])
    (tmp_path / "7/task/9/status").write_text("SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n")
    with pytest.raises(Exception, match="still there after SIGKILL: python3"):
        confirm(tmp_path, [stuck], [stuck])
    (tmp_path / "7/task/9/stat").write_text(line.format("Z"))
    assert read(tmp_path, 7) is None


@contextmanager
def pod_cgroups(*uids):
    """Real cgroups of Pods in the hierarchy that this machine has, taken away again."""
    top = next((path for path in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup") if Path(path, "cgroup.procs").exists()), "")
    above = Path(top) / "kubepods"
    if not top or os.geteuid() != 0 or above.exists() or not os.access(top, os.W_OK):
        pytest.skip("needs root and a cgroup hierarchy of its own, on a machine that is no Kubernetes node")
    made = [above, *(above / f"pod{uid}" for uid in uids), *(above / f"pod{uid}" / CONTAINER for uid in uids)]
    try:
        for folder in made:
            folder.mkdir()
        yield [above / f"pod{uid}" / CONTAINER for uid in uids]
    finally:
        until = time.monotonic() + 10
        for folder in reversed(made):
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError:
                    assert time.monotonic() < until, f"{folder} stays"
                    time.sleep(0.05)


@pytest.mark.cluster
def test_in_real_cgroups_the_process_of_a_gone_pod_is_killed_and_its_twin_is_spared(tmp_path):
    node = Node(tmp_path, "kill_orphaned_processes")
    (node.root / "proc/sys/kernel/random/boot_id").unlink()
    for folder in ("sys/kernel/random", "sys/kernel", "sys", ""):
        (node.root / "proc" / folder).rmdir()
    (node.root / "proc").symlink_to("/proc")
    node.program.variables["EXPECTED_BOOT_ID"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    node.answers(answer("ls", ALIVE), answer("crictl", "nsenter: failed to execute crictl: No such file", code=127))
    with pod_cgroups(GONE, ALIVE) as groups:
        twins = [subprocess.Popen(["sleep", "300"]) for _ in groups]
        try:
            for folder, one in zip(groups, twins, strict=True):
                (folder / "cgroup.procs").write_text(str(one.pid))
            # Named, so that on a machine with Pods of its own no other could ever be meant.
            ran = run(node, podUIDs=[GONE])
            assert (ran.code, ran.message) == (0, f"killed sleep (pid {twins[0].pid}) of Pod {HERE[0]}"), ran.out
            assert (twins[0].wait(10), twins[1].poll()) == (-signal.SIGTERM, None)
            assert run(node, podUIDs=[ALIVE]).code == 2
            assert twins[1].poll() is None
        finally:
            for one in twins:
                one.kill()
                one.wait()
