#!/usr/bin/env python3
"""Reset the GPUs of this node that need it, through its own nvidia-smi. Seconds, where a reboot takes minutes.

A GPU needs a reset when it has uncorrected memory errors since the last one, when a row remap waits for one, when it
answers "GPU requires reset", or when the driver's recovery action says so. None needing one is a success: there is
nothing to do. GPUs that NVLink joins are reset together when all of them are idle, and else alone, which GPUs since
Ampere can take; a driver that insists on the others gets all GPUs of the node, if all are idle. Persistence mode is
taken off for the reset and put back. NVLink's switches are reset where PARAMETERS ask for it, with all GPUs at once and
fabric manager stopped meanwhile. A reset destroys MIG instances, and the device plugin must be restarted to offer the
GPU again.

Refused (exit 2): a process computes on a GPU to be reset, or the driver says that it is in use; a GPU is lost, the
driver asks for more than a reset, or it does not answer (a reset cannot help, reboot the node); another boot than
EXPECTED_BOOT_ID, or an ATTEMPT_ID that was started before in this boot.

PARAMETERS: gpus (a list of PCI addresses or UUIDs: exactly these, needy or not), nvSwitches (true:
all GPUs and the switches between them, after a fatal SXid), driverRoot (where a containerised driver lives, such as
/run/nvidia/driver), resetSeconds (180).
"""

import sys

sys.path.insert(0, __file__.rpartition("/")[0] or ".")  # python -I leaves a program's own folder out

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from _attempt import create_marker, require_fresh
from _node import Told, run, shown
from _operation import Environment, Failed, Refused, main
from _parameters import flag, number, text, words
from _smi import Gpu, Holder, Smi, holders, links, look, persistent, plain
from _units import change, look_at, why

NVLINK = re.compile(r"nvlink|not supported|must also be reset|same command", re.IGNORECASE)
NOTE_SECONDS = 5.0
FABRIC, FABRIC_SECONDS = "nvidia-fabricmanager", 120.0
IN_USE = re.compile(r"in use|being used|primary GPU", re.IGNORECASE)


def reset_gpus(environment: Environment, dry_run: bool) -> str:
    """Reset what needs it on the node of this environment and return the sentence."""
    marker = require_fresh(environment)
    smi = Smi(text(environment.parameters, "driverRoot"))
    gpus = look(smi)
    switches = with_switches(environment.parameters)
    sick = choose(gpus, [gpu.address for gpu in gpus] if switches else named_in(environment.parameters))
    if not sick:
        return f"nothing to reset: none of the {len(gpus)} GPUs of {environment.node} needs it"
    users, joined = holders(smi), links(smi.ask("topo", "-m").text)
    group = together(gpus, sick, joined, users)
    if dry_run:
        print(f"would create {marker} and run {shown(reset_command(smi, group, switches))}")
        return f"would reset {named(group)}"
    create_marker(require_fresh(environment))
    seconds = number(environment.parameters, "resetSeconds", 180)
    with fabric_manager_off() if switches else nullcontext():
        done = reset(smi, gpus, group, seconds, switches)
    sentence = confirm(done, look(smi))
    note(done)
    return sentence


def named_in(given: Mapping[str, object]) -> tuple[str, ...] | None:
    """The GPUs that PARAMETERS name; None where they name none."""
    return words(given, "gpus") if "gpus" in given else None


def with_switches(given: Mapping[str, object]) -> bool:
    """Whether PARAMETERS ask for the switches, too. Raises Refused where that cannot be done."""
    wanted = flag(given, "nvSwitches")
    if wanted and given.get("driverRoot"):
        raise Refused(
            "switches are not reset under a containerised driver, whose container runs fabric manager: reboot"
        )
    return wanted


def reset(smi: Smi, gpus: Sequence[Gpu], group: Sequence[Gpu], seconds: float, switches: bool = False) -> Sequence[Gpu]:
    """Reset `group`, or all GPUs if the driver insists on more and all are idle; return what was reset."""
    told = reset_once(smi, group, seconds, switches)
    if told.code and NVLINK.search(told.text) and len(group) < len(gpus):
        require_idle(gpus, holders(smi), f"the driver resets {named(group)} only with its NVLink peers; ")
        group = gpus
        told = reset_once(smi, group, seconds)
    require_reset(told, group, seconds)
    return group


def reset_once(smi: Smi, gpus: Sequence[Gpu], seconds: float, switches: bool = False) -> Told:
    """One command to the driver, without persistence mode."""
    with persistence_off(smi, gpus):
        return run(reset_command(smi, gpus, switches), seconds)


def choose(gpus: Sequence[Gpu], wanted: Sequence[str] | None) -> list[Gpu]:
    """Return the GPUs to reset: the wanted ones, or those with a need. Raises Refused where a reset cannot help."""
    hopeless = [f"{gpu.address}: {', '.join(gpu.beyond)}" for gpu in gpus if gpu.beyond]
    if hopeless:
        raise Refused(f"a reset cannot help, reboot the node: {'; '.join(hopeless)}")
    if wanted is None:
        return [gpu for gpu in gpus if gpu.needs]
    unknown = [name for name in wanted if not any(gpu.is_called(name) for gpu in gpus)]
    if unknown:
        raise Refused(f"no GPU of this node is called {', '.join(unknown)}; it has {named(gpus)}")
    return [gpu for gpu in gpus if any(gpu.is_called(name) for name in wanted)]


