"""The ports of a node's RDMA devices (InfiniBand and RoCE), as sysfs shows them. Judges nothing."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nodelib.net.links import GONE, Port, is_physical, read_counter, text

STATE = re.compile(r"([0-9]): *([A-Za-z_]+)")
RATE = re.compile(r"([0-9]{1,4}(?:\.[0-9])?) Gb/sec(?: \([0-9]{1,2}X [A-Z0-9]{1,6}\))?")
ACTIVE, LINK_UP = "4", "5"
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
MAPPED = re.compile(r"0000:0000:0000:0000:0000:ffff:[0-9a-f]{4}:[0-9a-f]{4}")


class Gids(NamedTuple):
    """The addresses of a RoCE port. `kinds`: such as "RoCE v2"; `mapped`: a RoCE v2 one stands for an IPv4 address.

    `interfaces`: whose addresses they are.
    """

    kinds: frozenset[str]
    mapped: bool
    interfaces: frozenset[str]


def read_ports(sys: Path, refused: set[str]) -> dict[str, Port]:
    """Return the ports by DEVICE/NUMBER; {} where there is no RDMA. `refused` as of `read_interfaces`."""
    ports = {}
    for name, folder in _folders(sys):
        try:
            up, lack = _state(name, folder)
            downs = read_counter(folder / "counters/link_downed", refused)
            errors = read_counter(folder / "counters/symbol_error", refused)
            where, (rate, speed) = os.path.realpath(folder.parents[1] / "device"), _rate(folder)
            ports[name] = Port(up, lack, downs, where, rate, speed, errors)
        except GONE:
            continue
    return ports


def _rate(folder: Path) -> tuple[float, str]:
    """Return the rate in Gb/s and its text, lanes and all ("400 Gb/sec (4X NDR)"); 0 for what makes no sense."""
    try:
        rate = text(folder / "rate")
    except OSError:
        return 0.0, ""
    match = RATE.fullmatch(rate)
    return (float(match[1]), rate) if match else (0.0, "")


def _folders(sys: Path) -> Iterator[tuple[str, Path]]:
    try:
        devices = sorted((sys / "class/infiniband").iterdir())
    except GONE:
        return
    for device in devices:
        if is_physical(device):
            for folder in sorted((device / "ports").glob("[0-9]*")):
                yield f"{device.name}/{folder.name}", folder


def _state(name: str, folder: Path) -> tuple[bool | None, str]:
    state, physical = STATE.match(text(folder / "state")), STATE.match(text(folder / "phys_state"))
    if not state or not physical:
        return None, f"{name} cannot be read: its state makes no sense"
    if physical[1] != LINK_UP:
        return False, f"{name} is not linked up"  # the state of its link changes all the time while it tries
    return state[1] == ACTIVE, f"{name} is {state[2]}, not ACTIVE"


def read_gids(sys: Path) -> dict[str, Gids]:
    """Return the addresses of each RoCE port, by DEVICE/NUMBER."""
    gids = {}
    for name, folder in _folders(sys):
        try:
            if text(folder / "link_layer") == "Ethernet":
                gids[name] = _gids(folder)
        except GONE:
            continue
    return gids


def _gids(folder: Path) -> Gids:
    """Read a port's table up to the first RoCE v2 address that stands for an IPv4 one; it may have 256 rows."""
    kinds, interfaces = set(), {path.name for path in (folder.parents[1] / "device/net").glob("*")}
    for path in sorted((folder / "gids").glob("[0-9]*"), key=lambda one: int(one.name)):
        gid = _row(path)
        if gid in ("", NO_GID):
            continue
        kind = _row(folder / "gid_attrs/types" / path.name)
        kinds.add(kind)
        interfaces.add(_row(folder / "gid_attrs/ndevs" / path.name))
        if kind == "RoCE v2" and MAPPED.fullmatch(gid):
            return Gids(frozenset(kinds - {""}), True, frozenset(interfaces - {""}))
    return Gids(frozenset(kinds - {""}), False, frozenset(interfaces - {""}))


def _row(path: Path) -> str:
    try:
        return text(path)
    except OSError:
        return ""  # EINVAL: an empty row
