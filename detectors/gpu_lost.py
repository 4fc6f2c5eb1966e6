#!/usr/bin/env -S python3 -E -s -S -B
"""Condition GpuLost: a GPU that should be on this node does not answer.

Four views are compared, because there are real losses that only one of them shows: PCI (the configuration space of a
fallen device reads all ones), the driver's list under /proc, the device nodes, and NVML. How many GPUs there should be
is declared (--expected) or learned as the most that was ever seen; a learned number lasts as long as the state folder,
on a memory file system until the reboot, so declare it where you can. What the kubelet offers is not compared: that
takes an API token, which a detector does not have.

NVML is asked by a child that can be left behind. No answer by --deadline (longer than the 45 s after which the driver
gives up on one call to the GPU's own processor) is a fault too: NvmlHung. A GPU bound to another driver (vfio-pci) and
one that the driver was told to exclude are not lost. A driver that is not loaded at all is "cannot tell" for 15
minutes, the time to install one, and a fault after that. How long a fault must hold before anything is done is up to
the policy.

Remedy: drain the node and reboot it; a device that has fallen off the bus rarely comes back by a reset. If the same GPU
is lost again, have it and its riser looked at: serial number and UUID are in <state>/evidence/gpu_lost.json.
"version mismatch" means that the driver was upgraded under running processes; the reboot loads the new one.

Exit codes: 0 every GPU answers, 1 fault, 2 cannot tell.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from _gpus import Card, Driven, ask_nvml, read_driver, read_nodes, read_pci
from _probe import Answer, ask
from _verdict import STATE, Verdict, boot_id, leave_mark, read_json, run, since_boot, write_json

NAME = "gpu_lost"
DRIVER_PATIENCE = 900.0  # seconds that a node may be without driver: one is being installed or upgraded

# NVML codes that blame a GPU or the driver; any other code says only that we could not ask.
INIT_FAULTS = {9: "the driver is not loaded", 18: "driver and library version mismatch", 999: "unknown error"}
GPU_FAULTS = {
    6: "not found",
    15: "GPU is lost",
    16: "GPU requires reset",
    28: "GPU not found",
    999: "unknown error",
}


class Seen(NamedTuple):
    """All that was read in one run. None means that a view could not be had.

    `expected`: GPUs that should be on the bus, None when neither declared nor learned; `without_driver`: seconds that
    the driver has been missing so far.
    """

    cards: tuple[Card, ...] | None
    driven: dict[str, Driven] | None
    nodes: frozenset[int] | None
    nvml: Answer
    expected: int | None = None
    without_driver: float = 0.0

    @property
    def known(self) -> dict[str, Card]:
        """GPUs on PCI, by address."""
        return {card.address: card for card in self.cards or () if card.state != "unreadable"}

    @property
    def unreadable(self) -> list[str]:
        """PCI functions that may be GPUs or not."""
        return [card.address for card in self.cards or () if card.state == "unreadable"]

    @property
    def ours(self) -> set[str]:
        """Addresses of the GPUs on PCI that the NVIDIA driver and NVML should show."""
        excluded = {address for address, gpu in (self.driven or {}).items() if gpu.excluded}
        return {card.address for card in self.known.values() if card.driver in ("", "nvidia")} - excluded

    @property
    def answering(self) -> list[dict[str, Any]]:
        """GPUs that NVML answers for."""
        return [gpu for gpu in self.nvml.said.get("gpus", []) if gpu.get("error") == 0]

    @property
    def total(self) -> int | None:
        """How many GPUs there are: those on PCI, or NVML's where PCI shows none; None when nobody can tell."""
        if self.known or (self.cards is not None and "count" not in self.nvml.said):
            return len(self.known)
        return self.nvml.said.get("count")

    @property
    def wanted(self) -> bool:
        """Whether NVML should show anything."""
        return bool(self.ours) or (not self.known and self.expected != 0)


def judge(seen: Seen) -> tuple[Verdict, str]:
    """Turn what was read into a verdict and its line: any fault outranks any doubt, any doubt outranks health."""
    for verdict, views in ((Verdict.FAULT, FAULTS), (Verdict.UNKNOWN, DOUBTS)):
        found = sorted({text for view in views for text in view(seen)})
        if found:
            return verdict, "; ".join(found)
    return Verdict.OK, "every GPU answers"


def _fallen(seen: Seen) -> list[str]:
    return [f"{card.address} has fallen off the bus" for card in seen.known.values() if card.state == "fallen"]


def _without_driver(seen: Seen) -> list[str]:
    if seen.driven is None:
        return ["the driver is not loaded"] if seen.ours and seen.without_driver >= DRIVER_PATIENCE else []
    lost = [card.address for card in seen.known.values() if not card.driver and card.address not in seen.driven]
    return [f"{address} has no driver: its probe failed" for address in lost]


