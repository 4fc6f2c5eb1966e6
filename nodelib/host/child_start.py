"""Start the child that child_process.py asks, and leave it behind where it does not end. Few runs need to."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from nodelib.contract.npd import read_json, since_boot, write_json
from nodelib.host.child_process import GRACE, ChildAnswer, start_time, utc


def ask_anew(
    command: Sequence[str], record: Path, answer: Path, deadline: float, lock: int | None = None
) -> ChildAnswer:
    """Start `command`, wait for its end or `deadline`, and return what it wrote to `answer`; it inherits `lock`."""
    last = read_json(record)
    since = str(last.get("since", "")) if last.get("hung") else utc()
    record.parent.mkdir(parents=True, exist_ok=True)
    write_json(record, {"since": since, "asked_at": since_boot()})
    answer.unlink(missing_ok=True)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        pass_fds=() if lock is None else (lock,),
    )
    memory = {"pid": child.pid, "start": start_time(child.pid), "since": since, "asked_at": since_boot()}
    write_json(record, memory)
    if _ended(child, deadline):
        record.unlink(missing_ok=True)
        content = read_json(answer)
        return ChildAnswer(
            content, why="" if content.get("done") is True else f"the probe ended early ({child.returncode})"
        )
    write_json(record, {**memory, "hung": True})
    _abandon(child)
    return ChildAnswer(read_json(answer), silent_since=since)


def _ended(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Tell whether `child` ends within `seconds`; never waits for it in the kernel."""
    until, pause = time.monotonic() + seconds, 0.01
    while child.poll() is None:
        if time.monotonic() >= until:
            return False
        time.sleep(min(pause, 0.2))
        pause *= 1.5
    return True


def _abandon(child: subprocess.Popen[bytes]) -> None:
    for signum, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 0.2)):
        try:
            os.killpg(child.pid, signum)
        except ProcessLookupError:
            return
        if _ended(child, patience):
            return
