"""One attempt disturbs its node once: never in another boot than the controller saw, never a second time in that one.

A kubelet may start a Pod twice. The mark of an attempt is a file on a memory file system of the node, so that it goes
with the boot that it belongs to.
"""

import os
import re
from pathlib import Path

from nodelib.contract import audit
from nodelib.contract.operation import Environment, Refused


def require_fresh(environment: Environment) -> Path:
    """Return the path of this attempt's marker. Raises Refused if it exists or this boot is not the expected one."""
    if not environment.expected_boot_id or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}", environment.attempt):
        raise Refused("EXPECTED_BOOT_ID and an ATTEMPT_ID that can name a file are needed")
    root = Path(environment.host_root)
    try:
        boot_id = (root / "proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise Refused(f"the node's boot id cannot be read: {error}") from error
    if boot_id != environment.expected_boot_id:
        raise Refused(f"boot id is {boot_id}, not {environment.expected_boot_id}: it was rebooted since")
    marker = root / "run/remediator" / environment.attempt
    if marker.exists():
        raise Refused(f"attempt {environment.attempt} was started before in this boot")
    return marker


def create_marker(marker: Path) -> None:
    """Leave the mark that only one start of an attempt can leave, and make it last. Raises Refused for the second."""
    marker.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError as error:
        raise Refused(f"attempt {marker.name} was started before in this boot") from error
    for descriptor in (file, os.open(marker.parent, os.O_RDONLY)):
        os.fsync(descriptor)
        os.close(descriptor)
    audit.say("begin", "operations", marker.name, audit.UNKNOWN, why="from here on the node may be disturbed")
