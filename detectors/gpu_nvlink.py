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
  not registered with the fabric (fabric manager)  5 minutes after boot or later: restart nvidia-fabricmanager (NVL72:
                                       nvidia-imex, and the switch trays), then reboot; its version must be the driver's
  refused by the fabric (fabric manager)          as above; its log says why
  fabric bandwidth degraded, fabric route unhealthy, fabric route being recovered,
  fabric access time-out being recovered, wrong fabric configuration (fabric)
                                       the fabric's own word on this GPU: drain, reset it, then look at the switches

Cards without NVLink have no such fault, nor have GPUs in MIG mode, which use no link and no fabric. Where GPUs are
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
from collections.abc import Collection, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.detector import clock, explain, keep_evidence, main
from nodelib.contract.npd import Verdict, boot_id, read_json, write_json
from nodelib.nvml.client import parser
from nodelib.nvml.results import Gpu, GpuReadings, absent, doubts, look, views

NAME = "gpu_nvlink"
MOST_LINKS = 72
PATIENCE = 300.0  # seconds after boot that the fabric manager has to register every GPU
SWITCH = 2  # NVML_NVLINK_DEVICE_TYPE_SWITCH, at the other end of a link
UNREGISTERED, REGISTERED = (1, 2), 3  # states of the fabric; 0: there is none
PER_MINUTE = {"replays": 1.0, "recoveries": 1.0, "CRC errors": 6000.0}  # DCGM's limits for a failure

SHAPES = {
    "NVLink": {"link": "numbers", "up": "numbers", "remote": "numbers"},
    "NVLink errors": dict.fromkeys((*PER_MINUTE, "failed recoveries"), "number?"),
    "fabric": {"state": "number", "status": "number", "health": "number"},
    "MIG": {"current": "number"},
}
NEEDED = ("NVLink", "NVLink errors", "fabric")

# In the order of the line; the remedy in parentheses. Names of signs are kept in the state folder.
WORDS = {
    "down": "NVLink down (reset-gpu)",
    "failed recoveries": "NVLink recovery failed (reset-gpu)",
    "replays": "NVLink replays (field diagnostic)",
    "recoveries": "NVLink recoveries (field diagnostic)",
    "CRC errors": "NVLink CRC errors (field diagnostic)",
    "unregistered": "not registered with the fabric (fabric manager)",
    "refused": "refused by the fabric (fabric manager)",
    "bandwidth": "fabric bandwidth degraded (fabric)",
    "recovering": "fabric route being recovered (fabric)",
    "unhealthy": "fabric route unhealthy (fabric)",
    "time-out": "fabric access time-out being recovered (fabric)",
    "configuration": "wrong fabric configuration (fabric)",
}
# Two bits each in the mask of health, from this bit on; 1 says that it is so, 0 that it is not told.
HEALTH = {"bandwidth": 0, "recovering": 2, "unhealthy": 4, "time-out": 6}
CONFIGURATION, RIGHT = 8, (0, 1)  # four bits: not told, and nothing wrong

Signs = Set[tuple[str, str]]  # (name of the sign, uuid of the GPU)


class Past(NamedTuple):
    """What is known of one GPU: the links that were up in this boot; when it was last asked, its errors then."""

    ups: frozenset[int] = frozenset()
    at: float = 0.0
    errors: Mapping[str, int] = {}


class Memory(NamedTuple):
    """What is known from run to run: each GPU's past, by uuid, the signs that the last run saw, GPUs in MIG mode."""

    pasts: Mapping[str, Past] = {}
    signs: Signs = frozenset()
    mig: frozenset[str] = frozenset()


def up(gpu: Gpu) -> frozenset[int]:
    """Return the links that are up."""
    links = gpu.facts.get("NVLink", {"link": [], "up": []})
    return frozenset(link for link, state in zip(links["link"], links["up"], strict=True) if state)


def down(gpu: Gpu) -> frozenset[int]:
    """Return the links that are not."""
    return frozenset(gpu.facts.get("NVLink", {"link": []})["link"]) - up(gpu)


def mig(seen: GpuReadings) -> frozenset[str]:
    """Return the GPUs in MIG mode."""
    return frozenset(gpu.uuid for gpu in seen.answering if gpu.facts.get("MIG", {}).get("current"))


