"""A BMC made of records, for the program through the kernel's interface (tests/native/ipmi_stub.c) and for `look`.

Records are laid out as IPMI 2.0 says: 43.1 full sensors, 43.2 compact ones, 43.3 those with events only, 32.1 entries
of the event log.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from nodelib.bmc.ipmi_device import Refusal

SOURCE = Path(__file__).resolve().parents[1] / "native/ipmi_stub.c"
NOW = 1_796_126_400  # of the BMC's clock: 2026-12-01T12:00:00Z
FULL, COMPACT, EVENTS_ONLY, LOCATOR = 1, 2, 3, 0x11
TEMPERATURE, FAN, SUPPLY, UNIT, COOLING, OTHER = 0x01, 0x04, 0x08, 0x09, 0x0A, 0xC0
THRESHOLD, ASSERTED, REDUNDANCY, SPECIFIC = 0x01, 0x03, 0x0B, 0x6F
CRITICAL = 0x3F  # all six thresholds can be read
SCANNED, UNAVAILABLE, OFF = 0xC0, 0xE0, 0x80  # flags of a reading
OK_ID = bytes.fromhex("20 01 02 17 02 bf 57 01 00 01 02 00 00 00 00")  # Get Device ID


class FakeSensor(NamedTuple):
    """A sensor and what it shows. `told`: what Get Sensor Reading answers in place of that."""

    name: str
    kind: int
    reading: int
    number: int
    shown: int = 0
    record: int = FULL
    states: int = CRITICAL
    flags: int = SCANNED
    owner: int = 0x20
    lun: int = 0
    told: bytes | None = None
    shared: int = 0

    def body(self, identity: int) -> bytes:
        """The record."""
        key = bytes((self.owner, self.lun, self.number, 7, 1))
        mask = self.states.to_bytes(2, "little")
        if self.record == EVENTS_ONLY:
            rest = bytes((self.kind, self.reading, 0, 0, 0, 0))
        else:
            rest = bytes((0x7F, 0x68, self.kind, self.reading, 0, 0, 0, 0)) + mask
            rest += bytes(27) if self.record == FULL else bytes((0, 0, 0, self.shared, 1)) + bytes(6)
        text = self.name.encode("latin-1")
        rest += bytes((0xC0 | len(text),)) + text
        return identity.to_bytes(2, "little") + bytes((0x51, self.record, len(key + rest))) + key + rest

    def state(self) -> bytes:
        """What Get Sensor Reading answers."""
        shown = bytes((0xC0 | self.shown,)) if self.reading == THRESHOLD else self.shown.to_bytes(2, "little")
        return bytes((0x40, self.flags)) + shown if self.told is None else self.told


def entry(number: int, sensor: FakeSensor, state: int, at: int = NOW - 3600, *, ends: bool = False) -> bytes:
    """An entry of the event log: a state of a sensor was asserted, or deasserted."""
    head = number.to_bytes(2, "little") + b"\x02" + at.to_bytes(4, "little")
    event = bytes((sensor.owner, sensor.lun, 4, sensor.kind, sensor.number, sensor.reading | (0x80 if ends else 0)))
    return head + event + bytes((state, 0xFF, 0xFF))


class FakeBmc:
    """A BMC. `answers`: what it answers to a function and a command, with the completion code; `asked`: what it was."""

    def __init__(self, *sensors: FakeSensor, log: Iterable[bytes] = (), extra: Iterable[bytes] = ()) -> None:
        bodies = [sensor.body(number) for number, sensor in enumerate(sensors, 1)]
        self.records, self.log, self.sensors = [*bodies, *extra], list(log), sensors
        self.orders: list[str] = []
        self.asked: list[tuple[int, int]] = []
        self.erased, self.added = 5, 7
        self.answers = {(0x06, 0x01): b"\0" + OK_ID, (0x0A, 0x22): b"\0\x01\x00"}
        self.answers[0x0A, 0x48] = b"\0" + NOW.to_bytes(4, "little")

    def counted(self) -> dict[tuple[int, int], bytes]:
        """The answers, with how many records and entries there are now."""
        stamps = self.added.to_bytes(4, "little") + self.erased.to_bytes(4, "little") + b"\x2f"
        counts = {
            (0x0A, command): b"\0\x51" + len(those).to_bytes(2, "little") + b"\0\0" + stamps
            for command, those in ((0x20, self.records), (0x40, self.log))
        }
        return {**counts, **self.answers}

    def script(self) -> list[str]:
        """The lines for the stub."""
        lines = [*self.orders]
        for what, those in (("sdr", self.records), ("sel", self.log)):
            for index, body in enumerate(those, 1):
                lines.append(f"{what} {index:x} {'ffff' if index == len(those) else f'{index + 1:x}'} {body.hex()}")
        lines += [f"state {one.lun:x} {one.number:x} {one.state().hex()}" for one in self.sensors if one.state()]
        return [*lines, *(f"answer {fn:x} {cmd:x} {told.hex()}" for (fn, cmd), told in self.counted().items())]

    def ask(self, function: int, command: int, data: bytes = b"", lun: int = 0) -> bytes:
        """What IpmiDevice.ask returns."""
        self.asked.append((function, command))
        told = self._answer(function, command, data, lun)
        if told[0]:
            raise Refusal(told[0])
        return told[1:]

    def _answer(self, function: int, command: int, data: bytes, lun: int) -> bytes:
        if (function, command) in ((0x0A, 0x23), (0x0A, 0x43)) and (function, command) not in self.answers:
            return self._record(self.records if command == 0x23 else self.log, data)
        if (function, command) == (0x04, 0x2D) and (function, command) not in self.answers:
            told = (one.state() for one in self.sensors if (one.lun, one.number) == (lun, data[0]) and one.state())
            return next((b"\0" + one for one in told), b"\xcb")
        return self.counted().get((function, command), b"\xc1")

    def _record(self, those: list[bytes], data: bytes) -> bytes:
        number, at, size = int.from_bytes(data[2:4], "little") or 1, data[4], data[5]
        if number > len(those):
            return b"\xcb"
        body, after = those[number - 1], 0xFFFF if number == len(those) else number + 1
        if size != 0xFF and at + size > len(body):
            return b"\xca"
        return b"\0" + after.to_bytes(2, "little") + (body[at:] if size == 0xFF else body[at : at + size])


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    """Where the stub is compiled, once in a process."""
    folder = tempfile.TemporaryDirectory(prefix="ipmi-stub-")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc, clang) on PATH to build the IPMI stub")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", f"{folder.name}/ipmi.so", str(SOURCE), "-ldl"], check=True
    )
    return folder


def attach(root: Path, bmc: FakeBmc) -> dict[str, str]:
    """Give the node below `root` the BMC; return the variables in which its programs find it."""
    device, script = root / "dev/ipmi0", root / "bmc.txt"
    device.parent.mkdir(parents=True, exist_ok=True)
    if not device.exists():
        os.mkfifo(device)
    script.write_text("".join(f"{line}\n" for line in bmc.script()))
    return {"LD_PRELOAD": f"{_folder().name}/ipmi.so", "IPMI_STUB": str(script)}
