"""Which GPUs a fault is about, by what the diagnostics found and what its condition says."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from sys import intern

MOST = 16  # GPUs of one case
DEEPEST, LONGEST = 8, 96  # levels of evidence, characters of what it says of one GPU
_BOARD = re.compile(r"\(GPU-[0-9a-f]{8}, serial ([0-9A-Za-z-]{6,32})\)")  # as detectors write of a GPU
_PREFIX = 12  # "GPU-9f3c01ab": what detectors write of a UUID
# What boards without a serial number say: many boards say the same.
_NO_SERIAL = frozenset({"n/a", "unknown", "none", "[n/a]", "[unknown]", "not supported", "[not supported]"})


@dataclass(frozen=True, slots=True, order=True)
class Gpu:
    """One GPU. `serial` is that of its board: two GPUs of one board share it, and only the UUID tells them apart."""

    serial: str = ""
    uuid: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """What it is found by: the board, then the GPU."""
        return tuple(key for key in (self.serial, self.uuid) if key)

    def __str__(self) -> str:
        gpu = self.uuid[:_PREFIX]
        return f"board {self.serial} ({gpu})" if self.serial and gpu else f"board {self.serial}{gpu}".strip()


def gpus_of(evidence: Mapping[str, object] | None, condition: str, message: str) -> tuple[Gpu, ...]:
    """The GPUs that a case is about: those that its condition's message names by PCI address, UUID or serial number,
    and those in what the detector of this condition has kept, which lists the faulty ones.

    Other GPUs of the node only stood beside: a case of theirs would make boards suspicious that are well. Where all of
    several are faulty at once the fault is the node's, and none is named. Of a case that is only told there is no
    evidence: then the boards count whose serial numbers the message has.
    """
    if not evidence:
        boards = {_serial(text) for text in _BOARD.findall(message)} - {""}
        return tuple(Gpu(intern(board)) for board in sorted(boards))[:MOST]
    parts = [evidence[name] for name in ("detectors", "gpus") if name in evidence] if evidence else []
    known: dict[str, dict[str, str]] = {}
    faulty: set[str] = set()
    for part, kept in _parts(parts, condition, False, DEEPEST):
        entry = _entry(part)
        key = entry["address"] or entry["uuid"] or entry["serial"]
        if key:
            known.setdefault(key, {}).update({name: text for name, text in entry.items() if text})
            faulty |= {key} if kept else set()
    gpus = {key: _gpu(entry) for key, entry in known.items() if entry.get("uuid") or entry.get("serial")}
    named = {gpu for key, gpu in gpus.items() if key in faulty or _is_named(known[key], message)}
    return () if len(named) == len(gpus) > 1 else tuple(sorted(named))[:MOST]


def slots(evidence: Mapping[str, object] | None) -> Mapping[str, str]:
    """The PCI addresses of the GPUs that evidence tells of, by UUID and by the serial number of the board."""
    parts = [evidence[name] for name in ("detectors", "gpus") if name in evidence] if evidence else []
    entries = [_entry(part) for part, _ in _parts(parts, "", False, DEEPEST)]
    return {entry[word]: entry["address"] for word in ("serial", "uuid") for entry in entries if entry[word]}


def _parts(value: object, condition: str, kept: bool, depth: int) -> Iterator[tuple[Mapping[str, object], bool]]:
    """Each object in the evidence that may be a GPU, and whether the detector of the condition has kept it."""
    if isinstance(value, Mapping):
        kept = kept or (bool(condition) and value.get("condition") == condition)
        if value.keys() & {"address", "uuid", "serial"}:
            yield value, kept
        value = list(value.values())
    if isinstance(value, list | tuple) and depth:
        for inner in value:
            yield from _parts(inner, condition, kept, depth - 1)


def _entry(part: Mapping[str, object]) -> dict[str, str]:
    """Who it is; its address without the function, which not every program tells."""
    address, uuid, serial = (_text(part.get(word)) for word in ("address", "uuid", "serial"))
    slot, dot, function = address.rpartition(".")
    return {"address": slot if dot and len(function) == 1 else address, "uuid": uuid, "serial": _serial(serial)}


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) and len(value) <= LONGEST else ""


def _gpu(entry: Mapping[str, str]) -> Gpu:
    return Gpu(intern(entry.get("serial", "")), intern(entry.get("uuid", "")))


def _serial(text: str) -> str:
    """The serial number; "" for what many boards say."""
    return "" if text.lower() in _NO_SERIAL or len(text) < 6 or len(set(text)) < 2 else text


def _is_named(entry: Mapping[str, str], message: str) -> bool:
    """Whether the message has its address, the begin of its UUID, or its serial number."""
    uuid = entry.get("uuid", "")
    words = (entry.get("address", ""), uuid[:_PREFIX] if len(uuid) >= _PREFIX else "", entry.get("serial", ""))
    return any(word and word in message for word in words)