def together(
    gpus: Sequence[Gpu], sick: Sequence[Gpu], joined: Sequence[set[int]], users: Sequence[Holder]
) -> list[Gpu]:
    """Return what to reset in one command: the sick GPUs, with all that NVLink joins to them if those are idle.

    `joined` has the indexes of the others for each GPU; where it speaks of other GPUs, none is known to be linked.
    Raises Refused when a sick GPU is in use.
    """
    require_idle(sick, users)
    joined = joined if len(joined) == len(gpus) else [set()] * len(gpus)
    reach = {index for index, gpu in enumerate(gpus) if gpu in sick}
    while more := {other for index in reach for other in joined[index]} - reach:
        reach |= more
    group = [gpu for index, gpu in enumerate(gpus) if index in reach]
    return list(sick) if in_use(group, users) else group


def in_use(gpus: Sequence[Gpu], users: Sequence[Holder]) -> list[str]:
    """Return who computes on one of `gpus`, in words."""
    addresses = {gpu.address for gpu in gpus}
    return [f"{user.name} (pid {user.pid}) on {user.address}" for user in users if user.address in addresses]


def require_idle(gpus: Sequence[Gpu], users: Sequence[Holder], why: str = "") -> None:
    """Raise Refused when somebody computes on one of `gpus`."""
    found = in_use(gpus, users)
    if found:
        raise Refused(f"{why}in use by {', '.join(found)}: end it, or reboot the node")


def reset_command(smi: Smi, gpus: Sequence[Gpu], switches: bool = False) -> tuple[str, ...]:
    """The point of no return, as words; naming no GPU means all of them and the switches."""
    named = () if switches else ("-i", ",".join(gpu.address for gpu in gpus))
    return (*smi.command, "--gpu-reset", *named)


@contextmanager
def fabric_manager_off() -> Iterator[None]:
    """While open, fabric manager does not run, for it holds the switches; it is started again if it ran.

    Raises Refused when it does not stop, Failed when it does not start.
    """
    unit = look_at(FABRIC)
    if unit.runs and (told := run(change("stop", FABRIC), FABRIC_SECONDS)).code != 0:
        run(change("start", FABRIC), FABRIC_SECONDS)
        raise Refused(f"{FABRIC} does not stop ({why(told, FABRIC_SECONDS)}), nothing was reset: reboot the node")
    try:
        yield
    finally:
        if unit.runs and (told := run(change("start", FABRIC), FABRIC_SECONDS)).code != 0:
            raise Failed(f"after the reset {FABRIC} does not start ({why(told, FABRIC_SECONDS)}): reboot the node")


@contextmanager
def persistence_off(smi: Smi, gpus: Sequence[Gpu]) -> Iterator[None]:
    """While open, none of `gpus` is in persistence mode, because the driver counts that as a user of the GPU."""
    held = sorted(persistent(smi) & {gpu.address for gpu in gpus})
    if held:
        smi.ask("-pm", "0", "-i", ",".join(held))
    try:
        yield
    finally:
        if held:
            smi.ask("-pm", "1", "-i", ",".join(held))


def require_reset(told: Told, gpus: Sequence[Gpu], seconds: float) -> None:
    """Raise what the driver's answer to the reset means, unless it did it."""
    if told.code == 0:
        return
    if told.code is None:
        raise Failed(f"the reset of {named(gpus)} did not end within {seconds:g} s: reboot the node")
    text = " ".join(told.text.split())
    if IN_USE.search(text):
        raise Refused(f"the driver says that a GPU is in use (DCGM, a monitoring agent?), reboot the node: {text}")
    raise Failed(f"{named(gpus)} could not be reset (exit {told.code}): {text}")


def confirm(reset: Sequence[Gpu], now: Sequence[Gpu]) -> str:
    """Return the sentence when no need is left. Raises Failed where one shows still, or a GPU does not."""
    found = {gpu.address: gpu for gpu in now}
    absent = [gpu.address for gpu in reset if gpu.address not in found]
    if absent:
        raise Failed(f"after the reset nvidia-smi does not list {', '.join(absent)}: reboot the node")
    left = [
        f"{gpu.address}: {', '.join((*found[gpu.address].needs, *found[gpu.address].beyond))}"
        for gpu in reset
        if found[gpu.address].needs or found[gpu.address].beyond
    ]
    if left:
        raise Failed(f"the reset did not help: {'; '.join(left)}")
    why = ", ".join(sorted({need for gpu in reset for need in gpu.needs})) or "as told"
    return f"reset {named(reset)} ({why}); no need is left"


def note(gpus: Sequence[Gpu]) -> None:
    """Tell the kernel's log which GPUs were reset: what it says of their errors is past from there on.

    Where that cannot be written an error goes on to count, and the node is rebooted for it: no harm beyond that.
    """
    lines = [f"<6>remediator: GPU {plain(gpu.address)} was reset" for gpu in gpus]
    for line in lines:
        run(("sh", "-c", f"echo '{line}' > /dev/kmsg"), NOTE_SECONDS)


def named(gpus: Sequence[Gpu]) -> str:
    """The addresses, in one string."""
    return ", ".join(gpu.address for gpu in gpus)


if __name__ == "__main__":
    main(reset_gpus, __doc__)
