"""What a node itself counts when its network is congested, and how fast it grows. Judges nothing.

Counters are named "DEVICE COUNTER", such as "eth0 rx_prio3_pause" and "mlx5_0/1 np_cnp_sent"; those of TCP are those of
"the node".
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.host.child_process import ask
from nodelib.net.links import GONE, is_physical, read_counter

ETHTOOL = Path(__file__).with_name("ethtool.py")
OF_INTERFACES = ("statistics/rx_dropped", "statistics/rx_missed_errors", "statistics/tx_dropped")
OF_PORTS = ("counters/port_xmit_wait", "hw_counters/np_cnp_sent", "hw_counters/rp_cnp_handled")
NODE, AGAIN = "the node", "RetransSegs"
MOST_COUNT = 1 << 64


class Sign(NamedTuple):
    """One sign of congestion for which an operator may set a limit: the counters that make it, and its words."""

    counters: re.Pattern[str]
    words: str
    of_driver: bool = False  # whether only a card's driver counts it


SIGNS = {
    "discards": Sign(re.compile(r"rx_discards_phy"), "discards more frames", True),
    "pauses": Sign(re.compile(r"[rt]x_prio[0-7]_pause"), "has more PFC pauses", True),
    "cnps": Sign(re.compile(r"np_cnp_sent|rp_cnp_handled"), "has more congestion notifications (CNP)"),
    "retransmits": Sign(re.compile(AGAIN), "sends more TCP segments again"),
}


class Counted(NamedTuple):
    """All counters by name; `why`: why those of drivers are not among them, "" where they were asked for."""

    counters: Mapping[str, int]
    why: str = ""


def read(sys_folder: Path, proc: Path, state: Path, deadline: float, refused: set[str]) -> Counted:
    """Read all counters; drivers are asked for `deadline` seconds. `refused`: as of `links.read_counter`; grows."""
    interfaces = dict(physical(sys_folder / "class/net"))
    paths = {name: [folder / part for part in OF_INTERFACES] for name, folder in interfaces.items()}
    for name, device in physical(sys_folder / "class/infiniband"):
        for port in sorted((device / "ports").glob("[0-9]*")):
            paths[f"{name}/{port.name}"] = [port / part for part in OF_PORTS]
    files = {f"{name} {path.name}": read_counter(path, refused) for name in paths for path in paths[name]}
    files[f"{NODE} {AGAIN}"] = sent_again(proc)
    drivers, why = ask_drivers(interfaces, state, deadline)
    return Counted({key: value for key, value in {**files, **drivers}.items() if value is not None}, why)


def physical(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the devices of a class that are hardware of their own."""
    try:
        devices = sorted(folder.iterdir())
    except GONE:
        return
    yield from ((device.name, device) for device in devices if is_physical(device))


def sent_again(proc: Path) -> int | None:
    """Return how many TCP segments this node has sent again since boot; None where that cannot be had."""
    try:
        lines = (proc / "1/net/snmp").read_text(errors="replace").splitlines()
    except OSError:
        return None
    rows = [line.split() for line in lines if line.startswith("Tcp: ")]
    table = dict(zip(*rows, strict=False)) if len(rows) == 2 else {}
    value = table.get(AGAIN, "")
    return int(value) if value.isascii() and value.isdecimal() else None


def ask_drivers(interfaces: Mapping[str, Path], state: Path, deadline: float) -> tuple[dict[str, int], str]:
    """Return what the drivers of these interfaces count, asked by a child: one whose card is gone may hang."""
    if not interfaces:
        return {}, ""
    answer = ask([sys.executable, "-I", "-S", "-B", str(ETHTOOL), *interfaces], state, "network_path", deadline)
    why = f"no answer since {answer.silent_since}" if answer.silent_since else answer.why
    statistics = answer.answers.get("statistics")
    rows = statistics.items() if isinstance(statistics, dict) else ()
    return {
        f"{name} {counter}": value
        for name, counters in rows
        if isinstance(counters, dict)
        for counter, value in counters.items()
        if type(value) is int and 0 <= value < MOST_COUNT
    }, why


def rates(before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> dict[str, float]:
    """Return by how much each counter grew a second; one that was set to zero in between did not."""
    both = after.keys() & before.keys()
    return {key: max(0, after[key] - before[key]) / seconds for key in sorted(both)} if seconds > 0 else {}


def by_sign(grown: Mapping[str, float], sign: str) -> dict[str, float]:
    """Return a sign's growth a second of each device."""
    by_device: dict[str, float] = {}
    for key, rate in grown.items():
        device, _, counter = key.rpartition(" ")
        if SIGNS[sign].counters.fullmatch(counter):
            by_device[device] = by_device.get(device, 0.0) + rate
    return by_device
