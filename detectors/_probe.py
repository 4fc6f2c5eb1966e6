"""Ask something that may never answer, from a child that this process can leave behind.

A call into a wedged driver cannot be interrupted, and whoever waits for it hangs too. So the child has a session of its
own and no pipe of ours, answers through a file, and is never waited for. It is remembered by pid and start time: while
it lives no second one is started, lest one stuck process be added every minute.
"""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _verdict import read_json, since_boot, write_json

GRACE = 5.0  # seconds between SIGTERM and SIGKILL: a driver call that is cut short may itself wedge a GPU
OWN_PROC = Path("/proc")


class Answer(NamedTuple):
    """What the child said last ({} for nothing). `hung`: silent since then, in UTC; `why`: cause of no full answer."""

    said: dict[str, Any]
    hung: str = ""
    why: str = ""


def ask(command: Sequence[str], state: Path, name: str, deadline: float) -> Answer:
    """Run `command` with the path of its answer file appended, for at most `deadline` seconds plus GRACE.

    The child writes a JSON object there as often as it likes, and "done": true in the last. An answer that is not
    done by the deadline counts as hung. While the child of an earlier run lives, no other is started.
    """
    state = state.absolute()
    record, answer = state / f"{name}.probe.json", state / f"{name}.answer.json"
    last = read_json(record)
    if is_alive(last.get("pid"), last.get("start")):
        stuck = bool(last.get("hung")) or since_boot() - last.get("asked_at", 0.0) > deadline + GRACE
        why = "" if stuck else "a probe of another run is still under way"
        return Answer(read_json(answer), hung=last.get("since", "") if stuck else "", why=why)
    since = last.get("since", "") if last.get("hung") else time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())
    return _ask_anew([*command, str(answer)], record, answer, since, deadline)


def _ask_anew(command: Sequence[str], record: Path, answer: Path, since: str, deadline: float) -> Answer:
    record.parent.mkdir(parents=True, exist_ok=True)
    answer.unlink(missing_ok=True)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    memory = {"pid": child.pid, "start": start_time(child.pid), "since": since, "asked_at": since_boot()}
    write_json(record, memory)
    if _ended(child, deadline):
        record.unlink(missing_ok=True)
        said = read_json(answer)
        return Answer(said, why="" if said.get("done") else f"the probe ended early ({child.returncode})")
    write_json(record, {**memory, "hung": True})
    _abandon(child)
    return Answer(read_json(answer), hung=since)


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


def start_time(pid: int) -> int | None:
    """Return when process `pid` started, in clock ticks since boot; None when there is none."""
    fields = _stat(pid)
    return int(fields[19]) if len(fields) > 19 else None


def is_alive(pid: Any, start: Any) -> bool:
    """Tell whether the very process that was recorded still exists.

    A leader that is a zombie counts as long as one of its threads has not ended: that thread may be the stuck one.
    """
    if not isinstance(pid, int) or start is None or start_time(pid) != start:
        return False
    if _stat(pid)[0] != "Z":
        return True
    try:
        return len(list((OWN_PROC / str(pid) / "task").iterdir())) > 1
    except OSError:
        return False


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on (the name before it may hold blanks); [] for no process."""
    try:
        return (OWN_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
