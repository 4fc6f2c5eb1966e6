"""The node's own files, seen through the root folder of process 1: a detector's container has others in their place."""

import errno
import os
from pathlib import Path

from nodelib.contract.npd import OutOfReach

LINKS = 40  # as many as the kernel follows


def node_root(proc: Path) -> Path:
    """Return the node's root folder. Raises OutOfReach where it cannot be listed."""
    root = proc / "1/root"
    try:
        with os.scandir(root):
            return root
    except OSError as error:
        why = f"the node's files below {root} cannot be read ({error.strerror})"
        raise OutOfReach(f"{why}: run node-problem-detector privileged and with hostPID") from error


def within(root: Path, path: str) -> Path:
    """Return where `path` of the node lies below `root`, its links followed: an absolute one would lead out of it.

    What does not exist is no error here. Raises OSError for links that go round in circles.
    """
    todo, seen, links = path.split("/")[::-1], list[str](), 0
    while todo:
        part = todo.pop()
        if part == "..":
            seen = seen[:-1]
        elif part not in ("", "."):
            target = _link(root.joinpath(*seen, part))
            links += target is not None
            if links > LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target is None:
                seen.append(part)
            else:
                seen = [] if target.startswith("/") else seen
                todo.extend(target.split("/")[::-1])
    return root.joinpath(*seen)


def _link(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None
