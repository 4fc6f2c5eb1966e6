"""What a program on a node counts there and says by the Condition DeviceInventory: devices, mounts, addresses. Pure."""

import re
from functools import lru_cache
from typing import NamedTuple

DEVICE_INVENTORY = "DeviceInventory"  # True: it has counted, and its message is the count
DEVICES_MISSING = "DevicesMissing"  # True: the node lacks something that it is known to have
# What there is on a node, as nodelib counts it. Where several lack something the first one here is the reason: what
# others may hang on comes first. A program of a user may count kinds of its own beside these.
KINDS = (
    "gpus",
    "nics",
    "ports",
    "nvme",
    "ram",
    "cpus",
    "mounts",
    "addresses",
    "routes",
    "nfs-mounts",
    "pcie-lanes",
    "port-rates",
    "nic-rates",
)
MOST_KINDS, MOST_OF_A_KIND = 32, 10_000_000
LONGEST_COUNT = 2048  # letters: room for MOST_KINDS; whoever may write the node may write more, which is not read
KINDS_OF_NODES = 1024  # messages that are kept read: most heartbeats say again what was said
_WORD = re.compile(r"([a-z][a-z0-9-]{0,31})=([0-9]{1,8})(?:/([0-9]{1,8}))?", re.ASCII)
_UNREAD = re.compile(r"([a-z][a-z0-9-]{0,31})=\?", re.ASCII)
_DIGEST = re.compile(r"digest=([0-9a-f]{8,64})", re.ASCII)


class DeviceCount(NamedTuple):
    """What a node counts: by kind how many it has, and for what it declares itself how many it should have.

    `digest` says which devices these are: it changes when one is replaced. `unread`: kinds that could not be read now.
    """

    has: tuple[tuple[str, int], ...]
    declares: tuple[tuple[str, int], ...] = ()
    digest: str = ""
    unread: tuple[str, ...] = ()

    @property
    def kinds(self) -> frozenset[str]:
        """All kinds that are counted on the node, also those that could not be read now."""
        return frozenset((*dict(self.has), *self.unread))


def counted(message: str) -> DeviceCount | None:
    """What the message of the Condition says; None where it cannot be read.

    >>> counted("gpus=8 mounts=2/3 digest=0123abcd")
    DeviceCount(has=(('gpus', 8), ('mounts', 2)), declares=(('mounts', 3),), digest='0123abcd', unread=())
    """
    return _counted(message) if len(message) <= LONGEST_COUNT else None


@lru_cache(KINDS_OF_NODES)
def _counted(message: str) -> DeviceCount | None:
    words = message.split()
    digests = [match.group(1) for word in words if (match := _DIGEST.fullmatch(word))]
    counts = [match.groups() for word in words if (match := _WORD.fullmatch(word)) and not _DIGEST.fullmatch(word)]
    unread = [match.group(1) for word in words if (match := _UNREAD.fullmatch(word))]
    kinds = {*unread, *(kind for kind, _, _ in counts)}
    read = len(counts) + len(unread)
    if not counts or read + len(digests) != len(words) or not read == len(kinds) <= MOST_KINDS:
        return None
    has = tuple((kind, min(int(number), MOST_OF_A_KIND)) for kind, number, _ in sorted(counts))
    declares = tuple((kind, min(int(declared), MOST_OF_A_KIND)) for kind, _, declared in sorted(counts) if declared)
    return DeviceCount(has, declares, digests[0] if digests else "", tuple(sorted(unread)))
