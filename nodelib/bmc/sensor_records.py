"""Sensors of a BMC, as its Sensor Data Records tell of them (SDR: IPMI 2.0, chapters 33, 35 and 43). Judges nothing.

Which sensors there are is asked for once, and again when the BMC says that the list has changed: that is hundreds of
questions. What is kept are the sensors that sensor_states.py can judge.
"""

import time
from collections.abc import Callable

from nodelib.bmc.answer import SensorList
from nodelib.bmc.ipmi_device import SILENT, Refusal
from nodelib.bmc.sensor_states import THRESHOLD, SensorRecord, is_watched

APP, STORAGE, SENSOR = 0x06, 0x0A, 0x04  # network functions
DEVICE_ID, REPOSITORY, RESERVE, RECORD, READING = 0x01, 0x20, 0x22, 0x23, 0x2D  # commands: Get Device ID, and so on
STARTING = 0x80
FULL, COMPACT, EVENTS_ONLY = 0x01, 0x02, 0x03  # types of records of sensors
NAME_AT = {FULL: 47, COMPACT: 31, EVENTS_ONLY: 16}  # where the type and length of the name stand
HEAD, HEADER, NAME_BYTES = 25, 5, 17
BMC = 0x20  # its address: who owns its sensors; those of other controllers are behind a bus of their own
LAST, MOST, MOST_RESERVATIONS = 0xFFFF, 4096, 20
MOST_SENSORS = 4 * 255  # that have an address: a number in one of four units (LUN)
CANCELLED = 0xC5  # the reservation: somebody else reads the list, too
UNREADABLE, FIXED = 0x20, 3  # of a reading; of thresholds that cannot be read, and are compared all the same

Ask = Callable[..., bytes]  # IpmiDevice.ask


class CutReply(ValueError):
    """A BMC answered with less than the specification wants."""


def version(ask: Ask) -> tuple[int, ...]:
    """Return how many records there are, when one was last added and erased, and the firmware of the BMC."""
    bmc, reply = whole(ask(APP, DEVICE_ID), 5), whole(ask(STORAGE, REPOSITORY), 13)
    if bmc[2] & STARTING:
        raise CutReply("it is starting, or its firmware is being updated")
    return (*numbers(reply), int.from_bytes(bmc[2:4] + bmc[11:15], "little"))


def numbers(reply: bytes) -> tuple[int, ...]:
    """Return how many there are of a list of the BMC's, and when one was last added and erased."""
    return tuple(int.from_bytes(reply[at:end], "little") for at, end in ((1, 3), (5, 9), (9, 13)))


def read_list(ask: Ask, known: SensorList, until: float) -> SensorList:
    """Return the list, read on from where `known` ends, until `until` on the monotonic clock."""
    now = version(ask)
    if known.version != now:
        known = SensorList(now)
    sensors, following, read, reservations = list(known.sensors), known.next, 0, 0
    reservation = b""
    while following is not None and time.monotonic() < until:
        if not reservation:
            reservation, reservations = whole(ask(STORAGE, RESERVE), 2)[:2], reservations + 1
        try:
            after, added = read_record(ask, reservation, following)
        except Refusal as error:
            if error.code != CANCELLED or reservations >= MOST_RESERVATIONS:
                raise
            reservation = b""
            continue
        sensors += added
        read += 1
        if read > MOST or after == following or len(sensors) > MOST_SENSORS:
            raise CutReply("its list of sensors has no end")
        following = None if after == LAST else after
    return SensorList(now, tuple(sensors), following)


def read_record(ask: Ask, reservation: bytes, record: int) -> tuple[int, list[SensorRecord]]:
    """Return the next record's number and the sensors of this one, [] for what is no sensor that is judged."""
    asked = reservation + record.to_bytes(2, "little")
    reply = _head(ask, asked)
    after, head = int.from_bytes(reply[:2], "little"), reply[2:]
    at = NAME_AT.get(head[3], 0)
    size = min(NAME_BYTES, head[4] + HEADER - at)
    if not at or size < 1:
        return after, []
    whole(head, min(at, HEAD))
    sensors = parse_record(head, ask(STORAGE, RECORD, asked + bytes((at, size)))[2:])
    return after, list(filter(is_watched, sensors))


def _head(ask: Ask, asked: bytes) -> bytes:
    """Return the next record's number and the first bytes of this one, up to HEAD."""
    try:
        return whole(ask(STORAGE, RECORD, asked + bytes((0, HEAD))), 2 + HEADER)
    except Refusal as error:  # some refuse to tell more bytes than a record has
        if error.code in (CANCELLED, *SILENT):
            raise
    reply = whole(ask(STORAGE, RECORD, asked + bytes((0, HEADER))), 2 + HEADER)
    if reply[5] not in NAME_AT:
        return reply
    return whole(ask(STORAGE, RECORD, asked + bytes((0, min(HEAD, reply[6] + HEADER)))), 2 + HEADER)


def parse_record(head: bytes, name: bytes) -> list[SensorRecord]:
    """Return the sensors of a record: one, or several alike with numbers in a row, which share a compact one.

    `head`: its first HEAD bytes; `name`: from the type and length of its name on.
    """
    if head[3] not in NAME_AT or head[5] != BMC or head[6] & 0xF0:
        return []
    lun, number, only = head[6] & 3, head[7], head[3] == EVENTS_ONLY
    kind, reading = (head[10], head[11]) if only else (head[12], head[13])
    states = 0x7FFF if only else int.from_bytes(head[18:20], "little")
    if reading == THRESHOLD:
        states = 0x3F if head[11] >> 2 & 3 == FIXED else states & 0x3F
    sensor = SensorRecord(parse_name(name) or f"{number:#04x}", kind, reading, states, number, lun, not only)
    shared, first = (head[23] & 0xF, head[24] & 0x7F) if head[3] == COMPACT else (1, 0)
    if shared < 2:
        return [sensor]
    return [
        sensor._replace(name=f"{sensor.name}{first + i}", number=number + i) for i in range(min(shared, 256 - number))
    ]


def parse_name(reply: bytes) -> str:
    """Return a name, "" for none or for one in another alphabet than ASCII.

    >>> parse_name(b"\\xc4PSU1 and more")
    'PSU1'
    """
    size = reply[0] & 0x1F if reply else 0
    if not reply or reply[0] >> 6 != 3:
        return ""
    text = reply[1 : 1 + size].split(b"\0")[0].decode("ascii", "replace")
    return "".join(sign if sign.isascii() and sign.isprintable() else "?" for sign in text).strip()


def read_state(ask: Ask, sensor: SensorRecord) -> int | None:
    """Return the states of a sensor, a bit each; None where it has none now: switched off, nothing there to measure.

    Raises Refusal with a code of SILENT alone, CutReply never, and what `ask` raises besides.
    """
    try:
        reply = ask(SENSOR, READING, bytes((sensor.number,)), sensor.lun)
    except Refusal as error:
        if error.code in SILENT:
            raise
        return None
    if len(reply) < 3 or reply[1] & UNREADABLE or not reply[1] & 0x40:
        return None
    return reply[2] & 0x3F if sensor.reading == THRESHOLD else int.from_bytes(reply[2:4], "little") & 0x7FFF


def whole(reply: bytes, size: int) -> bytes:
    """Return what the BMC told; raises CutReply where it is shorter."""
    if len(reply) < size:
        raise CutReply(f"it answered with {len(reply)} bytes for {size}")
    return reply
