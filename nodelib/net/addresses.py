"""Which interfaces of a node have addresses, and whether it has default routes: from the files of process 1's network.

Of IPv4, /proc tells addresses and, apart from them, routes with their interface. An interface has an address when it
has a route to a network of its own in which one of the node's addresses lies: the kernel drops the one with the other.
An address without such a network (a /32) is not seen; of it the default route must tell.
"""

import re
from pathlib import Path
from typing import NamedTuple

IPV4, IPV6 = "IPv4", "IPv6"
RTF_UP, RTF_GATEWAY, RTF_REJECT = 0x1, 0x2, 0x200
GLOBAL, DAD_FAILED = "00", 0x08
FIB_ADDRESS = re.compile(r"\|-- ([0-9.]+)")
HEX32 = re.compile("[0-9A-Fa-f]{8}")
HEX128 = re.compile("[0-9a-f]{32}")


class Addresses(NamedTuple):
    """`owners`: interface and family; `defaults`: families with a default route."""

    owners: frozenset[tuple[str, str]]
    defaults: frozenset[str]


def read_addresses(proc: Path) -> Addresses:
    """Read all four files, of which a node without IPv6 has two. Raises OSError, ValueError for what makes no sense."""
    net = proc / "1/net"
    owners, default = parse_route((net / "route").read_text(), parse_fib_trie((net / "fib_trie").read_text()))
    defaults = {IPV4} if default else set()
    try:
        owners |= parse_if_inet6((net / "if_inet6").read_text())
        defaults |= {IPV6} if parse_ipv6_route((net / "ipv6_route").read_text()) else set()
    except FileNotFoundError:
        pass
    return Addresses(frozenset(owners), frozenset(defaults))


def parse_fib_trie(text: str) -> set[int]:
    """Return the node's own IPv4 addresses, without those of 127/8 and 169.254/16.

    Below each address are its routes: `/32 host LOCAL` marks one of the node's own.
    """
    addresses, address = set(), None
    lines = text.splitlines()
    if "Local:" not in lines and "Main:" not in lines:
        raise ValueError("fib_trie makes no sense")
    for line in lines:
        match = FIB_ADDRESS.search(line)
        if match:
            octets = [int(octet) for octet in match[1].split(".")]
            if len(octets) != 4 or max(octets) > 255:
                raise ValueError("fib_trie makes no sense")
            address = int.from_bytes(bytes(octets), "big")
        elif line.strip() == "/32 host LOCAL" and address is not None:
            addresses.add(address)
    return {number for number in addresses if number >> 24 != 127 and number >> 16 != 0xA9FE}


def parse_route(text: str, addresses: set[int]) -> tuple[set[tuple[str, str]], bool]:
    """Return the owners of IPv4 addresses, and whether there is a default route."""
    owners, default = set(), False
    head, *lines = text.splitlines() or [""]
    if not head.startswith("Iface"):
        raise ValueError("route makes no sense")
    for line in lines:
        fields = line.split()
        if len(fields) < 8 or not all(HEX32.fullmatch(fields[index]) for index in (1, 2, 7)):
            raise ValueError("route makes no sense")
        to, mask, flags = _host_order(fields[1]), _host_order(fields[7]), int(fields[3], 16)
        if not flags & RTF_UP or flags & RTF_REJECT:
            continue
        if not mask:
            default = True
        elif not flags & RTF_GATEWAY and any(address & mask == to for address in addresses):
            owners.add((fields[0], IPV4))
    return owners, default


def _host_order(text: str) -> int:
    return int.from_bytes(bytes.fromhex(text), "little")  # as every machine with GPUs has it


def parse_if_inet6(text: str) -> set[tuple[str, str]]:
    """Return the owners of global IPv6 addresses that are not refused as duplicates."""
    owners = set()
    for line in text.splitlines():
        fields = line.split()
        if len(fields) != 6 or not HEX128.fullmatch(fields[0]):
            raise ValueError("if_inet6 makes no sense")
        if fields[3] == GLOBAL and not int(fields[4], 16) & DAD_FAILED:
            owners.add((fields[5], IPV6))
    return owners


def parse_ipv6_route(text: str) -> bool:
    """Tell whether there is a default route for IPv6; the kernel always has one that rejects."""
    default = False
    for line in text.splitlines():
        fields = line.split()
        if len(fields) != 10 or not HEX128.fullmatch(fields[0]):
            raise ValueError("ipv6_route makes no sense")
        flags = int(fields[8], 16)
        if fields[0] == "0" * 32 and fields[1] == "00" and flags & RTF_UP and not flags & RTF_REJECT:
            default = True
    return default
