"""What a node's main memory and processors report of their errors: EDAC in /sys, and the kernel's log. Judges nothing.

EDAC counts from boot, or from when its driver was loaded. Its layouts: mcN/dimmN or mcN/rankN (with labels), and the
older mcN/csrowN/chN beside or instead of them. Labels are the board's own (CPU_SrcID#0_MC#2_Chan#0_DIMM#0) or empty.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nodelib.host.attributes import folders, number, text
from nodelib.kernel.kmsg import Line
from nodelib.kernel.page_owner import DIMM, GPU, UNKNOWN, PageOwner

# APEI writes a number in braces before each line of an event of now; one from before the reboot (BERT) has none.
EVENT = re.compile(r"\{(?P<event>[0-9]+)\}\[Hardware Error\]: +(?P<told>.*)")
SEVERITY = re.compile(r"event severity: *(recoverable|fatal)")
SECTION = re.compile(r"section_type: *(?P<section>.*?)(?: error)? *$")
PROCESSOR = re.compile(r"processor", re.IGNORECASE)
UNCORRECTED = re.compile(r"EDAC MC(?P<controller>[0-9]+): (?!0 )[0-9]+ UE .*? on (?P<label>\S.*?) \(")
LOST_PAGE = re.compile(r"Memory failure: 0x(?P<page>[0-9a-f]{1,16}): recovery action for .*: \S")
IN_USE = re.compile(r"mce: Uncorrected hardware memory error in user-access at ")
STORY = re.compile(r"EDAC|\[Hardware Error\]|mce: |Memory failure: ")


LOST = {
    DIMM: "a page of memory was lost",
    GPU: "a page of a GPU's memory was lost (see GpuEccFault)",
    UNKNOWN: "a page of memory was lost, and nobody can tell whether it is a GPU's",
}


class Part(NamedTuple):
    """One DIMM (or rank, row or controller) and its errors since boot. `name`: as a person finds it on the board."""

    name: str
    corrected: int
    uncorrected: int


def read_parts(sys_root: Path) -> tuple[Part, ...]:
    """Return the parts of all memory controllers, () where there are none.

    Raises OSError or ValueError when there are controllers but they do not tell.
    """
    controllers = folders(sys_root / "devices/system/edac/mc", r"mc[0-9]+")
    return tuple(part for controller in controllers for part in _read_controller(controller))


def _read_controller(controller: Path) -> list[Part]:
    """A controller's own count also has errors of which nobody knows the DIMM; what its parts do not explain is its."""
    whole = _counts(controller, "")
    if whole is None:
        raise ValueError(f"{controller.name}/ce_count")
    parts = _dimms(controller) or _channels(controller)
    corrected = whole[0] - sum(part.corrected for part in parts)
    uncorrected = whole[1] - sum(part.uncorrected for part in parts)
    return [*parts, Part(f"{controller.name} (no DIMM told)", max(corrected, 0), max(uncorrected, 0))]


def _counts(folder: Path, prefix: str) -> tuple[int, int] | None:
    corrected, uncorrected = number(folder / f"{prefix}ce_count"), number(folder / f"{prefix}ue_count")
    return None if corrected is None or uncorrected is None else (corrected, uncorrected)


def _dimms(controller: Path) -> list[Part]:
    dimms = []
    for folder in folders(controller, r"(dimm|rank)[0-9]+"):
        counts = _counts(folder, "dimm_")
        if counts:
            dimms.append(Part(_name(text(folder / "dimm_label"), f"{controller.name}/{folder.name}"), *counts))
    return dimms


def _channels(controller: Path) -> list[Part]:
    """Only corrected errors are counted for each channel; the uncorrected ones for each row."""
    channels = []
    for row in folders(controller, r"csrow[0-9]+"):
        for count in folders(row, r"ch[0-9]+_ce_count"):
            channel = count.name.partition("_")[0]
            name = _name(text(row / f"{channel}_dimm_label"), f"{controller.name}/{row.name}/{channel}")
            channels.append(Part(name, number(count) or 0, 0))
        uncorrected = number(row / "ue_count")
        if uncorrected is not None:
            channels.append(Part(f"{controller.name}/{row.name}", 0, uncorrected))
    return channels


def _name(label: str | None, place: str) -> str:
    """A label and its controller, as the log has them, too; the place in /sys where the board gives no label."""
    plain = " ".join((label or "").split())[:48]
    return f"{plain} ({place.partition('/')[0]})" if plain else place


def read_log(lines: Sequence[Line], owner: PageOwner = lambda _: DIMM) -> list[str]:
    """Return what the log says of uncorrected errors, each kind once, sorted. Corrected ones are none."""
    events = set(_events(lines))
    for line in lines:
        if uncorrected := UNCORRECTED.match(line.text):
            events.add(f"uncorrected memory error on {uncorrected['label'][:48]} (mc{uncorrected['controller']})")
        elif lost := LOST_PAGE.match(line.text):
            events.add(LOST[owner(int(lost["page"], 16))])
        elif IN_USE.match(line.text):
            events.add("a process met an uncorrected memory error")
    return sorted(events)


def _events(lines: Iterable[Line]) -> list[str]:
    """Read the firmware's events (APEI): a severity, then a section for each thing that is hit. PCIe is not ours."""
    grave: set[str] = set()
    events = []
    for line in lines:
        event = EVENT.match(line.text)
        if not event:
            continue
        if SEVERITY.match(event["told"]):
            grave.add(event["event"])
        section = SECTION.match(event["told"])
        if section and event["event"] in grave:
            events += _kind(section["section"])
    return events


def _kind(section: str) -> list[str]:
    if section == "memory":
        return ["the firmware reports an uncorrected memory error"]
    return ["the firmware reports an uncorrected processor error"] if PROCESSOR.search(section) else []
