#!/usr/bin/env -S python3 -I -S -B
"""Condition PcieLinkDegraded: a GPU, NVSwitch, RDMA card or NVMe disk has lost lanes of its PCIe link, or errs on it.

The links of PCIe switches above them are looked at, too. Faults:

  has N of M lanes          in two runs in a row fewer than both ends can have, or than it had in this boot
  is slower than declared   in two runs in a row below --speed
  met fatal errors, met non-fatal errors    AER has counted new ones in two runs in a row, non-fatal ones in five, until
                               an hour has passed without any; fatal ones at once, and for as long as the link lacks
                               something

No fault: a low speed that nobody declared, for idle GPUs slow their links down (--explain tells speeds); few lanes at
64 GT/s and more, for idle links of PCIe 6 shed them and take them back (declare --width to judge them); a device that
does not report its link, or of which the port above it does not (virtual machines show none, or one of their own: what
a device could have is not what its slot has); errors of a moment, as a reset makes them, once the link is whole again;
corrected errors; virtual functions. A device that has told its lanes and tells nonsense now (all ones) is "cannot
tell": GpuLost and DiskFault tell of devices that are gone.

Where a slot has fewer lanes than both ends, declare it: --width gpu=8, --width 0000:3b:00.0=8. Where a device must
keep its speed, too: --speed rdma=32 (GT/s; idle GPUs do not). An address outranks a kind (gpu, nvswitch, rdma, nvme,
switch).

Remedy: PcieLinkDegraded: move the work off the node and switch it off and on again; a mere reboot often trains the link
as it was. If it comes back, have the device reseated and the riser, cable or retimer replaced: addresses and slots are
in <state>/evidence/pcie_link.json. "met fatal errors" beside GpuLost or DiskFault: they name the device that is lost.
"Cannot tell": "(seen once)", "(not for long yet)": the next runs decide. "does not report its lanes", "makes no sense",
"cannot be read": lspci -vv on the node; where that shows nothing either, the device is gone or wedged: switch the node
off and on again.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.attributes import text
from nodelib.host.pcie import ADDRESS, FALLEN, STORY, End, Link, read_links, slot

KINDS = ("gpu", "nvswitch", "rdma", "nvme", "switch")
# How often in a row errors grow until they are believed: non-fatal ones of a whole link are noise of some boards, of
# firmware and of kernels, and cost no job.
RUNS = {"fatal": 2, "nonfatal": 5}
QUIET = 3600.0  # seconds until they are forgotten
FINE, NO_BUS, NO_LINK = "every PCIe link has its lanes", "this node has no PCI bus", "no PCIe link is reported"


class Tally(NamedTuple):
    """A counter of errors. `grew`: when last, in seconds since boot; `runs`: in how many runs in a row, RUNS at most.

    With RUNS of its grade it stands for QUIET seconds; a fatal one, however many, for as long as the link is not whole.
    """

    total: int
    grew: float = 0.0
    runs: int = 0


class Known(NamedTuple):
    """What outlasts a run. `widest`: lanes by address; `errors`: by end and grade; `slow`: below what is due."""

    widest: Mapping[str, int] = {}
    errors: Mapping[str, Tally] = {}
    slow: frozenset[str] = frozenset()


class Declared(NamedTuple):
    """What an operator knows better, by kind or address: lanes, and GT/s."""

    width: Mapping[str, float]
    speed: Mapping[str, float]


def due(link: Link, widest: int, declared: Mapping[str, float]) -> int:
    """Return how many lanes a link should have, 0 when nobody knows."""
    if (told := declared.get(link.address, declared.get(link.kind))) is not None:
        return int(told)
    if link.sheds:
        return 0
    port = upper_port(link)
    return max(min(link.lower.most_width or 0, port.most_width or 0) if port else 0, widest)


def upper_port(link: Link) -> End | None:
    """Return the upper end where it is to be seen: what a card could have is not what its slot has."""
    return link.upper if link.upper and (link.upper.width or 0) > 0 else None


def shortfall(link: Link, known: Known, declared: Declared) -> str:
    """Return what a link lacks, "" for nothing."""
    lanes, speed = link.lower.width or 0, link.lower.speed or 0.0
    want = due(link, known.widest.get(link.address, 0), declared.width)
    if 0 < lanes < want:
        return f"has {lanes} of {want} lanes"
    least = declared.speed.get(link.address, declared.speed.get(link.kind, 0.0))
    return "is slower than declared" if 0 < speed < least else ""


def judge(links: Collection[Link], known: Known, declared: Declared) -> tuple[Verdict, str]:
    """Turn links and what is remembered of them into a verdict and its line.

    `known.slow` is that of the last run, `known.errors` is that of this one.
    """
    found = {}
    for link in links:
        who = f"PCIe link of {link.kind} {link.address}"
        if lacks := shortfall(link, known, declared):
            twice = link.address in known.slow
            found[f"{who} {lacks}{'' if twice else ' (seen once)'}"] = Verdict.FAULT if twice else Verdict.UNKNOWN
        if unclear(link, known):
            found[f"{who} does not report its lanes"] = Verdict.UNKNOWN
        whole = is_whole(link, known, declared)
        for name, count in link.errors.items():
            end, grade = name.split()
            runs = known.errors[name].runs if name in known.errors else 0
            met = f"{who} met {grade.replace('nonfatal', 'non-fatal')} errors (at {end})"
            if count < 0:
                found[f"aer_dev_{grade} of {end} makes no sense"] = Verdict.UNKNOWN
            elif runs >= RUNS[grade] or (runs and grade == "fatal" and not whole):
                found[met] = Verdict.FAULT
            elif runs:
                found[f"{met} (seen once)" if RUNS[grade] == 2 else f"{met} (not for long yet)"] = Verdict.UNKNOWN
    return conclude(found, FINE if any(link.lower.width for link in links) else NO_LINK)


def unclear(link: Link, known: Known) -> bool:
    """Whether a link that should tell its lanes does not."""
    lanes = link.lower.width
    return lanes in (-1, FALLEN) or (lanes is None and link.address in known.widest)


def is_whole(link: Link, known: Known, declared: Declared) -> bool:
    """Whether a link lacks nothing, as far as it tells."""
    return not shortfall(link, known, declared) and not unclear(link, known)


def tally(total: int, before: Tally | None, now: float, waits: bool, runs: int) -> Tally:
    """Return a counter as this run sees it; one that was reset (a device that is new in its place) begins anew.

    `runs`: after how many it is believed; `waits`: whether its errors stand, for the link is not whole.
    """
    if before is None or total < before.total:
        return Tally(total)
    if total > before.total:
        return Tally(total, now, min(before.runs + 1, runs))
    stands = waits or (before.runs >= runs and now - before.grew < QUIET)
    return before if stands else Tally(total)


def count_errors(links: Collection[Link], known: Known, declared: Declared, now: float) -> dict[str, Tally]:
    """Return the counters as this run sees them, with those that nobody tells just now as they were."""
    found = {
        name: tally(
            count,
            known.errors.get(name),
            now,
            name.endswith(" fatal") and not is_whole(link, known, declared),
            RUNS[name.split()[1]],
        )
        for link in links
        for name, count in link.errors.items()
        if count >= 0
    }
    return {**known.errors, **found}


def remember(links: Collection[Link], known: Known, declared: Declared) -> Known:
    """Return what the next run must know; the counters of errors in `known` are those of this run already."""
    told = {link.address: link.lower.width or 0 for link in links if 0 < (link.lower.width or 0) < FALLEN}
    widest = {address: max(lanes, known.widest.get(address, 0)) for address, lanes in told.items()}
    slow = frozenset(link.address for link in links if shortfall(link, known, declared))
    return Known({**known.widest, **widest}, known.errors, slow)


def evidence(options: argparse.Namespace, links: Collection[Link], line: str) -> dict[str, Any]:
    """Return who is ill and what the kernel says of it; bounded, lest it be cut elsewhere."""
    from nodelib.kernel.kmsg import read_new  # few runs need it

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


def check(run: Run[Known]) -> Findings:
    """One run: read the links, judge, remember."""
    options, declared = run.options, Declared(dict(run.options.width), dict(run.options.speed))
    links = read_links(options.sys)
    if links is None:
        return Findings(Verdict.OK, NO_BUS)
    known = run.last._replace(errors=count_errors(links, run.last, declared, run.now))
    verdict, line = judge(links, known, declared)
    views = {"links": len(links), "seen in this boot": known.widest, "declared": declared}
    each = {f"{link.kind} {link.address}": explain_link(link, known, declared) for link in links}
    return Findings(
        verdict,
        line,
        remember(links, known, declared),
        evidence=lambda: evidence(options, links, line),
        explain=lambda: explain(views, each, verdict),
    )


def explain_link(link: Link, known: Known, declared: Declared) -> str:
    """Return how a link is, and its speed, of which the line is silent."""
    want = due(link, known.widest.get(link.address, 0), declared.width)
    most = link.lower.most_speed
    slow = f" (idle, or degraded: up to {most:g})" if most and link.lower.speed and link.lower.speed < most else ""
    alone = "" if upper_port(link) else ", the port above it is not to be seen"
    lanes = f"{link.lower.width} of {want or 'unknown'} lanes at {link.lower.speed} GT/s{slow}"
    return f"{lanes}{alone}, errors {link.errors}"


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


DETECTOR = Detector("pcie_link", "PcieLinkDegraded", check, Known)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
