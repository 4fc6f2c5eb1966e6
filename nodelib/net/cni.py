"""The files of a node's CNI plugins: their configuration, their programs, their locks. Judges nothing."""

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.host.root import within

SUFFIXES = (".conf", ".conflist", ".json")  # what runtimes look at
MOST_BYTES = 1 << 20


class Config(NamedTuple):
    """The configuration that runtimes take: the first file by name.

    `word`: "valid", "none" (no file, or no folder), "broken" (no configuration) or "unclear" (cannot be read); `text`:
    which file, or why; `plugins`: the programs that it names, sorted.
    """

    word: str
    text: str = ""
    plugins: tuple[str, ...] = ()


def read_config(root: Path, folder: str) -> Config:
    """Return the configuration in the node's `folder`."""
    try:
        names = sorted(path.name for path in within(root, folder).iterdir() if path.name.endswith(SUFFIXES))
        if not names:
            return Config("none")
        with within(root, f"{folder}/{names[0]}").open("rb") as file:
            return parse_config(names[0], file.read(MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return Config("none")
    except OSError as error:
        return Config("unclear", f"{folder} cannot be read: {error.strerror}")


def parse_config(name: str, content: bytes) -> Config:
    """Read one file, a list of plugins or (by its name's ending) a single one."""
    try:
        value: Any = json.loads(content)
        plugins = value["plugins"] if name.endswith(".conflist") else [value]
        kinds = [plugin["type"] for plugin in plugins]
        helpers = [plugin.get("ipam", {}).get("type", "") for plugin in plugins]
        if (
            not kinds
            or not all(kinds)
            or not all(isinstance(kind, str) and "/" not in kind for kind in kinds + helpers)
        ):
            raise ValueError(name)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Config("broken", name)
    return Config("valid", name, tuple(sorted({*kinds, *filter(None, helpers)})))


def missing_plugins(root: Path, folders: Iterable[str], plugins: Iterable[str]) -> list[str] | None:
    """Return the plugins that no folder has as a program; None where no folder is there. Raises OSError otherwise."""
    there = [folder for folder in folders if _kind(within(root, folder), stat.S_IFDIR)]
    if not there:
        return None
    return [name for name in plugins if not any(_runs(within(root, f"{folder}/{name}")) for folder in there)]


def _kind(path: Path, kind: int) -> int:
    """Return the permission bits of what is at `path`, 0 where there is nothing of this kind."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return stat.S_IMODE(mode) if stat.S_IFMT(mode) == kind else 0


def _runs(path: Path) -> bool:
    return bool(_kind(path, stat.S_IFREG) & 0o111)


def held_locks(proc: Path, root: Path, folder: str) -> dict[str, int]:
    """Return which process holds the lock of each network that keeps its addresses below the node's `folder`."""
    inodes = {}
    try:
        for name in sorted(path.name for path in within(root, folder).iterdir()):
            lock = f"{folder}/{name}/lock"
            try:
                about = within(root, lock).stat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            inodes[f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"] = lock
        held = parse_locks((proc / "locks").read_text()) if inodes else {}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {lock: held[inode] for inode, lock in inodes.items() if inode in held}


def parse_locks(text: str) -> dict[str, int]:
    """Return who holds each file that is locked, by device and inode, from the lines of /proc/locks.

    `1: FLOCK  ADVISORY  WRITE 4242 fd:01:131 0 EOF`; with -> behind the number: it waits for the lock.
    """
    locks = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 6 and fields[4].isascii() and fields[4].isdecimal():
            locks[fields[5]] = int(fields[4])
    return locks
