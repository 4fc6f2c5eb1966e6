"""nfs_mount asks a real file system that answers, refuses, and then hangs for good.

The kernel's FUSE stands for its NFS: a request that the server has taken is waited for in state D, SIGKILL or not.
"""

import json
import os
import signal
import subprocess

import pytest

from nodelib.host.child_process import GRACE
from tests.detectors.kernel.needs import needs
from tests.detectors.kernel.nfs_node import DEADLINE, NfsNode
from tests.detectors.kernel.stuck import is_unkillable, wait_for
from tests.detectors.null_server import NullServer

pytestmark = needs("fuse")
OK, FAULT, UNKNOWN = 0, 1, 2
SLACK = 4.0  # seconds for the start of Python on a busy machine, and for asking the server


@pytest.fixture
def file_server():
    server = NullServer()
    yield server
    server.close()


@pytest.fixture
def node(tmp_path, fuse, file_server):
    return NfsNode(tmp_path, fuse, file_server.port)


def test_a_mount_that_answers_is_fine_and_is_asked_once_in_each_run(node, fuse):
    assert node.look()[:2] == (OK, "every NFS mount answers")
    assert node.look()[0] == OK
    assert fuse.asked == 2, "statfs went to the server each time"


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (116, FAULT, "is stale (ESTALE)"),
        (5, UNKNOWN, "fails (EIO): look at its server 127.0.0.1"),
        (13, UNKNOWN, "fails (EACCES): look at its server 127.0.0.1"),
    ],
)
def test_what_the_kernel_says_of_a_mount_is_told(node, fuse, number, code, words):
    fuse.tell(f"answer {number}")
    found = node.look()
    assert found[0] == code
    assert found[1].startswith(f"{node.name} {words}")


def test_a_mount_that_hangs_costs_one_child_that_cannot_be_killed_and_no_run_takes_longer_than_it_may(node, fuse):
    fuse.tell("hang")
    first, second = node.look(), node.look()
    assert first[:2] == (UNKNOWN, f"{node.name} hangs though its server answers (seen once)")
    assert first[2] < DEADLINE + GRACE + SLACK
    assert second[:2] == (FAULT, f"{node.name} hangs though its server answers")
    assert second[2] < SLACK, "the child of the first run is remembered: nobody waits again"
    [child] = node.children()
    assert node.record()["pid"] == child
    assert is_unkillable(child), "else this proves nothing"
    assert fuse.asked == 1
    kept = json.loads((node.state / "evidence/nfs_mount.json").read_text())
    assert kept["mounts"][0]["mount"] == str(fuse.point)

    fuse.tell("abort")
    wait_for(lambda: not node.children())
    code, line, _ = node.look()
    assert code == UNKNOWN
    assert line == f"{node.name} fails (ENOTCONN): look at its server 127.0.0.1:{node.port}"


def test_a_mount_that_hangs_with_its_server_is_not_this_nodes_fault_and_a_late_answer_ends_it(node, fuse, file_server):
    file_server.mood = "silent"
    fuse.tell("hang")
    words = f"{node.name} hangs: its server 127.0.0.1:{node.port} does not answer"
    assert node.look()[:2] == (UNKNOWN, words)
    assert len(node.children()) == 1
    fuse.tell("answer 0")
    wait_for(lambda: not node.children())
    assert node.look()[:2] == (OK, "every NFS mount answers")


def test_a_detector_that_is_itself_killed_while_it_waits_leaves_a_child_that_the_next_run_knows(node, fuse):
    fuse.tell("hang")
    command = node.command("nfs_mount", "--deadline=60")
    process = subprocess.Popen(command, env={"PATH": os.environ["PATH"]}, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: fuse.asked == 1 and "pid" in node.record())
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert node.look()[:2] == (UNKNOWN, f"{node.name} could not be asked: a probe of another run is still under way")
    assert (fuse.asked, len(node.children())) == (1, 1)
