"""What the kernel's log says of network cards: which lines mean a dead card, and which mend one. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodelib.kernel.kmsg import Line

DEAD = (
    (re.compile(r"mlx5_core (\S+): wait_func:.*ENABLE_HCA\(0x104\) timeout"), "its firmware does not answer"),
    (
        re.compile(r"mlx5_core (\S+): .*device's health compromised - reached miss count"),
        "its firmware does not answer",
    ),
    (re.compile(r"mlx5_core(?: (\S+))?: .*synd 0x8: unrecoverable hardware error"), "unrecoverable hardware error"),
)
# The second spelling of the first is the kernel's own, up to Linux 5.17.
MENDED = re.compile(r"mlx5_core (\S+): .*(?:health re[cv]overy succe+ded|firmware version: )")
STALLS = (
    re.compile(r"NETDEV WATCHDOG: (\S+) \(\S+\): transmit queue \d+ timed out"),
    re.compile(r"(\S+): NETDEV WATCHDOG: CPU: \d+: transmit queue \d+ timed out"),
    re.compile(r"mlx5_core \S+ (\S+): (?:TX timeout detected|RX timeout on channel)"),
)
APART = 1.0  # seconds: one stall makes several lines
NOBODY = "?"  # a line that does not say of which card it is
ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class Death(NamedTuple):
    """Why a card is dead, and the line that says so."""

    why: str
    line: str


def deaths(before: Mapping[str, Death], lines: Iterable[Line]) -> dict[str, Death]:
    """Return the dead cards by PCI address, NOBODY for one that the log does not name."""
    dead = dict(before)
    for line in lines:
        mended = MENDED.search(line.text)
        if mended:
            dead.pop(_address(mended[1]), None)
            dead.pop(NOBODY, None)  # which may well have been this one
        for pattern, why in DEAD:
            match = pattern.search(line.text)
            if match:
                dead.setdefault(_address(match[1]), Death(why, line.text[:200]))
    return dead


def _address(text: str | None) -> str:
    match = ADDRESS.match(text or "")
    return match[0] if match else NOBODY


def stalls(lines: Iterable[Line]) -> dict[str, list[float]]:
    """Return when, in seconds since boot, each interface stopped sending or receiving, by name."""
    found: dict[str, list[float]] = {}
    for line in lines:
        for pattern in STALLS:
            match = pattern.search(line.text)
            times = found.setdefault(match[1], []) if match else []
            if match and (not times or line.at - times[-1] >= APART):
                times.append(line.at)
    return found
