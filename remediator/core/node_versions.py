"""Versions and settings that a program on a node reads there and says by the Condition NodeVersions. Pure."""

import re
from functools import lru_cache

NODE_VERSIONS = "NodeVersions"  # True: they were read, and its message has them
NODE_DRIFT = "NodeDrift"  # True: the node has others than nearly all nodes of its group; the controller says so
MOST_KINDS = 24
LINES_KEPT = 1024  # messages that are kept read: the nodes of a group say the same
LINE_BYTES = 512  # of what the detector writes: whoever may write the node may write a longer one, which is not read
_WORD = re.compile(r"([a-z][a-z0-9-]{0,31})=([A-Za-z0-9._:,/+-]{1,64})", re.ASCII)

Versions = tuple[tuple[str, str], ...]  # kinds and their values, sorted by kind


def versions(message: str) -> Versions:
    """What the message of the Condition says; () where it cannot be read.

    >>> versions("kernel=6.8.0 driver=580.82.07"), versions("nothing can be read")
    ((('driver', '580.82.07'), ('kernel', '6.8.0')), ())
    """
    return _versions(message) if len(message) <= LINE_BYTES else ()


@lru_cache(LINES_KEPT)
def _versions(message: str) -> Versions:
    words = message.split()
    pairs = {match[1]: match[2] for word in words if (match := _WORD.fullmatch(word))}
    return tuple(sorted(pairs.items())) if len(pairs) == len(words) <= MOST_KINDS else ()


@lru_cache(LINES_KEPT)
def merged(before: Versions, now: Versions) -> Versions:
    """What a node last said of each kind: of MOST_KINDS at most, and first of those that it says now.

    >>> merged((("driver", "570"), ("kernel", "6.8.0")), (("driver", "580"),))
    (('driver', '580'), ('kernel', '6.8.0'))
    """
    known = dict(now)
    older = [pair for pair in before if pair[0] not in known]
    return tuple(sorted((*now, *older[: max(0, MOST_KINDS - len(now))])))
