#!/usr/bin/env -S python3 -I -S -B
"""Condition DeviceNodesMissing: the kernel has a device whose node under /dev is missing or is another device's.

Containers are given devices by these nodes: without them a Pod does not start, or starts without its GPU. Wanted are
/dev/nvidiaN of each GPU that the driver lists, nvidiactl, nvidia-uvm once that module is loaded, nvidia-caps of every
MIG device, nvidia-nvswitchN where NVSwitches belong to their driver, and infiniband/uverbsN of RDMA devices.
nvidia-modeset and nvidia-uvm-tools may be missing. A node that --dev lacks may be in --driver-root (GPU operator).

  PATH is missing (REMEDY)                 make it: `nvidia-modprobe -c=N` (-u -c=0 for nvidia-uvm), `nvidia-ctk system
                                           create-device-nodes --control-devices`, `udevadm trigger` for infiniband; if
                                           it does not help or comes back: drain, reload-driver, reboot
  PATH has the wrong number (REMEDY)       remove it, then as above: a node of an older driver
  PATH is a file, is a folder (REMEDY)     a container was started before the node was there: remove it, then as above
  no program can reach DEVICE (modprobe ib_uverbs)   load that module; name it in /etc/modules-load.d

Told as "cannot tell":
  --dev is not the /dev of the node        mount it into node-problem-detector: hostPath /dev
  PATH is missing in --dev, and the driver's own folder is closed   run node-problem-detector privileged
  PATH is there, yet neither PCI nor the driver shows a GPU         mount the node's own /proc and /sys (a sandbox such
                                           as gVisor hides them: let node-problem-detector run outside of it); on a node
                                           without GPU it is a leftover: remove it
  the driver does not list ADDRESS, PCI cannot be read              see GpuLost
  the driver does not report the minor of a GPU, FILE makes no sense  --explain shows what was read; reload-driver

Only /proc, /sys and /dev are read: no GPU is touched. A node without such devices is fine; one whose GPUs have
no driver is "cannot tell" (see GpuLost).

Exit codes: 0 every node is there, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Nothing, Run, conclude, explain, fields, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.device_nodes import (
    Number,
    WantedDeviceNode,
    has,
    is_closed,
    majors,
    of_gpus,
    of_infiniband,
    of_mig,
    of_switches,
    without_verbs,
)
from nodelib.host.driver import roots
from nodelib.host.gpus import Card, Driven, known, ours, read_driver, read_nodes, read_pci, unreadable

LISTED = 6  # names in one text
MISSING = "is missing"


class DeviceFiles(NamedTuple):
    """All that was read in one run. `found`: by path, numbers, None for nothing, or what is there instead.

    `cards`, `driven`: None where a view cannot be had; `odd`: files that make no sense; `is_dev`: --dev is a /dev;
    `closed`: the driver's own folder may not be looked at; `minors`: of each /dev/nvidiaN.
    """

    cards: tuple[Card, ...] | None
    driven: Mapping[str, Driven] | None
    wanted: tuple[WantedDeviceNode, ...] = ()
    found: Mapping[str, Number | str | None] = {}
    unreachable: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    is_dev: bool = True
    closed: bool = False
    minors: frozenset[int] = frozenset()


def judge(seen: DeviceFiles) -> tuple[Verdict, str]:
    """Turn what was read into a verdict and its line."""
    verdicts = dict.fromkeys(_doubts(seen), Verdict.UNKNOWN)
    wrong: dict[str, list[str]] = {}
    for wanted in seen.wanted:
        text = _wrong(wanted, seen.found.get(wanted.path))
        if text:
            wrong.setdefault(text, []).append(f"/dev/{wanted.path}")
    if wrong and not seen.is_dev:
        return Verdict.UNKNOWN, "--dev is not the /dev of the node: mount it (hostPath /dev)"
    for text, paths in wrong.items():
        if seen.closed and text.startswith(MISSING):
            hidden = "in --dev, and the driver's own folder is closed (run privileged)"
            verdicts[f"{_some(paths)} {MISSING} {hidden}"] = Verdict.UNKNOWN
        else:
            verdicts[f"{_some(paths)} {text}"] = Verdict.FAULT
    if seen.unreachable:
        verdicts[f"no program can reach {_some(seen.unreachable)} (modprobe ib_uverbs)"] = Verdict.FAULT
    return conclude(verdicts, "every device has its node" if seen.wanted else "there is no device to have a node")


def _some(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names[:LISTED]) + (" and more" if len(names) > LISTED else "")


def _wrong(wanted: WantedDeviceNode, present: Number | str | None) -> str:
    """Return what is wrong with a node, with the remedy, "" for nothing."""
    if present is None:
        return "" if wanted.optional else f"{MISSING} ({wanted.remedy})"
    if isinstance(present, str):
        return f"is {present} ({wanted.remedy})"
    right = all(want in (None, have) for want, have in zip(wanted.number, present, strict=True))
    return "" if right else f"has the wrong number ({wanted.remedy})"


def _doubts(seen: DeviceFiles) -> list[str]:
    driven, minors = seen.driven or {}, [gpu.minor for gpu in (seen.driven or {}).values() if not gpu.excluded]
    lost = sorted(ours(seen.cards, seen.driven) - set(driven))
    return [
        *(f"{name} makes no sense" for name in seen.odd),
        *(["the driver does not report the minor of a GPU"] if None in minors else []),
        *([f"the driver does not list {_some(lost)} (see GpuLost)"] if lost else []),
        *_strays(seen),
        *(["PCI cannot be read"] if seen.cards is None or unreadable(seen.cards) else []),
    ]


def _strays(seen: DeviceFiles) -> list[str]:
    """GPUs that only their nodes show: a sandbox hides PCI and the driver's files."""
    if seen.driven is not None or seen.cards is None or known(seen.cards) or not seen.minors:
        return []
    return [f"/dev/nvidia{min(seen.minors)} is there, yet neither PCI nor the driver shows a GPU (see --help)"]


