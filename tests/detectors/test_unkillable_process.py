"""unkillable_process over files that stand for /proc, over the real one, and beside an API server."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodelib.host.proc_files import is_killed, parse_stat
from nodelib.host.threads import scan
from tests.cluster.keys import Keys
from tests.detectors.node import DETECTORS
from tests.detectors.null_server import dead_port
from tests.detectors.proc_tree import CONTAINER, UID, ProcTree, pod_cgroup, stat_line
from tests.harness.apiserver import ApiServer
from tests.harness.objects import pod

OK, FAULT, UNKNOWN = 0, 1, 2
OTHER = "d80f4a0e-576f-47a8-a0cf-69dc23dc1980"
FINE = "no process of a pod that is gone is left"
GONE = f"pod {UID} is gone but a process of it cannot be killed: python3 waits in nfs_wait_bit_killable"


@pytest.fixture
def api(tmp_path):
    """A real HTTPS server that knows one other Pod on this node."""
    api = ApiServer(tmp_path)
    api.put(known(OTHER))
    yield api
    api.close()


def known(uid, **about):
    return pod(f"trainer-{uid}", **{"uid": uid, **about})


class Node(ProcTree):
    """A node with some healthy processes."""

    def __init__(self, root, api):
        super().__init__(root)
        self.api = api
        self.process(20, "kthreadd worker", "I", "0::/\n")
        self.process(700, "python3", "S", pod_cgroup(OTHER))
        self.thread(700, 701, "cuda-EvtHandlr", "D", pod_cgroup(OTHER))

    def look(self, now, *options, node="gpu-1"):
        env = {**self.api.environment(), "NODE_NAME": node}
        return self.run("unkillable_process", f"--now={now}", *options, env=env.items())


@pytest.fixture
def node(tmp_path, api):
    return Node(tmp_path, api)


def test_a_healthy_node_is_fine_and_nobody_is_asked(node):
    assert node.look(100)[:2] == (OK, FINE)
    assert node.api.requests == []
    assert json.loads((node.state / "marks/unkillable_process.json").read_text())["finished_at"] == 100


def test_a_killed_thread_of_a_gone_pod_that_stands_still_is_a_fault_in_the_second_run(node):
    node.stuck(4242)
    first = node.look(100)
    assert first.code == UNKNOWN
    assert "was killed and has not ended yet: python3 waits in nfs_wait_bit_killable" in first.line
    assert node.look(159).code == UNKNOWN, "59 seconds are too few"
    assert node.api.requests == []
    assert node.look(160)[:2] == (FAULT, GONE)
    assert [path for _, path, _ in node.api.requests] == ["/api/v1/pods"]


def test_its_twin_whose_pod_lives_is_fine(node):
    node.stuck(4242)
    node.api.put(known(UID))
    node.look(100)
    assert node.look(160)[:2] == (OK, FINE)


def test_a_pod_whose_grace_of_deletion_is_over_is_gone_and_one_within_is_not(node):
    node.stuck(4242)
    node.look(100)
    node.api.put(known(UID, deletionTimestamp="2199-01-01T00:00:00Z", deletionGracePeriodSeconds=30))
    assert node.look(160).code == OK
    node.api.put(known(UID, deletionTimestamp="2001-01-01T00:00:00Z", deletionGracePeriodSeconds=30))
    assert node.look(161)[:2] == (FAULT, GONE)


def test_a_static_pod_is_known_by_the_hash_of_its_manifest(node):
    node.stuck(4242, uid="3a1f2b4c5d6e7f8091a2b3c4d5e6f708")
    node.look(100)
    assert node.look(160).code == FAULT
    notes = {f"kubernetes.io/config.{word}": "3a1f2b4c5d6e7f8091a2b3c4d5e6f708" for word in ("hash", "mirror")}
    owner = {"apiVersion": "v1", "kind": "Node", "name": "gpu-1", "uid": "n"}
    node.api.put(known(UID, annotations=notes, ownerReferences=[owner]))
    assert node.look(161).code == OK


def healthy_twins(node):
    """Yield what looks alike and is no fault: each a change to a node with a stuck process."""
    cgroup = pod_cgroup()
    yield lambda: node.thread(4242, 4243, "x", "D", cgroup, killed=False)  # a wait that nobody wants to end
    yield lambda: node.thread(4242, 4243, "x", "S", cgroup, killed=True)
    yield lambda: node.thread(4242, 4243, "x", "D", "0::/system.slice/sshd.service\n", killed=True)  # no Pod's
    yield lambda: node.write("proc/4242/stat", stat_line(4242, "x", "S"))  # the process was not killed
    yield lambda: node.write("proc/4242/stat", stat_line(4242, "nfsd", "D", flags=0x200000))  # the kernel's own


@pytest.mark.parametrize("index", range(5))
def test_what_only_looks_like_it_is_fine(node, index):
    node.stuck(4242)
    list(healthy_twins(node))[index]()
    for now in (100, 160, 220):
        assert node.look(now)[:2] == (OK, FINE)
    assert node.api.requests == []


def test_a_thread_that_moves_between_runs_is_not_stuck(node):
    for now in (100, 160, 220):
        node.stuck(4242, switches=now)
        assert node.look(now).code == UNKNOWN
    assert node.api.requests == []
    assert node.look(280).code == FAULT


def test_another_process_with_the_same_pid_begins_anew(node):
    node.stuck(4242)
    node.look(100)
    node.stuck(4242, start=777)
    assert node.look(160).code == UNKNOWN
    assert node.look(220).code == FAULT


def test_a_boot_in_between_begins_anew(node):
    node.stuck(4242)
    node.look(100)
    node.write("proc/sys/kernel/random/boot_id", "two\n")
    assert node.look(160).code == UNKNOWN


def test_a_leader_that_is_stuck_itself_counts_too(node):
    node.process(4242, "python3", "D", pod_cgroup())
    node.thread(4242, 4242, "python3", "D", pod_cgroup(), killed=True, wchan="nfs_wait_bit_killable")
    node.look(100)
    assert node.look(160)[:2] == (FAULT, GONE)


def test_a_pod_is_never_gone_because_the_api_server_cannot_be_asked(node):
    node.stuck(4242)
    node.look(100)
    node.api.refuse(500)
    ran = node.look(160)
    assert ran.code == UNKNOWN
    assert ran.line.endswith("ValueError: HTTP 500")
    for status in (401, 403, 404, 410, 429):
        node.api.refuse(status)
        assert node.look(160).code == UNKNOWN
    assert node.look(160).code == FAULT


def environments(node):
    whole = {**node.api.environment(), "NODE_NAME": "gpu-1"}
    yield {name: value for name, value in whole.items() if name != "NODE_NAME"}, "NODE_NAME is not set"
    yield {"NODE_NAME": "gpu-1"}, "KUBERNETES_SERVICE_HOST is not set"
    yield {**whole, "TOKEN_DIR": str(node.root / "none")}, "FileNotFoundError"
    yield {**whole, "KUBERNETES_SERVICE_PORT": str(dead_port())}, "ConnectionRefusedError"
    yield {**whole, "KUBERNETES_SERVICE_PORT": "soon"}, "ValueError"


@pytest.mark.parametrize("index", range(5))
def test_without_a_way_to_the_api_server_it_cannot_tell_and_says_why(node, index):
    node.stuck(4242)
    node.look(100)
    env, words = list(environments(node))[index]
    ran = node.run("unkillable_process", "--now=160", env=env.items())
    assert ran.code == UNKNOWN
    assert "nobody knows if the pod is gone" in ran.line
    assert words in ran.line
    assert "Traceback" not in ran.err


def test_the_token_folder_can_be_given_as_an_option(node):
    node.stuck(4242)
    env = {**node.api.environment(), "NODE_NAME": "gpu-1"}
    folder = env.pop("TOKEN_DIR")
    for now in (100, 160):
        ran = node.run("unkillable_process", f"--now={now}", f"--token-dir={folder}", env=env.items())
    assert ran.code == FAULT


def test_a_token_of_two_words_shows_nowhere(node):
    """What sends it would quote it."""
    node.stuck(4242)
    node.look(100)
    env = {**node.api.environment(), "NODE_NAME": "gpu-1"}
    Path(env["TOKEN_DIR"], "token").write_text("canary\ncanary\n")
    ran = node.run("unkillable_process", "--now=160", env=env.items())
    assert ran.code == UNKNOWN
    assert "holds no token, or more than one word" in ran.line
    assert "canary" not in ran.line + ran.err


def as_kubelet(node, user):
    """Put the file on the node with which its kubelet asks; the authority is that of the API server."""
    folder = node.root / "keys"
    folder.mkdir(exist_ok=True)
    env = node.api.environment()
    server = f"https://{env['KUBERNETES_SERVICE_HOST']}:{env['KUBERNETES_SERVICE_PORT']}"
    authority = Path(env["TOKEN_DIR"], "ca.crt").read_bytes()
    config = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode(), **user(folder)}
    node.write("proc/1/root/etc/kubernetes/kubelet.conf", json.dumps({"clusters": [config]}))


def certificate(folder):
    """What a kubelet has in files."""
    path, key = Keys(folder).issue("system:node:gpu-1", ["system:nodes"])
    return {
        "client-certificate-data": base64.b64encode(path.read_bytes()).decode(),
        "client-key-data": base64.b64encode(key.read_bytes()).decode(),
    }


def test_it_asks_as_the_kubelet_of_its_node_and_needs_no_token(node):
    node.stuck(4242)
    as_kubelet(node, certificate)
    for now in (100, 160):
        ran = node.run("unkillable_process", f"--now={now}", env={"NODE_NAME": "gpu-1"}.items())
    assert (ran.code, ran.line) == (FAULT, GONE)


def test_where_the_kubelet_has_no_certificate_its_own_token_asks_and_what_both_say_is_told(node):
    node.stuck(4242)
    as_kubelet(node, lambda folder: {"exec": {"command": "aws"}})
    node.look(100)
    node.api.refuse(403)
    ran = node.look(160)
    assert ran.code == UNKNOWN
    assert "as the kubelet: Unusable: /etc/kubernetes/kubelet.conf has no client-certificate" in ran.line
    assert ran.line.endswith("with our token: the API server cannot be asked: ValueError: HTTP 403")
    assert node.look(161)[:2] == (FAULT, GONE)


def test_a_list_of_several_pages_is_read_to_its_end(node):
    node.stuck(4242)
    node.api.pods = [known(f"{index:08x}{OTHER[8:]}") for index in range(700)] + [known(UID)]
    node.look(100)
    assert node.look(160).code == OK
    assert len(node.api.requests) == 2


def test_evidence_is_of_the_first_sight_and_holds_the_stack(node):
    node.stuck(4242)
    node.write("proc/4242/task/4243/stack", "[<0>] nfs_wait_bit_killable+0x1/0x2 [nfs]\n[<0>] do_exit+0x1/0x2\n")
    node.look(100)
    node.look(160)
    path = node.state / "evidence/unkillable_process.json"
    kept = json.loads(path.read_text())
    [thread] = kept["threads"]
    assert (thread["pid"], thread["tid"], thread["container"]) == (4242, 4243, CONTAINER)
    assert thread["stack"] == ["nfs_wait_bit_killable+0x1/0x2 [nfs]", "do_exit+0x1/0x2"]
    assert len(path.read_bytes()) < 4096
    node.thread(4242, 4243, "x", "S", pod_cgroup())
    assert node.look(220).code == OK
    assert not path.exists()


def test_nothing_is_opened_that_may_block_on_a_stuck_process(node):
    node.stuck(4242)
    for name in ("cmdline", "environ", "maps", "smaps", "exe", "fd"):
        for folder in ("proc/4242", "proc/4242/task/4243"):
            os.mkfifo(node.root / folder / name)  # who opens one of these hangs
    node.look(100)
    assert node.look(160).code == FAULT


@pytest.mark.parametrize("name", ["4242/stat", "4242/task/4243/stat", "4242/task/4243/status", "4242/task/4243/cgroup"])
@pytest.mark.parametrize("text", ["", "nonsense", "4242 (x) ? 1"])
def test_a_file_that_makes_no_sense_is_cannot_tell(node, name, text):
    node.stuck(4242)
    node.write(f"proc/{name}", text)
    for now in (100, 160):
        assert node.look(now)[:2] == (UNKNOWN, "/proc has files that make no sense")


def test_a_process_that_ends_while_it_is_read_is_no_doubt(node):
    node.stuck(4242)
    for name in ("stat", "status", "cgroup", "wchan"):
        (node.proc / "4242/task/4243" / name).unlink()
    node.write("proc/31337/comm", "just ended\n")
    assert node.look(100)[:2] == (OK, FINE)


def test_an_empty_proc_is_cannot_tell(node):
    ran = node.run("unkillable_process", f"--proc={node.root / 'sys-empty'}")
    assert ran.code == UNKNOWN
    (node.root / "sys-empty").mkdir()
    assert node.run("unkillable_process", f"--proc={node.root / 'sys-empty'}")[:2] == (
        UNKNOWN,
        "no process can be read in /proc",
    )


@pytest.mark.parametrize(
    "text", ["", "[", '{"threads": 3, "boot_id": "one"}', '{"threads": {"x": 1}, "boot_id": "one"}']
)
def test_a_state_file_that_makes_no_sense_is_overcome(node, text):
    node.write("state/unkillable_process.json", text)
    assert node.look(100).code == OK


def test_explain_shows_threads_and_pods_and_leaves_no_mark(node):
    node.stuck(4242)
    ran = node.look(100, "--explain")
    assert "standing since 100 s after boot" in ran.line
    assert "pods: not asked" in ran.line
    assert not (node.state / "marks").exists()


def test_node_problem_detector_runs_it_often_enough_to_tell_by_the_second_run():
    config = json.loads((DETECTORS.parent / "deploy/npd/unkillable-process.json").read_text())
    [apart] = [one.partition("=")[2] for one in config["rules"][0]["args"] if one.startswith("--apart=")]
    assert float(apart) < float(config["pluginConfig"]["invoke_interval"].removesuffix("s"))


# The real /proc.

VFORK = """
import os, sys
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])
"""


@pytest.fixture
def waiting(tmp_path):
    """A process in D: it waits for its child to open a FIFO that nobody writes to. SIGKILL ends it."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", VFORK, str(fifo)], start_new_session=True)
    until = time.monotonic() + 20
    while not (has_child(process.pid) and state_of(process.pid) == "D") and time.monotonic() < until:
        time.sleep(0.01)  # before the child is there, D is a file that is read
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def has_child(pid):
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def state_of(pid):
    return parse_stat(Path(f"/proc/{pid}/stat").read_text()).state


def test_a_real_wait_in_d_that_can_be_killed_is_not_taken_for_one_that_cannot(waiting, tmp_path):
    assert state_of(waiting.pid) == "D"
    os.kill(waiting.pid, signal.SIGTERM)
    assert not is_killed(Path(f"/proc/{waiting.pid}/task/{waiting.pid}/status").read_text())
    assert waiting.pid not in {thread.pid for thread in scan(Path("/proc")).threads}


def test_the_real_proc_is_read_without_a_doubt(tmp_path):
    command = [str(DETECTORS / "unkillable_process.py"), f"--state={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (OK, FINE)
