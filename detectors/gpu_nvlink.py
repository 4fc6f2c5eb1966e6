#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuNvlinkFault: a link between GPUs is down or full of errors, or a GPU is not part of its fabric.

Jobs on such a node hang in their collectives or run at the speed of PCIe. Each sign must show in two runs in a row;
once is "cannot tell". Signs, and what cures them:

  NVLink down (reset-gpu)              a link was up in this boot, or there are fewer than --links, or every other GPU
                                       of the node has all of its links up. Reset all GPUs of the node together; if it
                                       comes back, reseat the GPU, the baseboard or the bridge, then replace. On all
                                       GPUs at once look at the fabric manager and the switches first
  NVLink recovery failed (reset-gpu)   as above
  NVLink replays, recoveries (field diagnostic)   one a minute or more, the limit of DCGM: marginal signal; seat, cable,
                                       then replace
  NVLink CRC errors (field diagnostic) a hundred a second or more, the limit of DCGM: as above
  NVLink traffic disabled (reset-gpu)  as above: the link is up, and the driver lets nothing through
  fabric manager is not running (fabric manager)   HGX A100, whose GPUs do not tell themselves: every CUDA program fails
                                       (error 802) until nvidia-fabricmanager is started again
  not registered with the fabric (fabric manager)  5 minutes after the boot, after the driver was loaded, or after it
                                       was registered: restart nvidia-fabricmanager (NVL72: nvidia-imex, and the switch
                                       trays), then reboot; its version must be the driver's
  refused by the fabric (fabric manager)          as above; its log says why
  fabric bandwidth degraded, fabric route unhealthy, wrong fabric configuration (fabric)
                                       the fabric's own word on this GPU: drain, reset it, then look at the switches
  fabric route being recovered, fabric access time-out being recovered (fabric)
                                       the same, for 5 minutes: most recoveries end well before

No fault, and told behind "no NVLink has a fault": early sign, NVLink effective errors or NVLink symbol errors, one a
minute or more in two runs in a row. Links of Blackwell count what error correction could not mend: no data is lost yet;
look at the cable and its seat when the node is idle, and keep it as support of a claim.

GPUs without NVLink have no such fault, nor have GPUs in MIG mode, which use no link and no fabric. Where GPUs are
linked without a switch, the links to a GPU that is put into MIG mode are not missed; --links would count them. A bridge
that never had a link up in this boot looks the same as none: say --links where all GPUs of a node have as many.
Links, errors and who the GPUs are, at first sight: <state>/evidence/gpu_nvlink.json.

A GPU that is lost and an NVML that does not answer are "cannot tell": GpuLost tells of them. "no permission" is cured
by running as root. Another code with "does not report its ...", or NVML that cannot be asked or makes no sense:
--explain shows what it says; driver and pynvml (nvidia-ml-py) must fit each other.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, explain, main
from nodelib.contract.npd import Verdict
from nodelib.host.fabric_manager import has_switches, manager
from nodelib.nvml.client import parser
from nodelib.nvml.nvlink_signs import (
    EARLY,
    PER_MINUTE,
    REGISTERED,
    TRANSIENT,
    NvlinkPast,
    Signs,
    down,
    find,
    ill,
    linked,
    mig,
    switched,
    unaware,
    up,
)
from nodelib.nvml.results import GpuReadings, absent, doubts, look, views

MOST_LINKS = 72

SHAPES = {
    "NVLink": {"link": "numbers", "up": "numbers", "remote": "numbers"},
    "NVLink errors": dict.fromkeys((*PER_MINUTE, *EARLY, "failed recoveries"), "number?"),
    "fabric": {"state": "number", "status": "number", "health": "number"},
    "MIG": {"current": "number"},
}
NEEDED = ("NVLink", "NVLink errors", "fabric")

# In the order of the line; the remedy in parentheses. Names of signs are kept in the state folder.
WORDS = {
    "down": "NVLink down (reset-gpu)",
    "disabled": "NVLink traffic disabled (reset-gpu)",
    "failed recoveries": "NVLink recovery failed (reset-gpu)",
    "replays": "NVLink replays (field diagnostic)",
    "recoveries": "NVLink recoveries (field diagnostic)",
    "CRC errors": "NVLink CRC errors (field diagnostic)",
    "no manager": "fabric manager is not running (fabric manager)",
    "unregistered": "not registered with the fabric (fabric manager)",
    "refused": "refused by the fabric (fabric manager)",
    "bandwidth": "fabric bandwidth degraded (fabric)",
    "recovering": "fabric route being recovered (fabric)",
    "unhealthy": "fabric route unhealthy (fabric)",
    "time-out": "fabric access time-out being recovered (fabric)",
    "configuration": "wrong fabric configuration (fabric)",
}
EARLY_WORDS = {
    "effective errors": "early sign, NVLink effective errors",
    "symbol errors": "early sign, NVLink symbol errors",
}
# What may end by itself, and is no fault before PATIENCE: signs that say so, and what is said of them.
WAITING = {"waiting": "not yet registered with the fabric", "healing": "fabric being recovered, not for long yet"}


