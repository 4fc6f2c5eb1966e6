#!/usr/bin/env -S python3 -I -S -B
"""Condition DriverMismatch: the loaded NVIDIA kernel module and the driver's libraries are of different versions.

That is what an upgrade of the driver's packages under a running node leaves behind: programs that run go on, every new
one fails ("Driver/library version mismatch"). Compared are /proc/driver/nvidia/version and what libnvidia-ml.so.1 in
the driver's root points to; NVML, asked to start, says the same by its code 18. Libraries are looked for in
/run/nvidia/driver of the node (GPU operator) and then in its /, or where --driver-root says.

  libraries are of ..., the loaded driver is of ...     drain the node, then reload-driver or reboot: that loads the
                                                        new one. Never replace hardware for it. Then stop what upgrades
                                                        drivers on its own (unattended-upgrades: hold nvidia packages)
  NVML finds another version than the loaded driver's   the same, seen by NVML only: no library was found to look at
  NVML of this program is of another version ...        cannot tell: the node's library and module agree, so it is this
                                                        container that holds an old one: restart node-problem-detector

  no libnvidia-ml.so.1 was found ...                    cannot tell: name the driver's root (--driver-root)
  ... that /proc does not show, ... neither PCI nor /proc shows   cannot tell: this container has not the node's own
                                                        /proc and /sys (a sandbox hides them): mount them
  the loaded driver's version cannot be read            cannot tell: look at /proc/driver/nvidia/version of the node

A node without the NVIDIA driver is fine; one that has GPUs and no driver loaded, or whose PCI cannot be read, is
"cannot tell" (see GpuLost).

Exit codes: 0 versions agree, 1 they differ, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Nothing, Run, explain, main
from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer
from nodelib.host.driver import Module, libraries, module, roots
from nodelib.host.gpus import Card, known, ours, read_pci, unreadable
from nodelib.nvml.client import nvml, parser

MISMATCH = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH


class DriverVersions(NamedTuple):
    """All that was read in one run. `cards`: None where PCI cannot be read; `versions` of libraries, by their path."""

    cards: tuple[Card, ...] | None
    module: Module
    versions: dict[str, str]
    nvml: ChildAnswer


def judge(seen: DriverVersions) -> tuple[Verdict, str]:
    """Turn what was read into a verdict and its line."""
    loaded, versions = seen.module.version, set(seen.versions.values())
    if not loaded:
        return _without_version(seen)
    other = seen.nvml.answers.get("init") == MISMATCH
    if versions and loaded not in versions:
        return (
            Verdict.FAULT,
            f"the driver's libraries are of {', '.join(sorted(versions))}, the loaded driver is of {loaded}",
        )
    if versions and other:
        return Verdict.UNKNOWN, "NVML of this program is of another version than driver and libraries of the node"
    if other:
        return Verdict.FAULT, "NVML finds another version than the loaded driver's (code 18)"
    if versions or seen.nvml.answers.get("init") == 0:
        return Verdict.OK, "driver and libraries are of one version"
    return Verdict.UNKNOWN, "no libnvidia-ml.so.1 was found and NVML does not answer: say --driver-root (see GpuLost)"


def _without_version(seen: DriverVersions) -> tuple[Verdict, str]:
    if seen.module.why:
        return Verdict.UNKNOWN, f"the loaded driver's version cannot be read: {seen.module.why}"
    if seen.nvml.answers.get("init") == MISMATCH:
        return (
            Verdict.UNKNOWN,
            "NVML finds another version of a driver that /proc does not show: mount the node's /proc",
        )
    if seen.cards is None or unreadable(seen.cards):
        return Verdict.UNKNOWN, "no NVIDIA driver is loaded, and whether there is a GPU cannot be read"
    if ours(seen.cards, None):
        return Verdict.UNKNOWN, "the NVIDIA driver is not loaded (see GpuLost)"
    if not known(seen.cards) and seen.nvml.answers.get("count"):
        return Verdict.UNKNOWN, "NVML lists a GPU that neither PCI nor /proc shows: mount the node's /proc and /sys"
    return Verdict.OK, "no GPU of this node belongs to the NVIDIA driver" if known(
        seen.cards
    ) else "there is no NVIDIA GPU"


def check(run: Run[Nothing]) -> Findings:
    """One run: look and judge."""
    options = run.options
    found_in = roots(options.proc, options.driver_root)  # the node's own: the libraries of this container are others
    seen = DriverVersions(read_pci(options.sys), module(options.proc), libraries(found_in), nvml(options))
    verdict, line = judge(seen)
    record: dict[str, Any] = {
        "module": seen.module.text,
        "libraries": seen.versions,
        "nvml": seen.nvml.answers.get("init"),
    }
    views = {**record, "cards": seen.cards, "nvml hung": seen.nvml.silent_since or seen.nvml.why or "no"}
    return Findings(verdict, line, evidence=lambda: record, explain=lambda: explain(views, {}, verdict))


DETECTOR = Detector("driver_mismatch", "DriverMismatch", check)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
