"""The kernel's log, read from /dev/kmsg: records with a sequence number, from a cursor on. Judges nothing.

Every reader of the device starts at the oldest record that is left, so a reader needs no service that runs on, only its
own cursor: the sequence number that it has read last, in its own state file with the id of the boot. Sequence numbers
begin anew at boot, and so does the log; old records are overwritten, so what must last belongs into the state file.

Reading never waits: the device is opened without blocking. In tests a plain file with the same records will do.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

RECORD_BYTES = 16_384  # the kernel never makes one longer than 8192
FACILITY = 8  # priorities from here on are of other facilities than the kernel's, which no program can write as
MOST_READS = 1_000_000  # about 2 seconds; a log that still goes on then is growing faster than it is read


class Line(NamedTuple):
    """One record. `at`: seconds since boot; `text`: what is no printable ASCII in it is \\xNN, as the kernel has it.

    `written`: a program wrote it into the log, not the kernel.
    """

    sequence: int
    at: float
    text: str
    written: bool = False


class Log(NamedTuple):
    """What is new. `why`: "" or why (some of) the log cannot be read; `cursor`: to be kept for the next `read_new`.

    `lost`: records after the old cursor were overwritten before anybody read them.
    """

    lines: tuple[Line, ...]
    why: str = ""
    lost: bool = False
    cursor: int | None = None


def read_new(dev: Path, cursor: int | None) -> Log:
    """Return the records of dev/kmsg after `cursor`, all that are left when it is None.

    A log without any record is none: some containers have an empty device in its place.
    """
    reader = _Reader()
    try:
        fd = os.open(dev / "kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        return Log((), f"the kernel log cannot be opened: {_cause(dev, error)}", cursor=cursor)
    try:
        for record in reader.records(fd):
            reader.take(record, cursor)
    except OSError as error:
        reader.why = f"the kernel log cannot be read: {_cause(dev, error)}"
    finally:
        os.close(fd)
    return reader.log(dev, cursor)


class _Reader:
    """One reading of the log, from its oldest record to its end."""

    def __init__(self) -> None:
        self.new: list[Line] = []
        self.oldest, self.newest = -1, -1
        self.why, self.overtaken = "", False

    def records(self, fd: int) -> Iterator[bytes]:
        """Yield records and their continuation lines; the device gives one a read, a file gives any piece of itself."""
        rest = b""
        for _ in range(MOST_READS):
            try:
                piece = os.read(fd, RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten while we read; the next read goes on at the oldest one left
                self.overtaken = True
                continue
            if not piece:
                break
            *whole, rest = (rest + piece).split(b"\n")
            rest = rest[:RECORD_BYTES]
            yield from whole
        else:
            self.why = "the kernel log grows faster than it can be read"
        if rest:
            yield rest

    def take(self, record: bytes, cursor: int | None) -> None:
        """Keep a record that is after `cursor`; note one that makes no sense."""
        if record.startswith(b" ") or not record:  # " KEY=value": who wrote the record before
            return
        head, semicolon, text = record.partition(b";")
        fields = head.split(b",")
        if not semicolon or len(fields) < 4 or not all(field.isdigit() and len(field) < 20 for field in fields[:3]):
            self.why = "the kernel log has records that make no sense"
            return
        sequence = int(fields[1])
        self.oldest = sequence if self.newest < 0 else self.oldest
        self.newest = sequence
        if cursor is None or sequence > cursor:
            written = int(fields[0]) >= FACILITY
            self.new.append(Line(sequence, int(fields[2]) / 1e6, text.decode("ascii", "replace"), written))

    def log(self, dev: Path, cursor: int | None) -> Log:
        """Return what was read."""
        if self.newest < 0:
            return Log((), self.why or f"{dev / 'kmsg'} is no kernel log: it has no record", cursor=cursor)
        if cursor is not None and self.newest < cursor:  # the cursor is not of this log: it would hide all to come
            return read_new(dev, None)
        lost = cursor is not None and (self.overtaken or self.oldest > cursor + 1)
        return Log(tuple(self.new), self.why, lost, self.newest)


def run_on(lines: Sequence[Line], index: int, count: int) -> str:
    """Return the text of `lines[index]` and of the up to `count` records right behind it, with blanks in between.

    For messages of several records. A record that is missing, or that came over a second later, ends it.

    >>> run_on([Line(7, 1.0, "a"), Line(8, 1.0, "b"), Line(10, 1.0, "c")], 0, 2)
    'a b'
    """
    texts = [lines[index].text]
    for before, line in zip(lines[index:], lines[index + 1 : index + 1 + count], strict=False):
        if line.sequence != before.sequence + 1 or line.at - before.at > 1.0:
            break
        texts.append(line.text)
    return " ".join(texts)


def _cause(dev: Path, error: OSError) -> str:
    return f"{dev / 'kmsg'}: {error.strerror or error}"
