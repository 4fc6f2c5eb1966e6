"""What the value of an attribute is, and how it is read. Every reader raises ValueError with the form that it takes."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

Value = int | bool | str | tuple[int, ...]
LONGEST = 63  # characters, as of the value of a label
_SIZE = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,3}))?(k|[KMGT]i|[MGT])?B?")
_UNITS = {unit: 1000**power for power, unit in enumerate("kMGT", 1)}
_UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("KMGT", 1)}
_MIB = 1024**2
_SWITCHES = {"true": True, "on": True, "false": False, "off": False}


class ValueKind(StrEnum):
    """What values of an attribute are."""

    SIZE = "size"
    VERSION = "version"
    NUMBER = "number"
    SWITCH = "switch"
    TEXT = "text"

    @property
    def ordered(self) -> bool:
        """Whether one value may be more than another."""
        return self in (ValueKind.SIZE, ValueKind.VERSION, ValueKind.NUMBER)


def size(text: str) -> int:
    """Bytes; a number without a unit is in MiB, as in the labels of NVIDIA.

    >>> [size(text) for text in ("40Gi", "40G", "40960")] == [40 * 2**30, 40 * 10**9, 40 * 2**30]
    True
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError("no size; write one such as 40Gi or 80G")
    factor = _UNITS[match[3]] if match[3] else _MIB
    return int(match[1]) * factor + (int(match[2]) * factor // 10 ** len(match[2]) if match[2] else 0)


def version(text: str) -> tuple[int, ...]:
    """The parts of a version, without zeros at its end: 8 and 8.0 are the same, and 8.10 is after 8.9.

    >>> version("535.129.03"), version("8.0") == version("8"), version("8.10") > version("8.9")
    ((535, 129, 3), True, True)
    """
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}", text):
        raise ValueError("no version; write one such as 8.0 or 535.129")
    parts = [int(part) for part in text.split(".")]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return tuple(parts)


def number(text: str) -> int:
    """A whole number."""
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError("no whole number; write one such as 8")
    return int(text)


def switch(text: str) -> bool:
    """On or off."""
    if text.lower() not in _SWITCHES:
        raise ValueError("neither true nor false")
    return _SWITCHES[text.lower()]


def text(value: str) -> str:
    """A word as labels have them, in lower case; `*` stands for any characters."""
    if not re.fullmatch(rf"[-A-Za-z0-9_.*]{{1,{LONGEST}}}", value):
        raise ValueError("no value of a label; write one such as *H100*")
    return value.lower()


READ: Mapping[ValueKind, Callable[[str], Value]] = {
    ValueKind.SIZE: size,
    ValueKind.VERSION: version,
    ValueKind.NUMBER: number,
    ValueKind.SWITCH: switch,
    ValueKind.TEXT: text,
}


def like(fact: Value, wanted: Value) -> bool:
    """Whether a fact is what is wanted; in words `*` stands for any characters.

    >>> like("nvidia-h100-80gb-hbm3", "*h100*"), like("nvidia-h100", "h100"), like((8,), (8,))
    (True, False, True)
    """
    if not (isinstance(fact, str) and isinstance(wanted, str) and "*" in wanted):
        return fact == wanted
    first, *middle, last = wanted.split("*")
    at, end = len(first), len(fact) - len(last)
    if not (fact.startswith(first) and fact.endswith(last)) or end < at:
        return False
    for piece in middle:  # the earliest place leaves the most for the pieces after it
        at = fact.find(piece, at, end) + len(piece)
        if at < len(piece):
            return False
    return True
