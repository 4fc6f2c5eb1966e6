"""What comes of asking somebody over a socket, in one word; and several asked at the same time. Opens no socket."""

import errno
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

# Answers of the network that mean: nobody serves there. Any other failure may be our own.
SILENCE = {errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.EPIPE, errno.ETIMEDOUT}

Item = TypeVar("Item")
Result = TypeVar("Result")


class ProbeReply(NamedTuple):
    """What came of asking a server: "answers", "silent", or "unclear" (we could not ask); `why` for the last two."""

    word: str
    why: str = ""


def failure(error: Exception, silence: Collection[int] = SILENCE) -> ProbeReply:
    """Return what an error while asking means; `silence`: the numbers that blame whom we asked."""
    if isinstance(error, TimeoutError):
        return ProbeReply("silent", "no answer in time")
    number = getattr(error, "errno", None)
    if number in silence:
        return ProbeReply("silent", os.strerror(number))
    return ProbeReply("unclear", f"{type(error).__name__}: {error}")


def left(until: float) -> float:
    """Return the seconds left. Raises TimeoutError when there are none."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def in_the_nodes_network(reply: ProbeReply, proc: Path) -> ProbeReply:
    """Take silence for what it is only in the network of the node: a Pod's own network may lead elsewhere."""
    try:
        ours, nodes = (proc / who / "ns/net" for who in ("self", "1"))
        same = ours.readlink() == nodes.readlink()
    except OSError:
        same = True  # nothing to compare
    if reply.word == "silent" and not same:
        return ProbeReply("unclear", "asked from another network than the node's (hostNetwork)")
    return reply


def together(ask: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return `ask` of every item, in order, each asked in a thread of its own. Raises what the first of them raised."""
    results: dict[int, Result] = {}
    failed: dict[int, Exception] = {}

    def one(index: int, item: Item) -> None:
        try:
            results[index] = ask(item)
        except Exception as error:
            failed[index] = error

    threads = [threading.Thread(target=one, args=pair, daemon=True) for pair in enumerate(items)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in sorted(failed):
        raise failed[index]
    return [results[index] for index in range(len(threads))]