def _gone_from_pci(seen: Seen) -> list[str]:
    gone = set(seen.driven or {}) - set(seen.known) - set(seen.unreadable) if seen.known else set()
    return [f"{address} has left PCI" for address in gone]


def _without_node(seen: Seen) -> list[str]:
    if seen.nodes is None:
        return []
    minors = {gpu.minor for gpu in (seen.driven or {}).values() if not gpu.excluded} - {None}
    return [f"/dev/nvidia{minor} is missing" for minor in minors - seen.nodes]


def _nvml_init(seen: Seen) -> list[str]:
    code = seen.nvml.said.get("init")
    if not seen.wanted or code not in INIT_FAULTS or (code == 9 and seen.driven is None):
        return []  # NVML says 9 when there is no driver, and that has a patience of its own
    return [f"NVML does not start: {INIT_FAULTS[code]} (code {code})"]


def _nvml_gpus(seen: Seen) -> list[str]:
    errors = [(gpu.get("index"), gpu.get("error")) for gpu in seen.nvml.said.get("gpus", [])]
    return [
        f"NVML at GPU index {index}: {GPU_FAULTS[code]} (code {code})" for index, code in errors if code in GPU_FAULTS
    ]


def _not_in_nvml(seen: Seen) -> list[str]:
    """GPUs that NVML does not list though it was asked for all; those that answer with an error are told elsewhere."""
    said = seen.nvml.said
    listed = {gpu.get("address") for gpu in seen.answering}
    if not said.get("done") or "count" not in said or said["count"] >= len(seen.ours) or None in listed:
        return []
    errors = said["count"] - len(seen.answering)
    absent = [f"{address} is missing in NVML" for address in seen.ours - listed]
    return absent if not errors else ["NVML lists fewer GPUs than PCI"]


def _too_few(seen: Seen) -> list[str]:
    if seen.expected is None or seen.total is None or seen.total + len(seen.unreadable) >= seen.expected:
        return []
    return [f"{seen.expected} GPUs expected, {seen.total} present"]


def _hung(seen: Seen) -> list[str]:
    return (
        [f"NvmlHung: no answer since {seen.nvml.hung} at {seen.nvml.said.get('at', 'start')}"] if seen.nvml.hung else []
    )


def _cannot_read(seen: Seen) -> list[str]:
    return [f"PCI function {address} cannot be read" for address in seen.unreadable]


def _no_nvml(seen: Seen) -> list[str]:
    said, why = seen.nvml.said, seen.nvml.why
    code = said.get("init")
    if not seen.wanted or (code == 9 and seen.driven is None and seen.ours):
        return []
    if code:
        return [f"NVML cannot be asked (code {code})"]
    return [f"NVML cannot be asked: {said.get('failed', why)}"] if why or "failed" in said else []


def _odd_gpus(seen: Seen) -> list[str]:
    errors = [(gpu.get("index"), gpu.get("error")) for gpu in seen.nvml.said.get("gpus", [])]
    return [f"NVML at GPU index {index}: code {code}" for index, code in errors if code and code not in GPU_FAULTS]


def _driver_awaited(seen: Seen) -> list[str]:
    return (
        ["the driver is not loaded (yet)"]
        if seen.driven is None and seen.nvml.said.get("init") == 9 and seen.ours
        else []
    )


def _nothing_seen(seen: Seen) -> list[str]:
    if seen.total is None:
        return ["neither PCI nor NVML can be read"]
    return (
        ["no GPU seen and none declared (--expected 0 where that is right)"]
        if not seen.total and seen.expected is None
        else []
    )


View = Callable[[Seen], list[str]]
FAULTS: tuple[View, ...] = (
    _fallen,
    _without_driver,
    _gone_from_pci,
    _without_node,
    _nvml_init,
    _nvml_gpus,
    _not_in_nvml,
    _too_few,
    _hung,
)
DOUBTS: tuple[View, ...] = (_cannot_read, _no_nvml, _odd_gpus, _driver_awaited, _nothing_seen)


def look(options: argparse.Namespace, memory: dict[str, Any], now: float) -> Seen:
    """Read every view; when this returns the child that asks NVML has ended or is left behind."""
    driven = read_driver(options.proc)
    missing_since = memory.get("without_driver_since")
    child = [sys.executable, "-E", "-s", "-B", str(Path(__file__).resolve()), "--probe"]
    return Seen(
        cards=read_pci(options.sys),
        driven=driven,
        nodes=read_nodes(options.dev),
        nvml=ask(child, options.state, NAME, options.deadline),
        expected=memory.get("learned") if options.expected is None else options.expected,
        without_driver=now - missing_since if isinstance(missing_since, int | float) and driven is None else 0.0,
    )


