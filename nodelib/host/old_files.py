"""Old files below one folder of the node: found first, removed later, and never through a link.

Every folder is opened in the one above it without following links, and a file is removed only while it is the very one
that was found. Other file systems that are mounted below are not entered.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEPTH = 8


class Leftover(NamedTuple):
    """A plain file: last change (seconds since the epoch), bytes on the disk, its way from the top, and its inode."""

    changed: float
    size: int
    parts: tuple[str, ...]
    inode: int

    @property
    def path(self) -> str:
        """The way from the top, in one string."""
        return "/".join(self.parts)


def find(top: Path, before: float, chosen: Callable[[str], bool] = lambda name: True) -> list[Leftover]:
    """Return the plain files below `top` last changed before `before`, oldest first; none where there is no `top`.

    `chosen` is asked of each name in `top` itself.
    """
    try:
        descriptor = os.open(top, FOLDER)
    except FileNotFoundError:
        return []
    try:
        device = os.fstat(descriptor).st_dev
        return sorted(leftover for leftover in _below(descriptor, (), device, chosen) if leftover.changed < before)
    finally:
        os.close(descriptor)


def _below(folder: int, way: tuple[str, ...], device: int, chosen: Callable[[str], bool]) -> Iterator[Leftover]:
    for name in sorted(os.listdir(folder)):
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if status.st_dev != device or not (way or chosen(name)):
                continue
            if stat.S_ISREG(status.st_mode):
                yield Leftover(status.st_mtime, status.st_blocks * 512, (*way, name), status.st_ino)
            elif stat.S_ISDIR(status.st_mode) and len(way) < DEPTH:
                with _opened(folder, name) as inner:
                    yield from _below(inner, (*way, name), device, chosen)


def remove(top: Path, leftover: Leftover) -> None:
    """Remove a file that was found, and the folders that this leaves empty. Raises OSError.

    It being gone, or another one in its place, is no error: there is nothing to remove.
    """
    with contextlib.ExitStack() as opened, contextlib.suppress(FileNotFoundError):
        folders = [os.open(top, FOLDER)]
        opened.callback(os.close, folders[0])
        for name in leftover.parts[:-1]:
            folders.append(opened.enter_context(_opened(folders[-1], name)))
        if os.stat(leftover.parts[-1], dir_fd=folders[-1], follow_symlinks=False).st_ino != leftover.inode:
            return
        os.unlink(leftover.parts[-1], dir_fd=folders[-1])
        _tidy(folders, leftover.parts[:-1])


def _tidy(folders: Sequence[int], names: Sequence[str]) -> None:
    with contextlib.suppress(OSError):  # the first that is not empty ends it
        for above, name in reversed(list(zip(folders, names, strict=False))):
            os.rmdir(name, dir_fd=above)


@contextlib.contextmanager
def _opened(folder: int, name: str) -> Iterator[int]:
    descriptor = os.open(name, FOLDER, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
