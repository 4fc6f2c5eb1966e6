"""Lines of the NVIDIA driver in the kernel's log: what was seen on which GPU or NVSwitch, and what that calls for.

Reads the formats of drivers 515 to 610 and of older ones. An address is dddd:bb:dd in lower case, as most of them print
it: a GPU has one function. Texts are matched from their start, so that no name of a process passes for a line of the
driver.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from nodelib.kernel.kmsg import Line, run_on
from nodelib.kernel.xid_table import SXIDS_FATAL, SXIDS_HARMLESS, XIDS

FALLEN = 79  # GPU has fallen off the bus
ADVICE = 154  # the driver says which repair it wants, by a number
# What 154 can want (NVML: GPU recovery action). Its words differ from driver to driver, so the number counts; of higher
# numbers the meaning differs, so there a word counts.
ADVISED = {1: "reset", 2: "reboot", 3: "P2P drain", 4: "drain and reset"}
ADVISED_BY_WORD = {"imex": "IMEX recovery", "bus": "bus reset", "reboot": "reboot"}
CALLS_FOR = {"R": "reset", "B": "reboot", "P": "power cycle", "H": "inspection", "W": "watch", "?": "unexpected"}
# Actions that make a fault, the most severe first.
SEVERITY = (
    "inspection",
    "power cycle",
    "reboot",
    "bus reset",
    "IMEX recovery",
    "reset",
    "drain and reset",
    "P2P drain",
)

_AT = r"(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?"
_XID = re.compile(
    rf"NVRM: Xid \((?:PCI:)?{_AT}(?: GPU-C?I:\d+)*\): (?P<code>\d{{1,4}})(?:,(?P<rest>.*))?$", re.I | re.A
)
_SXID = re.compile(rf"nvidia-nvswitch\d+: SXid \(PCI:{_AT}\): (?P<code>\d{{1,6}}),(?P<rest>.*)$", re.I | re.A)
_FALLEN = re.compile(rf"NVRM: GPU (?:PCI:)?{_AT}: GPU has fallen off the bus", re.I | re.A)
# Three records, or one with escaped line ends; other CPUs may write in between.
_GONE_HEAD, _GONE_TAIL = "NVRM: The NVIDIA GPU ", "NVRM: fallen off the bus"
_GONE = re.compile(rf"{_GONE_HEAD}{_AT}\b(?:(?!{_GONE_HEAD}).)*{_GONE_TAIL}", re.A)
_GONE_WITHIN = 5
_UUID = re.compile(rf"NVRM: GPU at (?:PCI:)?{_AT}: (?P<rest>GPU-[0-9a-f-]{{8,40}})", re.I | re.A)
_SERIAL = re.compile(r"NVRM: GPU Board Serial Number: (?P<rest>\w{1,32})", re.A)
_LOADED = re.compile(r"NVRM: loading NVIDIA UNIX")
_RESET = re.compile(rf"remediator: GPU {_AT} was reset", re.I | re.A)
_SWITCH_RESET = re.compile(rf"remediator: NVSwitch {_AT} was reset", re.I | re.A)
_KINDS = (
    ("xid", _XID),
    ("sxid", _SXID),
    ("fallen", _FALLEN),
    ("fallen", _GONE),
    ("uuid", _UUID),
    ("reset", _RESET),
    ("switch reset", _SWITCH_RESET),
    ("loaded", _LOADED),
)
_ABOUT = re.compile(r"NVRM: Xid\b|nvidia-nvswitch\d+: SXid\b", re.A)

_PID = re.compile(r" pid='?(\d{1,10})\b", re.A)
_WANTED = re.compile(r"recovery action changed from .* to 0x([0-9a-f]{1,4})\b(?: \((?P<words>[^)]*))?", re.I | re.A)
_REGISTERS = re.compile(r"\((0x[0-9a-f]+(?:, ?0x[0-9a-f]+){4,6})\)", re.I | re.A)
# More than the 15 characters that the name of a process may have, which is in the line, too.
_NONFATAL = re.compile(r"\bNonfatal +XC\d+ +i\d+ +Link", re.A)
# Packets of a link were lost for good, though the line says Nonfatal (145, RLW_RXPIPE): its second action, a reset, is
# due where a bit is set. (Bits that name the unit, the unit, that bit) of its first register, up to 570 and since.
_LOST_PACKETS = re.compile(
    r"\bRLW_RXPIPE +Nonfatal +XC\d+ +i\d+ +Link +-?\d+ +\((0x[0-9a-f]+),? (0x[0-9a-f]+)", re.I | re.A
)
_PROMOTED = ((0x3FF, 0x0C2, 0x400), (0x7F, 0x06, 0x80))
_PACKET_STATUS = (1, 2, 4)
_RESET_WANTED = re.compile(r"Contained: .*(?<!D-)RST: Yes")

# Bits of the registers in a 74 line, as (register, bit) from 0 (NVIDIA, NVLink error workflow).
_QUIET = {(0, bit) for bit in (0, 1, 20, 23, 30)} | {(3, 16), (3, 17)} | {(4, bit) for bit in (20, 23, 26, 29)}
_MECHANICAL = {(0, bit) for bit in (8, 9, 12, 16, 17, 24, 28)}
_TELLING = (0, 2, 3, 4)  # the other registers say nothing of the cause
_ACRONYMS = (
    " C2C CE CHI CRC DBE DRAM ECC FECS FIFO GPU GR GSP HW MMU MSE NETIR NVDEC0 NVENC3 NVLINK NVLPW OFA1 P2P PBDMA PCIE "
    " PMU RLW RPC SAW SBE SEC SEC2 SPI SRAM SW TLW TREX VGPU "
)


class XidEvent(NamedTuple):
    """One line that says something. `kind`: xid, sxid, fallen, uuid, serial, reset, switch reset, loaded, or garbled.

    `code`: of xid and sxid; `rest`: what follows the code, the UUID or the serial number.
    """

    kind: str
    line: Line
    address: str = ""
    code: int = 0
    rest: str = ""

    @property
    def pid(self) -> str:
        """The process that the line names, "" for none."""
        match = _PID.match(self.rest)
        return match[1] if match and int(match[1]) else ""


class XidRow(NamedTuple):
    """One line of the table of Xids; see xid_table.py."""

    mnemonic: str
    kind: str
    again: str
    source: str
    note: str


def read_events(lines: Sequence[Line]) -> Iterator[XidEvent]:
    """Yield what the lines say of GPUs and NVSwitches, in their order."""
    address = ""
    for index, line in enumerate(lines):
        if not line.text.startswith(("NVRM: ", "nvidia-nvswitch", "remediator: ")):
            continue
        event = _read(line, run_on(lines, index, _GONE_WITHIN) if line.text.startswith(_GONE_HEAD) else line.text)
        serial = _SERIAL.match(line.text)
        if event:
            address = event.address if event.kind == "uuid" else ""
            yield event
        elif serial and address:  # it names no GPU: it is of the one whose UUID was the line before
            yield XidEvent("serial", line, address, rest=serial["rest"])
            address = ""


def _read(line: Line, text: str) -> XidEvent | None:
    for kind, pattern in _KINDS:
        match = pattern.match(text)
        if match:
            parts = match.groupdict()
            code = int(parts.get("code") or 0)
            return XidEvent(kind, line, _short(parts.get("address") or ""), code, (parts.get("rest") or "").rstrip())
    return XidEvent("garbled", line) if _ABOUT.match(text) else None


def _short(address: str) -> str:
    """Return an address as most lines have it.

    >>> _short("00000000:3B:00")
    '0000:3b:00'
    """
    domain, _, place = address.lower().partition(":")
    return f"{int(domain, 16):04x}:{place}" if place else ""


def unfinished(lines: Sequence[Line]) -> int | None:
    """Return the sequence number at which a message begins that the log may only have begun; None for no such."""
    for index in range(max(0, len(lines) - _GONE_WITHIN), len(lines)):
        if lines[index].text.startswith(_GONE_HEAD) and _GONE_TAIL not in run_on(lines, index, _GONE_WITHIN):
            return lines[index].sequence
    return None


@cache
def table() -> dict[int, XidRow]:
    """Return the row of each known Xid."""
    rows = {}
    for line in XIDS.strip().splitlines():
        codes, *cells = (cell.strip() for cell in line.split("|"))
        rows.update(dict.fromkeys(_range(codes), XidRow(*cells)))
    return rows


def _range(text: str) -> range:
    """Return the codes of "39-42" or of "39"."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def kind_of(event: XidEvent) -> str:
    """Return what an Xid line calls for at first sight: APP, IGN, W, R, B, P, H, or ? for one that nobody expects."""
    row = table().get(event.code)
    decide = _BY_TEXT.get(row.kind) if row else None
    return decide(event.rest) if decide else row.kind if row else "?"


