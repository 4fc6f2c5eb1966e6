"""What `nsenter` is inside a simulated container: it writes a command down and asks the simulated host for it.

Run as `python nsenter.py HOST_DIRECTORY NODE_NAME <options of nsenter> -- <command>`. The command goes to the host as
one JSON line, and the host puts what came of it into a file; nothing is run on the real machine. Standard library
only, for it starts as bare as the programs that call it.
"""

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

KILLED_WITHIN = 60.0  # seconds; a host that was asked for a reboot kills its containers long before
ANSWERED_WITHIN = 900.0  # seconds; a command that hangs does so until its caller ends it
REBOOT = ["systemctl", "reboot"]


def main(host: Path, node: str, arguments: list[str]) -> int:
    """Record a command of `node`, ask `host` for it, print the answer and return its exit code.

    After a reboot it waits to be killed, and is 1 if nobody does. What the host cannot do is 127.
    """
    command = arguments[arguments.index("--") + 1 :] if "--" in arguments else arguments[-2:]
    record = _record(host, node)
    _append(host / "commands.jsonl", {**record, "command": command})
    if command == REBOOT:
        _append(host / "reboots.jsonl", record)
    request = f"{os.getpid()}-{time.monotonic_ns()}"
    heard = _ask(host / "console", {"id": request, "command": command})
    if command == REBOOT:
        return _wait_for_the_end()
    if not heard:
        print(f"nsenter: a simulated host cannot run: {' '.join(command)}", file=sys.stderr)
        return 127
    return _wait_for_the_answer(host / "answers" / f"{request}.json")


def _record(host: Path, node: str) -> dict[str, Any]:
    return {
        "node": node,
        "attemptID": os.environ.get("ATTEMPT_ID", ""),
        "bootID": (host / "root/proc/sys/kernel/random/boot_id").read_text().strip(),
        "time": datetime.now(UTC).isoformat(),
    }


def _append(journal: Path, record: dict[str, Any]) -> None:
    # One write under O_APPEND, so that two containers of a host never mix their lines.
    descriptor = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, _line(record))
    finally:
        os.close(descriptor)


def _ask(console: Path, request: dict[str, Any]) -> bool:
    """Tell the host; False when nobody plays it now, and the record alone stays."""
    try:
        descriptor = os.open(console, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        os.write(descriptor, _line(request))
    finally:
        os.close(descriptor)
    return True


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _wait_for_the_end() -> int:
    # The real systemctl returns at once and the machine dies a moment later. Here the caller never goes on, so that
    # every run ends in the worse of the two ways: cut off, with nothing said.
    caller, until = os.getppid(), time.monotonic() + KILLED_WITHIN
    while os.getppid() == caller and time.monotonic() < until:
        time.sleep(0.05)
    return 1


def _wait_for_the_answer(path: Path) -> int:
    caller, until = os.getppid(), time.monotonic() + ANSWERED_WITHIN
    while os.getppid() == caller and time.monotonic() < until:
        if path.exists():
            answer = json.loads(path.read_bytes())
            path.unlink()
            print(answer["text"], end="", flush=True)
            return int(answer["code"])
        time.sleep(0.01)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
