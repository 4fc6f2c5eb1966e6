"""The statistics that a network card's driver counts for itself: `python3 ethtool.py INTERFACE... ANSWER`.

Run by congestion.py, never by hand: a driver whose card is gone may hang, and must then be left behind. Asks as
`ethtool -S` does, for which nobody needs a privilege.
"""

import array
import fcntl
import os
import re
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(os.path.realpath(f"{__file__}/../../.."))  # where nodelib/ is: this file is a program, too

from nodelib.contract.npd import write_json

SIOCETHTOOL, STATS = 0x8946, 1  # of <linux/sockios.h>; ETH_SS_STATS
COUNT, NAMES, VALUES = 0x37, 0x1B, 0x1D  # ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS
NAME, VALUE = 32, 8  # bytes of each
SLACK = 4096  # more than were counted: queues may be added in between, and the kernel writes as many as there are
WANTED = re.compile(rb"(rx_discards_phy|[rt]x_prio[0-7]_pause)\0")
Call = Callable[[str, bytes, int], bytes]


def call(interface: str, head: bytes, length: int) -> bytes:
    """Make one call with a buffer that begins with `head` and has `length` bytes behind it. Raises OSError."""
    buffer = array.array("B", head + bytes(length))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sP16x", interface.encode(), buffer.buffer_info()[0])
        fcntl.ioctl(any_socket, SIOCETHTOOL, request)
    return buffer.tobytes()


def statistics(interface: str, ask: Call = call) -> dict[str, int]:
    """Return those of one interface that tell of congestion; {} where its driver counts none. Raises OSError."""
    counts = ask(interface, struct.pack("2IQ", COUNT, 0, 1 << STATS), 4)
    mask, count = struct.unpack_from("Q", counts, 8)[0], struct.unpack_from("I", counts, 16)[0]
    if not mask:
        return {}
    room = count + SLACK
    names = ask(interface, struct.pack("3I", NAMES, STATS, room), room * NAME)[12:]
    places = {match[1].decode(): match.start() // NAME for match in WANTED.finditer(names) if match.start() % NAME == 0}
    if not places:
        return {}
    values = ask(interface, struct.pack("2I", VALUES, room), room * VALUE)[8:]
    return {name: struct.unpack_from("Q", values, place * VALUE)[0] for name, place in places.items()}


def main() -> None:
    """Ask each interface, and write down what was told."""
    *interfaces, answer = sys.argv[1:]
    numbers = {}
    for interface in interfaces:
        try:
            numbers[interface] = statistics(interface)
        except OSError:
            continue  # its driver counts nothing, or it is gone
    write_json(Path(answer), {"statistics": numbers, "done": True})


if __name__ == "__main__":
    main()
