"""A mount namespace of this process alone, and a conversation over stdin and stdout that ends by itself."""

import ctypes
import os
import select
import sys
import time
from collections.abc import Callable

NEW_MOUNTS, RECURSIVE, PRIVATE, DETACH = 0x20000, 1 << 14, 1 << 18, 2
libc = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> None:
    """Raise OSError where a call of the C library failed."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def be_private() -> None:
    """Take a mount namespace of our own: nobody else sees what is mounted, and it goes when nobody uses it."""
    check(libc.unshare(NEW_MOUNTS))
    check(libc.mount(None, b"/", None, RECURSIVE | PRIVATE, None))


def mount(source: str, point: str, kind: str, options: str = "") -> None:
    """Mount. Raises OSError."""
    check(libc.mount(source.encode(), point.encode(), kind.encode(), 0, options.encode() or None))


def unmount(point: str) -> None:
    """Let a mount go as soon as nobody uses it; nothing happens where there is none."""
    libc.umount2(point.encode(), DETACH)


def converse(
    answer: Callable[[str], object], seconds: float, also: dict[int, Callable[[], None]] | None = None
) -> None:
    """Say "ready", then answer each line of stdin with one, until it ends or `seconds` are over."""
    print("ready", flush=True)
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([0, *(also or {})], [], [], left)
        for descriptor in ready:
            if descriptor:
                (also or {})[descriptor]()
                continue
            words = os.read(0, 4096).decode()
            if not words:
                return
            for word in words.splitlines():
                print(answer(word), flush=True)
    print("no more time", file=sys.stderr)
