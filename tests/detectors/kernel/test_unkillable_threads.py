"""unkillable_process and kill_orphaned_processes on the real /proc: a thread of a Pod that is gone outlives SIGKILL."""

import json
import os
import subprocess
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodelib.host.cgroups import bare
from nodelib.nvml.gpu_owners import read_owners
from tests.detectors.kernel.needs import needs
from tests.detectors.kernel.stuck import COMM, FORMS, Victim, hierarchies, pod_cgroups
from tests.detectors.node import DETECTORS
from tests.detectors.proc_tree import CONTAINER
from tests.harness.apiserver import ApiServer
from tests.harness.objects import pod
from tests.operations.scripted import Node, answer

pytestmark = needs("disk")
OK, FAULT, UNKNOWN = 0, 1, 2
FINE = "no process of a pod that is gone is left"


@pytest.fixture
def api(tmp_path):
    api = ApiServer(tmp_path)
    yield api
    api.close()


def known(uid):
    """A Pod that the API server lists for this node."""
    return pod(f"trainer-{uid[:8]}", uid=uid)


def look(api, state, now, *options):
    """Run the detector on the real /proc, as node-problem-detector would."""
    env = {"PATH": os.environ["PATH"], **api.environment(), "NODE_NAME": "gpu-1"}
    command = [str(DETECTORS / "unkillable_process.py"), f"--state={state}", f"--now={now}", *options]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.strip()


@contextmanager
def stuck(disk, version, form, kind, *uids):
    """Pods with one container each, whose process was killed and cannot end."""
    if version not in hierarchies():
        pytest.skip(f"no writable cgroup hierarchy of version {version[1]}")
    with pod_cgroups(version, form, *uids) as folders:
        victims = []
        disk.freeze()
        try:
            for folder in folders:
                victims.append(Victim(disk.folder / "file", folder, kind))
            for victim in victims:
                victim.kill()
            yield victims
        finally:
            disk.thaw()
            for victim in victims:
                victim.end()


@pytest.mark.parametrize("kind", ["leader", "thread"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_thread_of_a_gone_pod_is_a_fault_its_twin_of_a_living_one_is_not_and_all_is_well_after_the_thaw(
    disk, api, tmp_path, version, form, kind
):
    gone, living = str(uuid.uuid4()), str(uuid.uuid4())
    api.put(known(living))
    with stuck(disk, version, form, kind, gone, living) as victims:
        code, line = look(api, tmp_path / "state", 100)
        assert code == UNKNOWN
        assert f"a process of pod {gone} was killed and has not ended yet: {COMM} waits in " in line
        assert api.requests == []
        code, line = look(api, tmp_path / "state", 160)
        assert code == FAULT
        assert line.startswith(f"pod {gone} is gone but a process of it cannot be killed: {COMM} waits in ")
        assert living not in line
        [kept] = json.loads((tmp_path / "state/evidence/unkillable_process.json").read_text())["threads"]
        own = victims[0].pid
        assert (kept["pid"], kept["tid"] == own, kept["container"]) == (own, kind == "leader", CONTAINER)
        assert kept["pod"] == bare(gone)
        api.put(known(gone))
        assert look(api, tmp_path / "state", 161) == (OK, FINE), "its twin: the same thread while its Pod lives"
        api.remove("pods", "team", known(gone)["metadata"]["name"])
        assert look(api, tmp_path / "state", 162)[0] == FAULT
    assert look(api, tmp_path / "state", 163) == (OK, FINE)
    assert not (tmp_path / "state/evidence/unkillable_process.json").exists()


def test_the_kernels_own_words_on_where_it_waits_are_told(disk, api, tmp_path):
    gone = str(uuid.uuid4())
    with stuck(disk, next(iter(hierarchies())), "systemd", "thread", gone) as [victim]:
        tid = max(int(task.name) for task in Path(f"/proc/{victim.pid}/task").iterdir())
        wchan = Path(f"/proc/{victim.pid}/task/{tid}/wchan").read_text()
        for now in (100, 160):
            code, line = look(api, tmp_path / "state", now)
        assert (code, line.rpartition(" ")[2]) == (FAULT, wchan)
        [kept] = json.loads((tmp_path / "state/evidence/unkillable_process.json").read_text())["threads"]
    assert any(one.startswith(wchan) for one in kept["stack"]), kept


def test_a_thread_that_waits_but_was_not_killed_is_none_of_its_business(disk, api, tmp_path):
    gone = str(uuid.uuid4())
    with pod_cgroups(next(iter(hierarchies())), "systemd", gone) as [folder]:
        disk.freeze()
        victim = Victim(disk.folder / "file", folder)
        try:
            victim.waits()
            for now in (100, 160):
                assert look(api, tmp_path / "state", now) == (OK, FINE)
        finally:
            disk.thaw()
            victim.end()


# Of a first thread that has ended, a hierarchy of version 1 shows no cgroup any more, one of version 2 does.
@pytest.mark.parametrize("kind", ["leader", "thread"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_whose_a_process_on_a_gpu_is_can_be_told_of_one_that_cannot_be_killed(disk, version, kind):
    gone = str(uuid.uuid4())
    with stuck(disk, version, "systemd", kind, gone) as [victim]:
        owner = read_owners(Path("/proc"), [victim.pid])[victim.pid]
        assert (owner.pod, owner.container, owner.ended) == (bare(gone), CONTAINER, False)


@pytest.mark.parametrize("kind", ["leader", "thread"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_kill_orphaned_processes_sends_its_signals_and_says_that_only_a_reboot_ends_it(disk, tmp_path, version, kind):
    gone, living = str(uuid.uuid4()), str(uuid.uuid4())
    node, root = Node(tmp_path, "kill_orphaned_processes"), tmp_path / "real"
    root.mkdir()
    (root / "proc").symlink_to("/proc")
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    node.program.variables |= {"HOST_ROOT": str(root), "EXPECTED_BOOT_ID": boot, "POD_UID": living}
    node.answers(answer("ls", living), answer("crictl", "nsenter: failed to execute crictl: No such file", code=127))
    given = {"podUIDs": [gone], "graceSeconds": 0.2, "killSeconds": 0.2}
    with stuck(disk, version, "systemd", kind, gone) as [victim]:
        ran = node.program(parameters=given)
        words = f"unkillable: {COMM} (pid {victim.pid}) of Pod {bare(gone)}: reboot the node"
        assert (ran.code, ran.message) == (1, f"failed: {words}"), ran.out
    ran = node.program(parameters=given, ATTEMPT_ID="op-uid.2")
    assert (ran.code, ran.message) == (0, "nothing to kill: no process of a Pod that is gone runs on gpu-1"), ran.out