def judged(seen: GpuReadings) -> list[Gpu]:
    """Return the GPUs that may use links and the fabric."""
    return [gpu for gpu in seen.answering if gpu.uuid not in mig(seen)]


def linked(seen: GpuReadings) -> list[Gpu]:
    """Return the GPUs whose links matter."""
    return [gpu for gpu in judged(seen) if "NVLink" in gpu.facts]


def switched(gpu: Gpu) -> bool:
    """Tell whether a GPU's links lead to a switch, and not to other GPUs."""
    return SWITCH in gpu.facts.get("NVLink", {"remote": []})["remote"]


def renewed(before: Memory, seen: GpuReadings) -> Memory:
    """Return what is known once MIG was switched on somewhere: the links to that GPU go down, and are no loss."""
    if not mig(seen) - before.mig:
        return before
    anew = {gpu.uuid: up(gpu) for gpu in linked(seen) if not switched(gpu)}
    pasts = {uuid: past._replace(ups=anew.get(uuid, past.ups)) for uuid, past in before.pasts.items()}
    return before._replace(pasts=pasts)


def find(seen: GpuReadings, pasts: Mapping[str, Past], declared: int, now: float) -> Signs:
    """Return the signs that this run sees."""
    found = {("down", gpu.uuid) for gpu in linked(seen) if _is_down(gpu, seen, pasts.get(gpu.uuid, Past()), declared)}
    for gpu in judged(seen):
        past = pasts.get(gpu.uuid, Past())
        found |= {(name, gpu.uuid) for name in (*_erring(gpu, past, now), *_of_fabric(gpu, now))}
    return found


def _is_down(gpu: Gpu, seen: GpuReadings, past: Past, declared: int) -> bool:
    return bool(past.ups - up(gpu)) or len(up(gpu)) < declared or (bool(down(gpu)) and _alone(gpu, seen))


def _alone(gpu: Gpu, seen: GpuReadings) -> bool:
    """Whether all links of every other GPU are up, and this one is no card that stands for itself without a bridge."""
    others = [other for other in linked(seen) if other.uuid != gpu.uuid]
    whole = bool(others) and all(up(other) and not down(other) for other in others)
    return whole and (bool(up(gpu)) or all(map(switched, others)))


def _erring(gpu: Gpu, past: Past, now: float) -> list[str]:
    errors = gpu.facts.get("NVLink errors", {})
    grown = {name: count - past.errors[name] for name, count in errors.items() if name in past.errors}
    minutes = max(now - past.at, 60.0) / 60.0
    often = [name for name, most in PER_MINUTE.items() if grown.get(name, 0) >= most * minutes]
    return [*often, *(["failed recoveries"] if grown.get("failed recoveries", 0) > 0 else [])]


def _of_fabric(gpu: Gpu, now: float) -> list[str]:
    fabric = gpu.facts.get("fabric", {"state": 0, "status": 0, "health": 0})
    health = fabric["health"]
    wrong = health >> CONFIGURATION & 0xF not in RIGHT
    return [
        *(["unregistered"] if fabric["state"] in UNREGISTERED and now >= PATIENCE else []),
        *(["refused"] if fabric["state"] == REGISTERED and fabric["status"] else []),
        *(name for name, bit in HEALTH.items() if health >> bit & 3 == 1),
        *(["configuration"] if wrong else []),
    ]


def judge(seen: GpuReadings, signs: Signs, before: Signs, now: float) -> tuple[Verdict, str]:
    """Turn the signs of this run and of the last one into a verdict and its line: fault, then doubt, then health."""
    unsure = [*doubts(seen, NEEDED), *told(seen, signs - before, "once so far, "), *_early(seen, now)]
    for verdict, found in ((Verdict.FAULT, told(seen, signs & before)), (Verdict.UNKNOWN, unsure)):
        if found:
            return verdict, "; ".join(found)
    return Verdict.OK, absent(seen) or ("no NVLink has a fault" if linked(seen) else "no GPU uses NVLink")


def _early(seen: GpuReadings, now: float) -> list[str]:
    waiting = [gpu.name for gpu in judged(seen) if gpu.facts.get("fabric", {}).get("state") in UNREGISTERED]
    return [f"not yet registered with the fabric: {', '.join(waiting)}"] if waiting and now < PATIENCE else []


