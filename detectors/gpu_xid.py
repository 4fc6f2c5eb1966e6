#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuXid: the NVIDIA driver has reported an error (Xid, SXid) of a GPU or NVSwitch that calls for a repair.

The kernel's log is read from where the last run stopped; what it said of this boot is kept, because old lines are
overwritten. Errors that are a job's own fault (13, 31, 43, ...), that follow from another (45), or that should only be
watched (63, 92, 94, ...) are no faults. One fault makes many lines: each GPU is told of once, with its worst code.
Where the driver itself says which repair it wants (Xid 154, since driver 565), its word counts.

The line begins with the most severe repair that some GPU needs. What cures it:

  inspection needed                      look at power, cables and seating; run the maker's field diagnostic; replace
  power cycle needed                     drain, power off and on; undo what was last changed in the machine
  reboot needed                          drain and reboot; the same GPU again: have it inspected
  reset, bus reset                       drain, reset the GPU (NVSwitch: all GPUs together), reboot where that fails

Told as "cannot tell", because nobody should reboot a node for it unseen: an unexpected Xid for ten minutes, after which
it is only told behind "no Xid calls for a repair" (look it up in NVIDIA's catalogue, and at the kernel's log), lines
that were overwritten unread (log_buf_len= in the kernel's command line makes the buffer larger), a line that cannot be
read, a log that cannot be opened (mount /dev/kmsg; it needs CAP_SYSLOG).

Errors that were logged more than an hour before this detector first read this boot's log are told as "from before this
detector ran", and cannot tell either: the GPU may have been reset since, which leaves no line. A new error of the GPU
is a fault again. To end it look at the GPU (nvidia-smi -q: ECC errors, GPU Recovery Action), reset it if in doubt, and
say so, as below; or reboot the node.

No fault: "drain and reset when idle" behind "no Xid calls for a repair", the driver's own word, or an Xid 48 whose row
was remapped (63): jobs are safe, GpuEccFault waits until the node is idle. Nor "another part of the NVLink domain has
failed" (the driver wants IMEX recovered) and "traffic with peers is to end" (P2P drained), see NvlinkDomainFault.

A fault is over with another boot, when Xid 154 says None, or when the log has "remediator: GPU 0000:1c:00 was reset".
Who has reset a GPU by hand says so: echo "remediator: GPU 0000:1c:00 was reset" > /dev/kmsg; for an NVSwitch, and for
all GPUs that need no reboot, loading the driver anew is enough. UUID, serial number and the kernel's lines are in
<state>/evidence/gpu_xid.json.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, main, parser
from nodelib.contract.memory import Scope
from nodelib.contract.npd import Verdict
from nodelib.kernel.kmsg import Log, read_new
from nodelib.kernel.xid import FALLEN, SEVERITY, read_events, unfinished, words
from nodelib.kernel.xid_faults import (
    ELSEWHERE,
    GONE,
    PEERS,
    SWITCH,
    WAITS,
    Devices,
    Fault,
    FaultyDevice,
    follow,
    follow_repairs,
    shelve,
)
from nodelib.kernel.xid_table import SXID_LINK_DIED

ECHO = 60.0  # seconds within which the links of a GPU that falls off the bus go down
RECENT = 3600.0  # seconds before the first run from which on nobody is thought to have reset a GPU unseen
UNEXPECTED = 600.0  # seconds that a code which nobody expects is "cannot tell": shorter than a verification may take
# Repairs that are no fault here, by what is told of them.
OTHERS = {
    "drain and reset when idle (see GpuEccFault)": (WAITS,),
    "another part of the NVLink domain has failed (see NvlinkDomainFault)": (ELSEWHERE,),
    "traffic with peers is to end (see NvlinkDomainFault)": (PEERS,),
}
ACTIONS = {*SEVERITY, "watch", "unexpected"}


class Memory(NamedTuple):
    """What is known of this boot. `cursor`: last record read; `garbled`: the first line that could not be read.

    `shelved`: what was wrong long before the first run, and may have been repaired since.
    """

    cursor: int | None = None
    devices: Mapping[str, FaultyDevice] = MappingProxyType({})
    garbled: str = ""
    shelved: Mapping[str, FaultyDevice] = MappingProxyType({})


def learn(memory: Memory, log: Log, now: float) -> Memory:
    """Return what is known after `log`. A message whose end may come yet is left for the next run."""
    begun = unfinished(log.lines)
    events = list(read_events([line for line in log.lines if begun is None or line.sequence < begun]))
    garbled = next((event.line.text for event in events if event.kind == "garbled"), "")
    cursor = log.cursor if begun is None else begun - 1
    devices, shelved = memory.devices, memory.shelved
    if memory.cursor is None:
        devices, shelved = shelve(follow({}, [event for event in events if event.line.at < now - RECENT]))
        events = [event for event in events if event.line.at >= now - RECENT]
    return Memory(cursor, follow(devices, events), memory.garbled or garbled[:200], follow_repairs(shelved, events))


def judge(devices: Devices, doubts: Sequence[str], now: float = 0.0) -> tuple[Verdict, str]:
    """Turn what is known into a verdict and its line; `doubts`: why there may be more than is known."""
    needed = needs(devices)
    if needed:
        return Verdict.FAULT, "; ".join(needed)
    unclear = [*_having(devices, "unexpected", now - UNEXPECTED), *doubts]
    if unclear:
        return Verdict.UNKNOWN, "; ".join(unclear)
    told = [*_waiting(devices), *_having(devices, "unexpected"), *_having(devices, "watch")]
    return Verdict.OK, "; ".join(["no Xid calls for a repair", *told])


def needs(devices: Devices) -> list[str]:
    """Return a text for each repair that some device needs, the most severe first."""
    causes = {name: cause for name, device in sorted(devices.items()) if (cause := device.cause)}
    causes = {name: cause for name, cause in causes.items() if not _echo(name, cause, causes)}
    return [
        f"{action} needed: {', '.join(told)}"
        for action in SEVERITY
        if action not in (WAITS, ELSEWHERE, PEERS)
        and (told := [_told(name, cause) for name, cause in causes.items() if cause.action == action])
    ]


def _waiting(devices: Devices) -> list[str]:
    """Return a text for each repair that can wait or is not this node's, and the devices that need it."""
    causes = {name: cause for name, device in sorted(devices.items()) if (cause := device.cause)}
    return [
        f"{words}: {', '.join(names)}"
        for words, actions in OTHERS.items()
        if (names := [_told(name, cause) for name, cause in causes.items() if cause.action in actions])
    ]


def _echo(name: str, cause: Fault, causes: dict[str, Fault]) -> bool:
    """Tell whether an NVSwitch lost a link only because the GPU at its other end fell off the bus."""
    return (
        name.startswith(SWITCH)
        and cause.code == SXID_LINK_DIED
        and any(other.code in (FALLEN, GONE) and abs(other.at - cause.at) <= ECHO for other in causes.values())
    )


def _having(devices: Devices, action: str, since: float = 0.0) -> list[str]:
    """Return, as at most one text, the codes with `action` that were first seen since then, and their devices."""
    told = [
        _told(name, fault)
        for name, device in sorted(devices.items())
        for fault in sorted(device.faults, key=lambda fault: fault.code)
        if fault.action == action and fault.at >= since
    ]
    return [f"{action}: {', '.join(told)}"] if told else []


def _told(name: str, fault: Fault) -> str:
    if fault.code == GONE:
        return f"{name} ({words(FALLEN)}, without an Xid)"
    return (
        f"{name} SXid {fault.code} (fatal)"
        if name.startswith(SWITCH)
        else f"{name} Xid {fault.code} ({words(fault.code)})"
    )


def is_sound(memory: Memory) -> bool:
    """Tell whether every device has faults and wishes as this program writes them."""
    devices = [*memory.devices.values(), *memory.shelved.values()]
    actions = {fault.action for device in devices for fault in device.faults}
    return actions <= ACTIONS and {device.advice for device in devices} <= {"", *SEVERITY}


def doubts(options: argparse.Namespace, boot: str, log: Log, memory: Memory) -> list[str]:
    """Return why there may be more than is known."""
    texts = [log.why] if log.why else []
    texts += ["lines of the kernel log were overwritten before they were read"] if log.lost else []
    texts += ["a line about an Xid cannot be read (--explain shows it)"] if memory.garbled else []
    texts += [] if boot else ["the boot id cannot be read"]
    before = [f"from before this detector ran (see --help): {need}" for need in needs(memory.shelved)]
    return before + (texts if texts and has_gpus(options) else [])


def has_gpus(options: argparse.Namespace) -> bool:
    """Tell whether the node may have an NVIDIA GPU. Where a sandbox hides PCI and the driver, /dev still shows it."""
    from nodelib.host.gpus import read_driver, read_nodes, read_pci  # few runs need it

    views = (read_driver(options.proc), read_nodes(options.dev))
    return any(view is not None for view in views) or read_pci(options.sys) != ()


def evidence(options: argparse.Namespace, devices: Devices) -> list[dict[str, Any]]:
    """Return who the faulty devices are, and their lines; bounded, lest it be cut elsewhere."""
    from nodelib.host.gpus import read_driver

    driven = read_driver(options.proc) or {}
    uuids = {address.rpartition(".")[0]: gpu.uuid for address, gpu in driven.items()}
    bad = sorted((device.cause.rank, name) for name, device in devices.items() if device.cause)
    found: list[dict[str, Any]] = []
    for _, name in bad[:6]:
        device = devices[name]
        who = {"address": name, "uuid": device.uuid or uuids.get(name, ""), "serial": device.serial}
        found.append({**who, "lines": lines_of(device)} if len(str(found)) < 600 else who)
    return found


def lines_of(device: FaultyDevice) -> list[str]:
    """Return the kernel's lines of the worst faults, each with the seconds since boot, and what the driver wants."""
    worst = sorted(device.faults, key=lambda fault: fault.rank)[:2]
    texts = [f"[{fault.at:.3f}] {fault.text[:160]}" for fault in worst]
    return [*texts, device.advised[:120]] if device.advised else texts


def check(run: Run[Memory]) -> Findings:
    """One run: read what is new, add it to what is known, judge. Where nothing is known the whole log is read."""
    before = run.last if is_sound(run.last) else Memory()
    log = read_new(run.options.dev, before.cursor)
    memory = learn(before, log, run.now)
    verdict, line = judge(memory.devices, doubts(run.options, run.boot, log, memory), run.now)
    return Findings(
        verdict,
        line,
        memory,
        evidence=lambda: {"gpus": evidence(run.options, memory.devices)},
        explain=lambda: explain(log, memory),
    )


def explain(log: Log, memory: Memory) -> None:
    """Print what was read and what stands."""
    print(f"{len(log.lines)} new lines, up to record {log.cursor}; {log.why or 'all could be read'}; lost: {log.lost}")
    print(f"line that cannot be read: {memory.garbled or 'none'}")
    for kind, devices in (("", memory.devices), (", from before this detector ran", memory.shelved)):
        for name, device in sorted(devices.items()):
            print(f"{name}{kind}: {device.uuid or 'no UUID told'}, the driver wants: {device.advised or 'nothing'}")
            for fault in device.faults:
                print(f"{name}: {fault.action}: [{fault.at:.3f}] {fault.text}")


DETECTOR = Detector("gpu_xid", "GpuXid", check, Memory, Scope.KNOWN_BOOT)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
