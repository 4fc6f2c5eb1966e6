"""What `nsenter` is inside a simulated container: it writes a reboot down and asks the simulated host for it.

Run as `python nsenter.py HOST_DIRECTORY NODE_NAME <arguments of nsenter>`. It knows only one command, `systemctl
reboot`, and runs nothing on the real machine. Standard library only, for it starts as bare as the programs that
call it.
"""

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

KILLED_WITHIN = 60.0  # seconds; a host that was asked for a reboot kills its containers long before


def main(host: Path, node: str, arguments: list[str]) -> int:
    """Record the reboot of `node`, ask `host` for it, and wait to be killed; 1 if nobody does, 127 for other work."""
    if arguments[-2:] != ["systemctl", "reboot"]:
        print(f"nsenter: a simulated host cannot run: {' '.join(arguments)}", file=sys.stderr)
        return 127
    line = _record(host, node)
    _append(host / "reboots.jsonl", line)
    _ask(host / "reboot-asked", line)
    return _wait_for_the_end()


def _record(host: Path, node: str) -> bytes:
    boot_id = (host / "root/proc/sys/kernel/random/boot_id").read_text().strip()
    record = {
        "node": node,
        "attemptID": os.environ.get("ATTEMPT_ID", ""),
        "bootID": boot_id,
        "time": datetime.now(UTC).isoformat(),
    }
    return json.dumps(record).encode() + b"\n"


def _append(journal: Path, line: bytes) -> None:
    # One write under O_APPEND, so that two containers of a host never mix their lines.
    descriptor = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _ask(button: Path, line: bytes) -> None:
    try:
        descriptor = os.open(button, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # nobody plays this host now: the record alone stays
        return
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _wait_for_the_end() -> int:
    # The real systemctl returns at once and the machine dies a moment later. Here the caller never goes on, so that
    # every run ends in the worse of the two ways: cut off, with nothing said.
    caller, until = os.getppid(), time.monotonic() + KILLED_WITHIN
    while os.getppid() == caller and time.monotonic() < until:
        time.sleep(0.05)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
