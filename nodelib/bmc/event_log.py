"""The event log of a BMC (SEL: IPMI 2.0, chapters 31 and 32): which states were asserted and not deasserted since.

It is read on from where the last run ended. It is never cleared.
"""

import time
from collections.abc import Iterable

from nodelib.bmc.answer import EventLog, LogEvent
from nodelib.bmc.ipmi_device import SILENT, Refusal
from nodelib.bmc.sensor_records import BMC, LAST, MOST, STORAGE, Ask, CutReply, numbers, whole
from nodelib.bmc.sensor_states import GENERIC, SPECIFIC, SUPPLY, THRESHOLD

INFO, ENTRY, CLOCK = 0x40, 0x43, 0x48  # commands: Get SEL Info, Get SEL Entry, Get SEL Time
OF_SYSTEM, DEASSERTED = 0x02, 0x80  # type of a record; the direction of an event
ENTRY_BYTES, OPEN = 16, 128  # of events that stand at once, the newest


def read_log(ask: Ask, known: EventLog, until: float) -> EventLog:
    """Return the log, read on from where `known` ends, until `until` on the monotonic clock."""
    now = numbers(whole(ask(STORAGE, INFO), 13))
    if known.complete and known.version == now:
        return known
    if known.version[2:] != now[2:]:  # erased since
        known = EventLog()
    if not now[0]:
        return EventLog(now, complete=True)
    return _read_on(ask, known._replace(version=now, complete=False), until)


def _read_on(ask: Ask, log: EventLog, until: float) -> EventLog:
    last, events = log.last, list(log.events)
    try:
        following, _ = _entry(ask, last) if last else (0, b"")
    except Refusal as error:
        if error.code in SILENT:
            raise
        return _read_on(ask, EventLog(log.version), until)  # the log was cleared, or has gone round
    for _ in range(MOST):
        if following == LAST:
            return log._replace(last=last, complete=True, events=tuple(events))
        if time.monotonic() >= until:
            break
        after, entry = _entry(ask, following)
        last, events = int.from_bytes(entry[:2], "little"), advance(events, entry)
        if after == following:
            raise CutReply("its event log has no end")
        following = after
    return log._replace(last=last, events=tuple(events))


def _entry(ask: Ask, number: int) -> tuple[int, bytes]:
    """Return the number of the next entry, and this one."""
    reply = whole(ask(STORAGE, ENTRY, b"\0\0" + number.to_bytes(2, "little") + b"\0\xff"), 2 + ENTRY_BYTES)
    return int.from_bytes(reply[:2], "little"), reply[2:]


def advance(events: Iterable[LogEvent], entry: bytes) -> list[LogEvent]:
    """Return which events stand after this entry of the log. What passes a threshold is left to the sensor itself."""
    event = parse_entry(entry)
    if event is None or event.reading == THRESHOLD:
        return [*events]
    asserted = not entry[12] & DEASSERTED
    well = asserted and event.state == 0 and event.reading in GENERIC
    kept = [
        earlier
        for earlier in events
        if (earlier.number, earlier.lun, earlier.reading) != (event.number, event.lun, event.reading)
        or not (well or earlier.state == event.state)
    ]
    present = event.state == 0 and (event.kind, event.reading) == (SUPPLY, SPECIFIC)
    return [*kept, event][-OPEN:] if asserted and not well and not present else kept


def parse_entry(entry: bytes) -> LogEvent | None:
    """Return what an entry tells of one of the BMC's own sensors, None for all else."""
    if entry[2] != OF_SYSTEM or entry[7] != BMC:
        return None
    kind, number, reading = entry[10], entry[11], entry[12] & ~DEASSERTED
    return LogEvent(kind, reading, entry[13] & 0xF, number, entry[8] & 3, int.from_bytes(entry[3:7], "little"))


def read_clock(ask: Ask) -> int:
    """Return the time of the BMC's clock, by which its events are dated."""
    return int.from_bytes(whole(ask(STORAGE, CLOCK), 4)[:4], "little")