def told(seen: GpuReadings, signs: Signs, first: str = "") -> list[str]:
    """Return a text for each kind of sign, naming the GPUs that have it."""
    named = {words: [gpu.name for gpu in seen.answering if (name, gpu.uuid) in signs] for name, words in WORDS.items()}
    return [f"{first}{words}: {', '.join(names)}" for words, names in named.items() if names]


def remember(before: Memory, seen: GpuReadings, signs: Signs, now: float) -> Memory:
    """Return what the next run must know. Of a GPU that does not answer nothing new is known."""
    pasts = dict(before.pasts)
    for gpu in seen.answering:
        ups = pasts.get(gpu.uuid, Past()).ups | (up(gpu) if gpu in linked(seen) else set())
        pasts[gpu.uuid] = Past(ups, now, gpu.facts.get("NVLink errors", {}))
    asked = {gpu.uuid for gpu in seen.answering}
    silent = {sign for sign in before.signs if sign[1] not in asked}
    return Memory(pasts, signs | silent, mig(seen) | before.mig - asked)


def recall(path: Path, boot: str) -> Memory:
    """Return what the last run of this boot knew; what makes no sense is left out."""
    saved = read_json(path)
    if saved.get("boot_id") != boot:
        return Memory()
    gpus, signs = saved.get("gpus"), saved.get("signs")
    pasts = {uuid: _past(one) for uuid, one in gpus.items()} if isinstance(gpus, dict) else {}
    pairs = (
        frozenset((sign[0], sign[1]) for sign in signs if _is_pair(sign)) if isinstance(signs, list) else frozenset()
    )
    uuids = saved.get("mig")
    found = frozenset(uuid for uuid in uuids if isinstance(uuid, str)) if isinstance(uuids, list) else frozenset()
    return Memory({uuid: past for uuid, past in pasts.items() if past}, pairs, found)


def _past(saved: Any) -> Past | None:
    match saved:
        case [list(ups), int(at) | float(at), dict(errors)] if _are_numbers([*ups, *errors.values()]):
            return Past(frozenset(ups), at, errors)
    return None


def _are_numbers(values: Collection[Any]) -> bool:
    return all(type(value) is int for value in values)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(text, str) for text in value)


def save(path: Path, boot: str, memory: Memory) -> None:
    """Write down what the next run must know."""
    gpus = {uuid: [sorted(past.ups), past.at, dict(past.errors)] for uuid, past in memory.pasts.items()}
    write_json(path, {"boot_id": boot, "gpus": gpus, "signs": sorted(memory.signs), "mig": sorted(memory.mig)})


def evidence(seen: GpuReadings, signs: Signs) -> list[dict[str, Any]]:
    """Return who the faulty GPUs are, which of their links are down, their errors and the fabric's word."""
    bad = [gpu for gpu in seen.answering if any(uuid == gpu.uuid for _, uuid in signs)]
    parts = ("NVLink errors", "fabric")
    return [
        {**gpu.who, "links_down": sorted(down(gpu)), **{name: dict(gpu.facts.get(name, {})) for name in parts}}
        for gpu in bad
    ][:3]


def check(options: argparse.Namespace) -> tuple[Verdict, str]:
    """One run: look, judge, remember, keep the evidence. A run by hand (--explain) is not the first of two."""
    now, boot, path = clock(options), boot_id(options.proc), options.state / f"{NAME}.json"
    seen = look(options, SHAPES)
    before = renewed(recall(path, boot), seen)
    signs = find(seen, before.pasts, options.links, now)
    verdict, line = judge(seen, signs, before.signs, now)
    if options.explain:
        known = {"links up in this boot": {uuid: sorted(past.ups) for uuid, past in before.pasts.items()}}
        checks = {words: ", ".join(u for n, u in sorted(signs) if n == name) for name, words in WORDS.items()}
        explain({**views(seen), **known}, checks, verdict)
        return verdict, line
    save(path, boot, remember(before, seen, signs, now))
    record = {"condition": "GpuNvlinkFault", "line": line, "gpus": evidence(seen, signs)}
    keep_evidence(options.state, NAME, verdict, record)
    return verdict, line


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


if __name__ == "__main__":
    main(parse(sys.argv[1:]), NAME, check)