def _nvlink(rest: str) -> str:
    match = _REGISTERS.search(rest)
    registers = [int(word, 16) for word in match[1].split(",")] if match else [0] * 5
    bits = {(index, bit) for index in _TELLING for bit in range(32) if registers[index] >> bit & 1}
    if bits & _MECHANICAL:
        return "H"
    return "W" if bits and bits <= _QUIET else "R"


def _nvlink5(rest: str) -> str:
    if not _NONFATAL.search(rest):
        return "R"
    lost = _LOST_PACKETS.search(rest)
    return "R" if lost and _promoted(int(lost[1], 16), int(lost[2], 16)) else "W"


def _promoted(unit: int, status: int) -> bool:
    """Tell whether the second action of a non-fatal line is due, by its first two registers."""
    return status in _PACKET_STATUS and any(unit & mask == name and unit & bit for mask, name, bit in _PROMOTED)


def _contained(rest: str) -> str:
    return "R" if _RESET_WANTED.search(rest) else "W"


_BY_TEXT = {"L": _nvlink, "L5": _nvlink5, "C": _contained}


def wanted(event: XidEvent) -> int | None:
    """Return the number of the repair that a 154 line wants, 0 for none; None where it cannot be read."""
    match = _WANTED.search(event.rest)
    return int(match[1], 16) if match else None


def advised(event: XidEvent) -> str:
    """Return the repair that a 154 line wants, one of SEVERITY; "" for none, and where nobody can tell."""
    number, match = wanted(event) or 0, _WANTED.search(event.rest)
    words_told = (match["words"] or "").lower() if match and number > max(ADVISED) else ""
    return ADVISED.get(number) or next((action for word, action in ADVISED_BY_WORD.items() if word in words_told), "")


def sxid_kind(event: XidEvent) -> str:
    """Return what an SXid line calls for: R, or W, also for a line that only gives the details of another."""
    word = event.rest.strip().partition(",")[0].lower()
    if word not in ("fatal", "non-fatal") or _among(event.code, SXIDS_HARMLESS):
        return "W"
    return "R" if word == "fatal" or _among(event.code, SXIDS_FATAL) else "W"


def _among(code: int, ranges: str) -> bool:
    return any(code in _range(part.strip()) for part in ranges.split(","))


def words(code: int) -> str:
    """Return an Xid's mnemonic as words.

    >>> words(79), words(119), words(999)
    ('GPU has fallen off the bus', 'GSP RPC timeout', 'not in the table')
    """
    row = table().get(code)
    names = row.mnemonic.split("_") if row else ["not in the table"]
    return " ".join(name if f" {name} " in _ACRONYMS else name.lower() for name in names)