def look(options: argparse.Namespace) -> DeviceFiles:
    """Read what there should be and what there is."""
    driven, numbers = read_driver(options.proc), majors(options.proc)
    sources: dict[str, Callable[[], list[WantedDeviceNode]]] = {
        "gpus": lambda: of_gpus(driven or {}, numbers or {}),
        "mig": lambda: of_mig(options.proc, numbers or {}),
        "switches": lambda: of_switches(options.sys, numbers or {}),
        "infiniband": lambda: of_infiniband(options.sys),
    }
    wanted: list[WantedDeviceNode] = []
    odd = ["/proc/devices"] if numbers is None and driven else []
    for source in sources.values():
        try:
            wanted += source()
        except (OSError, ValueError) as error:
            odd.append(str(error))
    own = roots(options.proc, options.driver_root)[0] / "dev"
    present = {node.path: has([options.dev, own], node.path) for node in wanted}
    return DeviceFiles(
        cards=read_pci(options.sys),
        driven=driven,
        wanted=tuple(wanted),
        found=present,
        unreachable=tuple(without_verbs(options.sys)),
        odd=tuple(odd),
        is_dev=(options.dev / "char").is_dir() or any(present.values()),  # udev fills it; a container's own has none
        closed=is_closed(own),
        minors=read_nodes(options.dev) or frozenset(),
    )


def check(run: Run[Nothing]) -> Findings:
    """One run: look and judge."""
    seen = look(run.options)
    verdict, line = judge(seen)
    wrong = {node.path: text for node in seen.wanted if (text := _wrong(node, seen.found.get(node.path)))}
    return Findings(
        verdict,
        line,
        evidence=lambda: {"wrong": dict([*wrong.items()][:12]), "gpus": list(seen.driven or ())[:8]},
        explain=lambda: explain(fields(seen), {node.path: wrong.get(node.path, "") for node in seen.wanted}, verdict),
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 10.0, "nothing: only the kernel's own files are read")
    options.add_argument(
        "--driver-root", type=Path, help="folder whose dev the driver's container fills (the node's /run/nvidia/driver)"
    )
    return options.parse_args(arguments)


DETECTOR = Detector("device_nodes", "DeviceNodesMissing", check)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
