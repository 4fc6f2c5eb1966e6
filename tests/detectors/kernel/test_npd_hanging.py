"""What hangs, under the real node-problem-detector: it is told in time, by one child, and other monitors go on."""

import time

import pytest

from nodelib.host.child_process import GRACE
from tests.detectors.kernel.needs import needs
from tests.detectors.kernel.nfs_node import NfsNode
from tests.detectors.kernel.npd import DEADLINE, SECONDS, SLACK, Count, monitor, played, runs
from tests.detectors.kernel.stuck import children_of, is_unkillable
from tests.detectors.node import DETECTORS
from tests.detectors.null_server import NullServer
from tests.harness.waiting import until

pytestmark = [*needs("disk", "fuse"), pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


@pytest.fixture
def file_server():
    server = NullServer()
    yield server
    server.close()


async def test_a_hanging_mount_is_told_while_every_other_monitor_goes_on_and_only_one_child_asks_it(
    server, fuse, file_server, tmp_path
):
    node = NfsNode(tmp_path / "files", fuse, file_server.port)
    async with played(server, tmp_path / "node") as play, Count(f"{node.proc}/1/root{fuse.point}") as children:
        play.says(0)
        file = monitor(play.directory, "nfs-mount", node.command("nfs_mount", f"--deadline={DEADLINE}"))
        await play.start(play.file(), file)
        await play.shows("False", "NfsStale", reason="NfsMountsAnswer")
        fuse.tell("hang")
        await until(lambda: node.record().get("pid") and not node.record().get("hung"), SECONDS)
        await play.runs(3)
        assert not node.record().get("hung"), "three runs of the other monitor, and the first child is still waited for"
        seen = await play.shows("True", "NfsStale")
        assert seen.said == ("True", "NfsMountStuck", f"{node.name} hangs though its server answers")
        [child] = node.children()
        assert is_unkillable(child)
        asked = fuse.asked
        await runs(node.state, "nfs_mount", 5)
        await play.runs(3)
        assert (node.children(), children.most, fuse.asked) == ([child], 1, asked)
        fuse.tell("abort")
        seen = await play.shows("Unknown", "NfsStale")
        assert seen.message.startswith(f"{node.name} fails (ENOTCONN): look at its server 127.0.0.1")


# What every detector that must ask something writes, and what it must not write.
SAFE = """
import sys
sys.path.insert(0, {nodelib!r})
from pathlib import Path
from nodelib.host.child_process import ask
child = "import sys; open(sys.argv[1], 'w').close(); open(sys.argv[2], 'w').write('{{\\"done\\": true}}')"
answer = ask([sys.executable, "-I", "-S", "-c", child, {target!r}], Path({state!r}), "disk", {deadline})
print("it hangs" if answer.silent_since else "it answers")
sys.exit(1 if answer.silent_since else 0)
"""
NAIVE = """
import subprocess, sys
try:
    subprocess.run([sys.executable, "-c", "import sys; open(sys.argv[1], 'w')", {target!r}], timeout=1)
except subprocess.TimeoutExpired:
    sys.exit(1)
"""


async def test_a_child_on_a_frozen_disk_is_left_behind_in_time_where_a_plain_one_holds_up_its_monitor(
    server, disk, tmp_path
):
    words = {"target": f"{disk.folder}/file", "state": str(tmp_path / "state"), "nodelib": str(DETECTORS.parent)}
    async with played(server, tmp_path / "node") as play, Count(words["target"]) as children:
        safe = {"path": str(play.program(SAFE.format(**words, deadline=DEADLINE), "safe")), "condition": "Safe"}
        other = {**words, "target": f"{disk.folder}/other"}
        naive = {"path": str(play.program(NAIVE.format(**other), "naive")), "condition": "Naive", "timeout": "3s"}
        play.says(0)
        files = [play.file()]
        for rule in (safe, naive):
            conditions = [{"type": rule["condition"], "reason": "Well", "message": "it answers"}]
            name = f"{rule['condition']}.json"
            files.append(play.file(rule, name=name, conditions=conditions, skip_initial_status=True))
        disk.freeze()
        try:
            begun = time.monotonic()
            await play.start(*files)
            assert (await play.shows("True", "Safe")).message == "it hangs"
            assert time.monotonic() - begun < DEADLINE + GRACE + SLACK
            [child] = children_of(words["target"])
            assert is_unkillable(child)
            await play.runs(5, "safe")
            await play.runs(5)
            assert (children_of(words["target"]), children.most) == ([child], 1)
            assert play.begun("naive") == 1
            assert await play.condition("Naive") is None, "its monitor should have been held up: nothing is proven else"
        finally:
            disk.thaw()
        await play.shows("False", "Safe")
        await play.shows("False", "Naive")
