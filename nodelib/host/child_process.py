"""Ask something that may never answer, from a child that this process can leave behind.

A call into a wedged driver cannot be interrupted, and whoever waits for it hangs too. So the child has a session of its
own and no pipe of ours, answers through a file, and is never waited for. While it lives no second one is started, lest
one stuck process be added every minute: `ask` remembers it by pid and start time, `share` by a lock that it holds.
"""

import fcntl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.npd import read_json, since_boot, write_json

GRACE = 5.0  # seconds between SIGTERM and SIGKILL: a driver call that is cut short may itself wedge a GPU
SETTLE = 0.5  # seconds for which a lock may be held by one who only looks, or who is about to start the child
OWN_PROC = Path("/proc")


class ChildAnswer(NamedTuple):
    """What the child answered last, {} for nothing; since when it is silent, in UTC; `why`: cause of no full answer."""

    answers: dict[str, Any]
    silent_since: str = ""
    why: str = ""


def ask(command: Sequence[str], state: Path, name: str, deadline: float) -> ChildAnswer:
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
        return ChildAnswer(read_json(answer), silent_since=last.get("since", "") if stuck else "", why=why)
    return _start([*command, str(answer)], record, answer, deadline)


def share(command: Sequence[str], state: Path, name: str, deadline: float, *, boot: str, fresh: float) -> ChildAnswer:
    """As `ask`, for callers that all want the same: one child answers them all, and whoever comes first starts it.

    The answer must also hold "asked_at" and "answered_at", the seconds since boot at which the child began and ended,
    and "boot", this boot's id. One that is done and was asked for at most `fresh` seconds ago in this boot is taken as
    it is. Whoever finds a child under way waits for its answer, until it has been silent for `deadline` seconds. The
    child inherits the lock, so that the kernel alone says when it has ended: no death in between loses it or lets a
    second one start.
    """
    state = state.absolute()
    state.mkdir(parents=True, exist_ok=True)
    record, answer = state / f"{name}.probe.json", state / f"{name}.answer.json"
    begun = since_boot()
    with (state / f"{name}.lock").open("a") as lock:
        taken, waited = _take(lock.fileno(), record, deadline)
        said, last = read_json(answer), read_json(record)
        recent = 0 <= _age(said) <= fresh or 0 <= _age(said, "answered_at") <= since_boot() - begun
        if taken and recent and said.get("done") is True and said.get("boot") == boot:
            return ChildAnswer(said)
        if taken and waited < SETTLE:
            return _start([*command, str(answer)], record, answer, deadline, lock.fileno())
        if not taken and not last.get("hung") and _age(last) >= deadline:  # who started it is no more
            last |= {"hung": True, "since": str(last.get("since") or utc())}
            write_json(record, last)
        return _of_another(said, last, taken, deadline)


def _start(command: Sequence[str], record: Path, answer: Path, deadline: float, lock: int | None = None) -> ChildAnswer:
    """Start a child and wait for its answer; whoever finds an answer does not pay for the import."""
    from nodelib.host.child_start import ask_anew

    return ask_anew(command, record, answer, deadline, lock)


def _take(lock: int, record: Path, deadline: float) -> tuple[bool, float]:
    """Wait for the lock until its holder has been silent for too long; return whether it was had, and how long it took.

    `record` may be of an earlier child as long as the holder has not written its own.
    """
    begun, pause = since_boot(), 0.01
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = since_boot() - begun
            if waited >= deadline or (waited >= SETTLE and deadline <= _age(read_json(record)) < float("inf")):
                return False, waited
            time.sleep(pause)
            pause = min(1.5 * pause, 0.2)
        else:
            return True, since_boot() - begun


def _of_another(said: dict[str, Any], last: dict[str, Any], ended: bool, deadline: float) -> ChildAnswer:
    """What to make of a child that another has started and that gave no full answer; `last`: the record of it."""
    if last.get("hung") and _age(last) >= deadline:
        return ChildAnswer(said, silent_since=str(last.get("since") or utc()))
    if last.get("hung"):
        return ChildAnswer(said, why="the probe was given up early by a detector with a shorter --deadline")
    return ChildAnswer(said, why=f"the probe of another detector {'ended early' if ended else 'is still under way'}")


def _age(asked: dict[str, Any], key: str = "asked_at") -> float:
    """Return the seconds since something was asked for; infinity where that is not told."""
    at = asked.get(key)
    return since_boot() - at if type(at) in (int, float) else float("inf")


def utc() -> str:
    """Return the time, as people are told it."""
    return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())


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
