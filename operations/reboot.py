#!/usr/bin/env python3
"""Reboot this node, once for one attempt.

It refuses (exit 2) when the node's boot id is not EXPECTED_BOOT_ID, which means that the reboot has happened already,
and when a file named ATTEMPT_ID exists under the node's /run/remediator, which means that this attempt was started
before. That file goes with the reboot. File systems are synced first, but not waited for without end: a node whose disk
hangs needs the reboot most.

PARAMETERS: waitSeconds (300), how long to wait for the node to go down after it was asked. Still being there then is
exit 1. Whether the reboot worked is told by the node's new boot id, not by this program.
"""

import sys

sys.path.insert(0, __file__.rpartition("/")[0] or ".")  # python -I leaves a program's own folder out

import subprocess
import time

from _attempt import create_marker, require_fresh
from _node import ENTER, ends_by
from _operation import Environment, Failed, Stopped, main, say

SYNC_SECONDS = 20.0
COMMAND = (*ENTER, "systemctl", "reboot")


def ask_for_reboot() -> subprocess.Popen[bytes]:
    """The last step: ask the node's own service manager, in its own namespaces, to reboot."""
    return subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL)


def reboot(environment: Environment, dry_run: bool) -> str:
    """Reboot the node of this environment. Returns only when stopped by the shutdown, or in a dry run."""
    wait = float(environment.parameters.get("waitSeconds", 300))
    marker = require_fresh(environment)
    if dry_run:
        print(f"would sync file systems for at most {SYNC_SECONDS:g} s, create {marker} and run {' '.join(COMMAND)}")
        return f"would reboot {environment.node}"
    sync()
    create_marker(require_fresh(environment))
    sentence = f"reboot of {environment.node} asked for by attempt {environment.attempt}"
    say(environment.termination_log, sentence)  # now, for the node may take us with it
    try:
        return wait_to_be_killed(ask_for_reboot(), wait)
    except Stopped:
        return sentence


def sync() -> None:
    """Sync every file system from a child that is left behind when a disk does not answer."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import os; os.sync()"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if not ends_by(child, time.monotonic() + SYNC_SECONDS):
        print(f"file systems not synced within {SYNC_SECONDS:g} s, going on", flush=True)


def wait_to_be_killed(asked: subprocess.Popen[bytes], seconds: float) -> str:
    """Wait for the end of this node. Raises Failed when the request was turned down or nothing came of it in time."""
    until = time.monotonic() + seconds
    if ends_by(asked, until) and asked.returncode:
        raise Failed(f"the node did not take the reboot: nsenter exited {asked.returncode}")
    time.sleep(max(0.0, until - time.monotonic()))
    raise Failed(f"the node was asked to reboot and still runs after {seconds:g} s")


if __name__ == "__main__":
    main(reboot, __doc__)
