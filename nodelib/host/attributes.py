"""Small files of the kernel (attributes in /sys, tables in /proc): text or number, with "not there" told from garbage.

Numbers of devices are not to be trusted to be there, to be readable or to be numbers: each case has its own answer.
"""

import errno
import re
from pathlib import Path

NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV}
MOST_BYTES = 65_536


def text(path: Path) -> str | None:
    """Return what `path` holds without blanks around it; None when there is no such file, "" when it is unreadable."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).strip().decode("ascii", "replace")
    except OSError as error:
        return None if error.errno in NOT_THERE else ""


def number(path: Path) -> int | None:
    """Return the number in `path`, None when there is no such file. Raises ValueError, naming it, for anything else."""
    content = text(path)
    if content is None:
        return None
    if not re.fullmatch(r"[0-9]{1,20}", content):
        raise ValueError(f"{path.parent.name}/{path.name}")
    return int(content)


def folders(path: Path, pattern: str) -> list[Path]:
    """Return what is below `path` under a name that matches, in natural order (nvme2 before nvme10); [] without it.

    Raises OSError when it is there and cannot be read.
    """
    try:
        paths = [entry for entry in path.iterdir() if re.fullmatch(pattern, entry.name)]
    except OSError as error:
        if error.errno in NOT_THERE:
            return []
        raise
    return sorted(paths, key=lambda entry: natural(entry.name))


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers inside of names as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]
