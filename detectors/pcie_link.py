#!/usr/bin/env -S python3 -I -S -B
"""Condition PcieLinkDegraded: a GPU, NVSwitch, RDMA card or NVMe disk has lost lanes of its PCIe link, or errs on it.

The links of PCIe switches above them are looked at, too. Faults:

  has N of M lanes          in two runs in a row fewer than both ends can have, or than it had in this boot
  is slower than declared   in two runs in a row below --speed
  met fatal errors, met non-fatal errors    AER has counted some since the first look in this boot

No fault: a low speed that nobody declared, for idle GPUs slow their links down (--explain tells speeds); a device that
does not tell its link, as in many virtual machines; corrected errors; virtual functions. A device that has told its
lanes and tells nonsense now (all ones) is "cannot tell": GpuLost and DiskFault tell of devices that are gone.

Where a slot has fewer lanes than both ends, declare it: --width gpu=8, --width 0000:3b:00.0=8. Where a device must
keep its speed, too: --speed rdma=32 (GT/s; idle GPUs do not). An address outranks a kind (gpu, nvswitch, rdma, nvme,
switch).

Remedy: PcieLinkDegraded: move the work off the node and switch it off and on again; a mere reboot often trains the link
as it was. Where it comes back, have the card reseated and the riser, cable or retimer replaced: addresses and slots are
in <state>/evidence/pcie_link.json. "met fatal errors" beside GpuLost or DiskFault: they name the device that is lost.
"Cannot tell": "(seen once)": the next run decides. "does not tell its lanes", "makes no sense", "cannot be read":
lspci -vv on the node; where that shows nothing either, the device is gone or wedged: switch the node off and on again.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import sys

sys.path.insert(0, __file__.rpartition("/")[0] or ".")  # python3 -I leaves it out

import _turn

if __name__ == "__main__":
    _turn.take()  # before all that costs memory

import argparse
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from _attributes import text
from _detector import conclude, explain, keep_evidence, main, parser
from _pcie import ADDRESS, FALLEN, STORY, Link, read_links, slot
from _verdict import Verdict, boot_id, read_json, write_json

NAME = "pcie_link"
KINDS = ("gpu", "nvswitch", "rdma", "nvme", "switch")
FINE, NO_BUS, NO_LINK = "every PCIe link has its lanes", "this node has no PCI bus", "no PCIe link is told of"


class Known(NamedTuple):
    """What outlasts a run. `widest`: lanes by address; `errors`: counters at first sight; `slow`: below what is due."""

    widest: dict[str, int]
    errors: dict[str, int]
    slow: frozenset[str]


class Declared(NamedTuple):
    """What an operator knows better, by kind or address: lanes, and GT/s."""

    width: Mapping[str, float]
    speed: Mapping[str, float]


def due(link: Link, widest: int, declared: Mapping[str, float]) -> int:
    """Return how many lanes a link should have, 0 when nobody knows."""
    if (told := declared.get(link.address, declared.get(link.kind))) is not None:
        return int(told)
    most = [end.most_width for end in (link.lower, link.upper) if end and (end.most_width or 0) > 0]
    return max(min((lanes for lanes in most if lanes), default=0), widest)


def shortfall(link: Link, known: Known, declared: Declared) -> str:
    """Return what a link lacks, "" for nothing."""
    lanes, speed = link.lower.width or 0, link.lower.speed or 0.0
    want = due(link, known.widest.get(link.address, 0), declared.width)
    if 0 < lanes < want:
        return f"has {lanes} of {want} lanes"
    least = declared.speed.get(link.address, declared.speed.get(link.kind, 0.0))
    return "is slower than declared" if 0 < speed < least else ""


def judge(links: Collection[Link], known: Known, declared: Declared) -> tuple[Verdict, str]:
    """Turn links and what is remembered of them into a verdict and its line; `known.slow` is that of the last run."""
    found = {}
    for link in links:
        who = f"PCIe link of {link.kind} {link.address}"
        if lacks := shortfall(link, known, declared):
            twice = link.address in known.slow
            found[f"{who} {lacks}{'' if twice else ' (seen once)'}"] = Verdict.FAULT if twice else Verdict.UNKNOWN
        if unclear(link, known):
            found[f"{who} does not tell its lanes"] = Verdict.UNKNOWN
        for name, count in link.errors.items():
            end, grade = name.split()
            if count < 0:
                found[f"aer_dev_{grade} of {end} makes no sense"] = Verdict.UNKNOWN
            elif count > known.errors.get(name, count):
                found[f"{who} met {grade.replace('nonfatal', 'non-fatal')} errors (at {end})"] = Verdict.FAULT
    return conclude(found, FINE if any(link.lower.width for link in links) else NO_LINK)


def unclear(link: Link, known: Known) -> bool:
    """Whether a link that should tell its lanes does not."""
    lanes = link.lower.width
    return lanes in (-1, FALLEN) or (lanes is None and link.address in known.widest)


def remember(links: Collection[Link], known: Known, declared: Declared) -> Known:
    """Return what the next run must know; counters that were reset (a device that is new in its place) begin anew."""
    told = {link.address: link.lower.width or 0 for link in links if 0 < (link.lower.width or 0) < FALLEN}
    widest = {address: max(lanes, known.widest.get(address, 0)) for address, lanes in told.items()}
    counts = {name: count for link in links for name, count in link.errors.items() if count >= 0}
    errors = {name: min(count, known.errors.get(name, count)) for name, count in counts.items()}
    slow = frozenset(link.address for link in links if shortfall(link, known, declared))
    return Known({**known.widest, **widest}, {**known.errors, **errors}, slow)


def recall(path: Path, boot: str) -> Known:
    """Return what the last run of this boot knew; what makes no sense is left out."""
    memory = read_json(path)
    same = memory if memory.get("boot_id") == boot else {}
    widest, errors = (_numbers(same.get(name)) for name in ("widest", "errors"))
    slow = same.get("slow")
    return Known(
        widest,
        errors,
        frozenset(one for one in slow if isinstance(one, str)) if isinstance(slow, list) else frozenset(),
    )


def _numbers(value: Any) -> dict[str, int]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {name: count for name, count in pairs if type(count) is int and count >= 0}


def evidence(options: argparse.Namespace, links: Collection[Link], line: str) -> dict[str, Any]:
    """Return who is ill and what the kernel says of it; bounded, lest it be cut elsewhere."""
    from _kmsg import read_new  # few runs need it

    ill = [link for link in links if f" {link.address} " in line][:3]
    lines = [told.text for told in read_new(options.dev, None).lines if STORY.search(told.text)]
    places = {link.address: options.sys / "bus/pci/devices" / link.address for link in ill}
    return {
        "links": [
            {
                "address": link.address,
                "kind": link.kind,
                "slot": slot(options.sys, link.address)[:40],
                "device": f"{text(places[link.address] / 'vendor')} {text(places[link.address] / 'device')}",
                "lower": list(link.lower),
                "upper": list(link.upper or ()),
                "errors": {name: count for name, count in link.errors.items() if count},
            }
            for link in ill
        ],
        "kernel": [told[:110] for told in lines if any(link.address in told for link in ill)][-4:]
        or [told[:110] for told in lines[-4:]],
    }


def check(options: argparse.Namespace) -> tuple[Verdict, str]:
    """One run: read the links, judge, remember."""
    path, boot = options.state / f"{NAME}.json", boot_id(options.proc)
    known, declared = recall(path, boot), Declared(dict(options.width), dict(options.speed))
    links = read_links(options.sys)
    if links is None:
        return Verdict.OK, NO_BUS
    verdict, line = judge(links, known, declared)
    after = remember(links, known, declared)
    write_json(path, {"boot_id": boot, "widest": after.widest, "errors": after.errors, "slow": sorted(after.slow)})
    first = verdict is Verdict.FAULT and not (options.state / "evidence" / f"{NAME}.json").exists()
    found = evidence(options, links, line) if first else {}  # reading the whole log is not for every run
    keep_evidence(options.state, NAME, verdict, {"condition": "PcieLinkDegraded", "line": line[:300], **found})
    if options.explain:
        checks = {f"{link.kind} {link.address}": explain_link(link, known, declared) for link in links}
        explain({"links": len(links), "seen in this boot": known.widest, "declared": declared}, checks, verdict)
    return verdict, line


def explain_link(link: Link, known: Known, declared: Declared) -> str:
    """Return how a link is, and its speed, of which the line is silent."""
    want = due(link, known.widest.get(link.address, 0), declared.width)
    most = link.lower.most_speed
    slow = f" (idle, or degraded: up to {most:g})" if most and link.lower.speed and link.lower.speed < most else ""
    return f"{link.lower.width} of {want or 'unknown'} lanes at {link.lower.speed} GT/s{slow}, errors {link.errors}"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    for name, what in (("--width", "lanes"), ("--speed", "GT/s")):
        options.add_argument(
            name,
            type=_declared,
            action="append",
            default=[],
            metavar="WHO=N",
            help=f"{what} of a kind or address, repeatable",
        )
    return options.parse_args(arguments)


def _declared(value: str) -> tuple[str, float]:
    who, _, number = value.partition("=")
    if not (who in KINDS or ADDRESS.fullmatch(who)) or not re.fullmatch(r"[0-9]{1,3}(\.[0-9])?", number):
        raise argparse.ArgumentTypeError(
            f"{value!r} is not WHO=NUMBER: WHO is one of {', '.join(KINDS)} or an address like 0000:3b:00.0"
        )
    return who, float(number)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), NAME, check)