def recall(path: Path) -> dict[str, Any]:
    """Return what the last run remembered; {} when there is nothing or it makes no sense."""
    memory = read_json(path)
    gpus = memory.get("gpus")
    sound = isinstance(gpus, dict) and all(isinstance(gpu, dict) for gpu in gpus.values())
    return memory if sound and isinstance(memory.get("learned"), int | None) else {}


def remember(memory: dict[str, Any], seen: Seen, now: float) -> dict[str, Any]:
    """Return what the next run must know: the most GPUs ever seen, who they are, and since when there is no driver."""
    since = memory.get("without_driver_since")
    gpus = dict(memory.get("gpus") or {})
    gpus.update({address: {"uuid": gpu.uuid, **gpus.get(address, {})} for address, gpu in (seen.driven or {}).items()})
    for gpu in seen.answering:
        gpus[gpu.get("address", "")] = {key: gpu[key] for key in ("uuid", "serial") if key in gpu}
    most = max(memory.get("learned") or 0, seen.total or 0)
    return {
        "learned": most or None,
        "gpus": gpus,
        "without_driver_since": (now if since is None else since) if seen.driven is None else None,
    }


def evidence(memory: dict[str, Any], seen: Seen, line: str, wall: str) -> dict[str, Any]:
    """Return what a person, or the hardware's maker, asks for first: which GPUs do not answer, by serial number."""
    silent = set(memory["gpus"]) - {gpu.get("address") for gpu in seen.answering}
    return {
        "detector": NAME,
        "condition": "GpuLost",
        "line": line,
        "first_seen": wall,
        "lost": [{"address": address, **memory["gpus"][address]} for address in sorted(silent)],
    }


def keep_evidence(path: Path, verdict: Verdict, found: dict[str, Any]) -> None:
    """Write evidence at the first sight of a fault, because later it may be gone, and drop it when all is well."""
    if verdict is Verdict.OK:
        path.unlink(missing_ok=True)
    elif verdict is Verdict.FAULT and not path.exists():
        write_json(path, found)


def check(options: argparse.Namespace) -> tuple[Verdict, str]:
    """One run: look, judge, remember."""
    now = since_boot() if options.now is None else options.now
    path = options.state / f"{NAME}.json"
    memory = recall(path)
    seen = look(options, memory, now)
    verdict, line = judge(seen)
    memory = remember(memory, seen, now)
    write_json(path, memory)
    wall = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    keep_evidence(options.state / "evidence" / f"{NAME}.json", verdict, evidence(memory, seen, line, wall))
    if options.explain:
        explain(seen, verdict)
    return verdict, line


def check_and_mark(options: argparse.Namespace) -> tuple[Verdict, str]:
    """Check, then leave the mark that says so, whatever came out (a run by hand with --explain leaves none)."""
    try:
        return check(options)
    finally:
        if not options.explain:
            leave_mark(options.state, NAME, since_boot() if options.now is None else options.now, boot_id(options.proc))


def explain(seen: Seen, verdict: Verdict) -> None:
    """Print each view and what each check made of it."""
    for name, value in (*seen._asdict().items(), ("counted", seen.total)):
        print(f"{name}: {'not available' if value is None else value}")
    for kind, views in (("fault", FAULTS), ("doubt", DOUBTS)):
        for view in views:
            print(f"{kind} {view.__name__.strip('_')}: {'; '.join(sorted(view(seen))) or 'none'}")
    print(f"verdict: {verdict.name}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--expected", type=int, help="GPUs that should be on the PCI bus (default: the most ever seen)")
    parser.add_argument(
        "--deadline", type=float, default=85.0, help="seconds to wait for NVML; 5 more to end the child (%(default)s)"
    )
    parser.add_argument("--proc", type=Path, default=Path("/proc"), help="the node's /proc (%(default)s)")
    parser.add_argument("--sys", type=Path, default=Path("/sys"), help="the node's /sys (%(default)s)")
    parser.add_argument("--dev", type=Path, default=Path("/dev"), help="the node's /dev (%(default)s)")
    parser.add_argument("--state", type=Path, default=STATE, help="the only folder that is written to (%(default)s)")
    parser.add_argument("--now", type=float, help="seconds since boot, instead of the clock")
    parser.add_argument("--explain", action="store_true", help="also print what was read and how it was judged")
    parser.add_argument("--probe", type=Path, help=argparse.SUPPRESS)  # the child that asks NVML
    return parser.parse_args(arguments)


if __name__ == "__main__":
    options = parse(sys.argv[1:])
    if options.probe:
        ask_nvml(options.probe)
    else:
        run(lambda: check_and_mark(options))