class Memory(NamedTuple):
    """What is known from run to run: each GPU's past, by uuid, the signs that the last run saw, GPUs in MIG mode.

    `silent`: when no GPU answered last; `manager`: pid of the fabric manager, 0 for none.
    """

    gpus: Mapping[str, NvlinkPast] = {}
    signs: Set[tuple[str, str]] = frozenset()
    mig: frozenset[str] = frozenset()
    silent: float = 0.0
    manager: int = 0


def renewed(before: Memory, seen: GpuReadings) -> Memory:
    """Return what is known once MIG was switched on somewhere: the links to that GPU go down, and are no loss."""
    if not mig(seen) - before.mig:
        return before
    anew = {gpu.uuid: up(gpu) for gpu in linked(seen) if not switched(gpu)}
    pasts = {uuid: past._replace(ups=anew.get(uuid, past.ups)) for uuid, past in before.gpus.items()}
    return before._replace(gpus=pasts)


def judge(seen: GpuReadings, signs: Signs, before: Signs, now: float) -> tuple[Verdict, str]:
    """Turn the signs of this run and of the last one into a verdict and its line: fault, then doubt, then health."""
    unsure = [*doubts(seen, NEEDED), *told(seen, signs - before, "once so far, "), *told(seen, signs, words=WAITING)]
    for verdict, found in ((Verdict.FAULT, told(seen, signs & before)), (Verdict.UNKNOWN, unsure)):
        if found:
            return verdict, "; ".join(found)
    fine = "no NVLink has a fault" if linked(seen) else "no GPU uses NVLink"
    return Verdict.OK, absent(seen) or "; ".join([fine, *told(seen, signs & before, words=EARLY_WORDS)])


def told(seen: GpuReadings, signs: Signs, first: str = "", words: Mapping[str, str] = WORDS) -> list[str]:
    """Return a text for each kind of sign that has `words`, naming the GPUs that have it."""
    named = {text: [gpu.name for gpu in seen.answering if (name, gpu.uuid) in signs] for name, text in words.items()}
    return [f"{first}{text}: {', '.join(names)}" for text, names in named.items() if names]


def remember(before: Memory, seen: GpuReadings, signs: Signs, now: float) -> Memory:
    """Return what the next run must know. Of a GPU that does not answer nothing new is known."""
    pasts = dict(before.gpus)
    for gpu in seen.answering:
        last = pasts.get(gpu.uuid, NvlinkPast())
        ups = last.ups | (up(gpu) if gpu in linked(seen) else set())
        registered = now if gpu.facts.get("fabric", {"state": 0})["state"] == REGISTERED else last.registered
        healing = (last.healing or now) if set(ill(gpu)) & set(TRANSIENT) else 0.0
        pasts[gpu.uuid] = NvlinkPast(ups, now, gpu.facts.get("NVLink errors", {}), registered, healing)
    asked = {gpu.uuid for gpu in seen.answering}
    silent = {sign for sign in before.signs if sign[1] not in asked}
    return Memory(
        pasts, signs | silent, mig(seen) | before.mig - asked, before.silent if asked else now, before.manager
    )


def evidence(seen: GpuReadings, signs: Signs) -> list[dict[str, Any]]:
    """Return who the faulty GPUs are, which of their links are down, their errors and the fabric's word."""
    bad = [gpu for gpu in seen.answering if any((name, gpu.uuid) in signs for name in WORDS)]
    parts = ("NVLink errors", "fabric")
    return [
        {**gpu.who, "links_down": sorted(down(gpu)), **{name: dict(gpu.facts.get(name, {})) for name in parts}}
        for gpu in bad
    ][:3]


def check(run: Run[Memory]) -> Findings:
    """One run: look, judge, remember."""
    options, seen = run.options, look(run.options, SHAPES)
    before = renewed(run.last, seen)
    pid = manager(options.proc, before.manager) if unaware(seen) and has_switches(options.sys) else None
    before = before._replace(manager=pid or 0)
    signs = find(seen, before.gpus, options.links, run.now, before.silent, managed=pid != 0)
    verdict, line = judge(seen, signs, before.signs, run.now)
    known = {"links up in this boot": {uuid: sorted(past.ups) for uuid, past in before.gpus.items()}}
    checks = {words: ", ".join(u for n, u in sorted(signs) if n == name) for name, words in WORDS.items()}
    return Findings(
        verdict,
        line,
        remember(before, seen, signs, run.now),
        evidence=lambda: {"gpus": evidence(seen, signs)},
        explain=lambda: explain({**views(seen), **known}, checks, verdict),
    )


def links(text: str) -> int:
    """Return the number that --links is given. Raises ArgumentTypeError."""
    if text.isascii() and text.isdigit() and int(text) <= MOST_LINKS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}: say how many NVLinks each GPU has, a number up to {MOST_LINKS}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument(
        "--links", type=links, default=0, metavar="N", help="links that each GPU should have up (default: as described)"
    )
    return options.parse_args(arguments)


DETECTOR = Detector("gpu_nvlink", "GpuNvlinkFault", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
