"""A child that no signal ends: it writes to a frozen file system. Nobody waits longer than was agreed."""

import fcntl
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodelib.host.child_process import GRACE, ask, is_alive, share, start_time
from tests.detectors.kernel.needs import needs
from tests.detectors.kernel.stuck import Victim, children_of, is_unkillable, wait_for

pytestmark = needs("disk")
DEADLINE, SLACK = 1.5, 1.5
# argv: the file to write to, the answer. Says what `share` wants to know, too.
CHILD = """
import json, os, sys, time
said = {"asked_at": time.clock_gettime(time.CLOCK_BOOTTIME), "boot": "one"}
def tell(**more):
    said.update(more)
    with open(sys.argv[2] + ".new", "w") as draft:
        json.dump(said, draft)
    os.replace(sys.argv[2] + ".new", sys.argv[2])
tell(at="open")
open(sys.argv[1], "w").close()
tell(done=True)
"""


class Asking:
    """Somebody who asks by one of the two ways, with a clock."""

    def __init__(self, way, disk, state):
        self.way, self.state, self.target = way, state, f"{disk.folder}/file"
        self.command = [sys.executable, "-I", "-S", "-c", CHILD, self.target]

    def ask(self, deadline=DEADLINE):
        begun = time.monotonic()
        if self.way == "ask":
            answer = ask(self.command, self.state, "disk", deadline)
        else:
            answer = share(self.command, self.state, "disk", deadline, boot="one", fresh=0.0)
        return answer, time.monotonic() - begun

    def children(self):
        return children_of(self.target)

    def record(self):
        return json.loads((self.state / "disk.probe.json").read_text())


@pytest.fixture(params=["ask", "share"])
def asking(request, disk, tmp_path):
    return Asking(request.param, disk, tmp_path / "state")


def test_a_child_that_cannot_be_killed_is_left_behind_in_time_and_is_the_only_one_until_it_ends(asking, disk):
    assert asking.ask()[0].answers["done"] is True
    disk.freeze()
    answer, took = asking.ask()
    assert (answer.answers["at"], "done" in answer.answers, bool(answer.silent_since)) == ("open", False, True)
    assert DEADLINE + GRACE <= took < DEADLINE + GRACE + SLACK
    [child] = asking.children()
    assert is_unkillable(child), "else this proves nothing"
    for _ in range(3):
        again, took = asking.ask()
        assert again.silent_since == answer.silent_since
        assert took < DEADLINE + SLACK
    assert asking.children() == [child]
    assert asking.record()["pid"] == child

    disk.thaw()
    wait_for(lambda: not is_alive(child, asking.record()["start"]))
    answer, _ = asking.ask(deadline=20.0)
    assert (answer.answers.get("done"), answer.silent_since, answer.why) == (True, "", "")


def test_callers_at_the_same_time_share_the_one_child_that_cannot_be_killed(disk, tmp_path):
    asking = Asking("share", disk, tmp_path / "state")
    disk.freeze()
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from nodelib.host.child_process import share\n"
        "answer = share(sys.argv[4:], Path(sys.argv[2]), 'disk', float(sys.argv[3]), boot='one', fresh=0.0)\n"
        "print(answer.silent_since or answer.why)"
    )
    folder = Path(sys.modules[share.__module__].__file__).parents[2]
    command = [sys.executable, "-c", code, str(folder), str(asking.state), str(DEADLINE), *asking.command]
    begun = time.monotonic()
    callers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = [one.communicate(timeout=60)[0].strip() for one in callers]
    assert time.monotonic() - begun < DEADLINE + GRACE + 4 * SLACK
    [child] = asking.children()
    assert is_unkillable(child)
    since = asking.record()["since"]
    assert since in told
    # Who began to wait just before the child was started has waited long enough a moment before it counts as hung.
    assert set(told) <= {since, "the probe of another detector is still under way"}
    with (asking.state / "disk.lock").open("a") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_killed_process_whose_thread_is_stuck_counts_as_alive_until_that_ends_too(disk, tmp_path):
    disk.freeze()
    victim = Victim(disk.folder / "file", kind="thread")
    try:
        start = start_time(victim.pid)
        victim.kill()
        assert Path(f"/proc/{victim.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        assert is_alive(victim.pid, start)
        assert not is_alive(victim.pid, start + 1), "another process of that pid"
    finally:
        disk.thaw()
    wait_for(lambda: not is_alive(victim.pid, start))
    victim.end()
