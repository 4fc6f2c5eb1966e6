#!/usr/bin/env -S python3 -I -S -B
"""Reset the GPUs of this node that need it, through its own nvidia-smi. Seconds, where a reboot takes minutes.

A GPU needs a reset when it has uncorrected memory errors since the last one, when a row remap waits for one, when it
answers "GPU requires reset", or when the driver's recovery action says so. None needing one is a success: there is
nothing to do. GPUs that NVLink joins are reset together when all of them are idle, and else alone, which GPUs since
Ampere can take; a driver that insists on the others gets all GPUs of the node, if all are idle. Persistence mode is
taken off for the reset and put back. NVLink's switches are reset, with all GPUs at once and fabric manager stopped
meanwhile, where PARAMETERS ask for it, and where they ask for all GPUs while the kernel's log has a fatal error of a
switch (SXid). DCGM as a service of the node is stopped for the reset and started again. A reset destroys MIG instances,
and the device plugin must be restarted to offer the GPU again.

Where the template drains (DRAINED is true in its environment), processes of Pods that have such a GPU open are ended:
after the drain these are of DaemonSets and static Pods. The kubelet starts them again, so the reset comes at once, and
up to five times. A process of no Pod is never ended.

Refused (exit 2): a process of no Pod computes on a GPU to be reset, or the driver says that it is in use, and it stays
so for busySeconds; a GPU is lost, the driver asks for more than a reset, or it does not answer (a reset cannot help,
reboot the node); another boot than EXPECTED_BOOT_ID, or an ATTEMPT_ID that was started before in this boot.

"Drain P2P" (a fault of the GPU for which all traffic with its peers is to end) refuses no reset, but a reset after
which the driver still asks it of such a GPU for busySeconds has failed (exit 1). What it asks of other nodes of an
NVLink domain ("Recover IMEX Domain") is only told.

PARAMETERS: gpus (a list of PCI addresses or UUIDs, or all: exactly these, needy or not), nvSwitches (true: all GPUs and
the switches between them; false: never these), driverRoot (where a driver in a container has its root; where none is
named, the GPU operator's /run/nvidia/driver is found, as the detectors find it), resetSeconds (180), busySeconds (30).
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from nodelib.contract import audit
from nodelib.contract.attempt import create_marker, require_fresh
from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import flag, number, text, words
from nodelib.host.commands import CommandOutput, run, shown
from nodelib.host.device_users import files_of, users
from nodelib.host.device_users import named as named_users
from nodelib.host.driver import contained, smi_of_node
from nodelib.host.gpu_users import DRIVERS, GRACE, Clients, Counts, is_drained, still
from nodelib.host.processes import read
from nodelib.host.put_aside import after, before, put_aside
from nodelib.host.units import look_at
from nodelib.kernel.kmsg import read_new
from nodelib.kernel.xid import read_events
from nodelib.kernel.xid_faults import SWITCH, follow
from nodelib.nvml.nvidia_smi import Holder, Smi, SmiGpu, holders, links, look, persistent, plain

NVLINK = re.compile(r"nvlink|not supported|must also be reset|same command", re.IGNORECASE)
NOTE_SECONDS = 5.0
FABRIC = "nvidia-fabricmanager"
DCGM = ("nvidia-dcgm", "dcgm")
IN_USE = re.compile(r"in use|being used|primary GPU", re.IGNORECASE)


class Work(NamedTuple):
    """How GPUs are reset here. `seconds` for the reset itself; `switches`: those of NVLink, too.

    `failed`: the switches with a fatal error in the kernel's log.
    """

    smi: Smi
    clients: Clients
    seconds: float
    switches: bool
    failed: tuple[str, ...]

    def services(self) -> list[str]:
        """Which services of the node are put aside for the reset. Raises Refused when that cannot be determined."""
        holding = {user.service for user in users(self.clients.proc)}
        fabric = [FABRIC] if self.switches and look_at(FABRIC).runs else []
        return [*(name for name in DCGM if name in holding), *fabric]

    def strangers(self) -> list[Holder]:
        """Who computes on a GPU and may not be ended. Raises Refused when that cannot be determined."""
        proc, found = self.clients.proc, holders(self.smi)
        return [one for one in found if not (one.pid.isdecimal() and self.clients.is_ours(read(proc, int(one.pid))))]

    def counts(self, gpus: Sequence[SmiGpu]) -> Counts:
        """Which holds keep `gpus` from being reset: not those of services, of which the driver knows best."""
        files = files_of(self.clients.proc, [plain(gpu.address) for gpu in gpus])
        return lambda one: bool(files.fullmatch(one.device)) and not one.service and one.name not in DRIVERS


def reset_gpus(environment: Environment, dry_run: bool) -> str:
    """Reset what needs it on the node of this environment and return the sentence."""
    marker, given = require_fresh(environment), environment.parameters
    clients = Clients(Path(environment.host_root) / "proc", is_drained(), number(given, "busySeconds", 30))
    root = text(given, "driverRoot") or contained(clients.proc)
    failed = failed_switches(Path(environment.host_root) / "dev")
    switches = with_switches(given, root, bool(failed))
    work = Work(
        Smi(root, smi_of_node(clients.proc)),
        clients,
        number(given, "resetSeconds", 180),
        switches,
        failed if switches else (),
    )
    gpus = look(work.smi)
    sick = choose(gpus, [gpu.address for gpu in gpus] if work.switches or wants_all(given) else named_in(given))
    if not sick:
        return f"nothing to reset: none of the {len(gpus)} GPUs of {environment.node} needs it{aside(gpus)}"
    still(lambda: in_use(sick, work.strangers()), clients.seconds)
    group = together(gpus, sick, links(work.smi.ask("topo", "-m").text), work.strangers())
    if dry_run:
        rehearse(str(marker), work, group)
        return f"would reset {named(group)}"
    create_marker(require_fresh(environment))
    with put_aside(work.services()):
        done = reset(work, gpus, group)
    sentence = confirm(done, settled(work, done))
    note([*(f"GPU {plain(gpu.address)}" for gpu in done), *work.failed])
    return sentence


def named_in(given: Mapping[str, object]) -> tuple[str, ...] | None:
    """The GPUs that PARAMETERS name; None where they name none."""
    return words(given, "gpus") if "gpus" in given else None


def wants_all(given: Mapping[str, object]) -> bool:
    """Whether PARAMETERS name all GPUs at once."""
    return named_in(given) == ("all",)


def with_switches(given: Mapping[str, object], root: str, failed: bool) -> bool:
    """Whether the switches are reset, too. Raises Refused where PARAMETERS say so and it cannot be done."""
    if "nvSwitches" not in given:
        return failed and wants_all(given) and not root
    wanted = flag(given, "nvSwitches")
    if wanted and root:
        raise Refused(
            "switches are not reset under a containerised driver, whose container runs fabric manager: reboot"
        )
    return wanted


def failed_switches(dev: Path) -> tuple[str, ...]:
    """Return the switches with a fatal error that is not over, as far as the kernel's log tells."""
    devices = follow({}, read_events(read_new(dev, None).lines))
    return tuple(sorted(name for name, device in devices.items() if name.startswith(SWITCH) and device.cause))


def rehearse(marker: str, work: Work, group: Sequence[SmiGpu]) -> None:
    """Print what would be done, in its order."""
    print(f"would create {marker}")
    held = sorted(persistent(work.smi) & {gpu.address for gpu in group})
    around = [(before(name), after(name)) for name in work.services()]
    if held:
        off, on = ((*work.smi.command, *persistence(mode, held)) for mode in "01")
        around.append(([off], [on]))
    for command in (command for first, _ in around for command in first):
        print(f"would run {shown(command)}")
    ours, others = work.clients.holders(work.counts(group))
    if ours:
        print(f"would send SIGTERM, and after 90 s SIGKILL, to what holds a GPU: {named_users(ours)}")
    if asking := work.clients.asking(work.counts(group)):
        print(f"would wait up to {GRACE:g} s for what asks the driver: {named_users(asking)}")
    if others := [user for user in others if user not in asking]:
        print(f"would wait up to {work.clients.seconds:g} s for what holds a GPU: {named_users(others)}")
    last = [command for _, commands in reversed(around) for command in commands]
    notes = map(note_command, [*(f"GPU {plain(gpu.address)}" for gpu in group), *work.failed])
    for command in (reset_command(work.smi, group, work.switches), *last, *notes):
        print(f"would run {shown(command)}")


def reset(work: Work, gpus: Sequence[SmiGpu], group: Sequence[SmiGpu]) -> Sequence[SmiGpu]:
    """Reset `group`, or all GPUs if the driver insists on more and all are idle; return what was reset."""
    result = reset_once(work, group)
    if result.code and NVLINK.search(result.text) and len(group) < len(gpus):
        why = f"the driver resets {named(group)} only with its NVLink peers; "
        require_idle(gpus, work.strangers(), why)
        group = gpus
        result = reset_once(work._replace(switches=False), group)
    require_reset(result, group, work.seconds)
    return group


def reset_once(work: Work, gpus: Sequence[SmiGpu]) -> CommandOutput:
    """One command to the driver, without persistence mode; again while a GPU is in use. Raises Refused."""
    told, held = CommandOutput(1, ""), ""
    with persistence_off(work.smi, gpus):
        for held in work.clients.turns(work.counts(gpus)):
            told = told if held else run(reset_command(work.smi, gpus, work.switches), work.seconds)
            if not (held or (told.code and IN_USE.search(told.text))):
                say_reset(told, gpus)
                return told
    if held:
        raise Refused(f"in use: {held}: end it, or reboot the node")
    return told


def say_reset(result: CommandOutput, gpus: Sequence[SmiGpu]) -> None:
    """Say in the log what became of the reset of each GPU."""
    ended = {0: audit.DONE, None: audit.UNKNOWN}.get(result.code, audit.GAVE_UP)
    for gpu in gpus:
        audit.say("reset", "gpus", plain(gpu.address), ended, why=result.last if result.code else "")


def choose(gpus: Sequence[SmiGpu], wanted: Sequence[str] | None) -> list[SmiGpu]:
    """Return the GPUs to reset: the wanted ones, or those with a need. Raises Refused where a reset cannot help."""
    hopeless = wishes(gpus, lambda gpu: gpu.beyond)
    if hopeless:
        raise Refused(f"a reset cannot help, reboot the node: {hopeless}")
    if wanted is None:
        return [gpu for gpu in gpus if gpu.needs]
    unknown = [name for name in wanted if not any(gpu.is_called(name) for gpu in gpus)]
    if unknown:
        raise Refused(f"no GPU of this node is called {', '.join(unknown)}; it has {named(gpus)}")
    return [gpu for gpu in gpus if any(gpu.is_called(name) for name in wanted)]


def together(
    gpus: Sequence[SmiGpu], sick: Sequence[SmiGpu], joined: Sequence[set[int]], users: Sequence[Holder]
) -> list[SmiGpu]:
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


def in_use(gpus: Sequence[SmiGpu], users: Sequence[Holder]) -> list[str]:
    """Return who computes on one of `gpus`, in words."""
    addresses = {gpu.address for gpu in gpus}
    return [f"{user.name} (pid {user.pid}) on {user.address}" for user in users if user.address in addresses]


def require_idle(gpus: Sequence[SmiGpu], users: Sequence[Holder], why: str = "") -> None:
    """Raise Refused when somebody computes on one of `gpus`."""
    found = in_use(gpus, users)
    if found:
        raise Refused(f"{why}in use by {', '.join(found)}: end it, or reboot the node")


def reset_command(smi: Smi, gpus: Sequence[SmiGpu], switches: bool = False) -> tuple[str, ...]:
    """The point of no return, as words; naming no GPU means all of them and the switches."""
    named = () if switches else ("-i", ",".join(gpu.address for gpu in gpus))
    return (*smi.command, "--gpu-reset", *named)


@contextmanager
def persistence_off(smi: Smi, gpus: Sequence[SmiGpu]) -> Iterator[None]:
    """While open, none of `gpus` is in persistence mode, because the driver counts that as a user of the GPU."""
    held = sorted(persistent(smi) & {gpu.address for gpu in gpus})
    if held:
        smi.ask(*persistence("0", held))
    try:
        yield
    finally:
        if held:
            with suppress(Refused):  # what came of the reset is told, not this
                smi.ask(*persistence("1", held))


def persistence(mode: str, addresses: Sequence[str]) -> tuple[str, ...]:
    """What nvidia-smi is asked to set persistence mode."""
    return ("-pm", mode, "-i", ",".join(addresses))


def require_reset(result: CommandOutput, gpus: Sequence[SmiGpu], seconds: float) -> None:
    """Raise what the driver's answer to the reset means, unless it did it."""
    if result.code == 0:
        return
    if result.code is None:
        raise Failed(f"the reset of {named(gpus)} did not end within {seconds:g} s: reboot the node")
    text = " ".join(result.text.split())
    if IN_USE.search(text):
        raise Refused(f"a GPU stays in use (by DCGM, a monitoring agent?), end that or reboot the node: {text}")
    raise Failed(f"{named(gpus)} could not be reset (exit {result.code}): {text}")


def settled(work: Work, reset: Sequence[SmiGpu]) -> list[SmiGpu]:
    """Return what the driver says of all GPUs, after busySeconds at most while it only asks to end traffic of `reset`.

    It takes that back by itself, a second or more after the traffic has ended.
    """
    gpus: list[SmiGpu] = []

    def asking() -> list[SmiGpu]:
        gpus[:] = look(work.smi)
        again = [gpu for gpu in gpus if any(gpu.address == done.address for done in reset)]
        return [] if any(gpu.needs or gpu.beyond for gpu in again) else [gpu for gpu in again if gpu.asks]

    still(asking, work.clients.seconds)
    return gpus


def confirm(reset: Sequence[SmiGpu], now: Sequence[SmiGpu]) -> str:
    """Return the sentence when no need is left. Raises Failed where one shows still, or a GPU does not."""
    gpus = {gpu.address: gpu for gpu in now}
    absent = [gpu.address for gpu in reset if gpu.address not in gpus]
    if absent:
        raise Failed(f"after the reset nvidia-smi does not list {', '.join(absent)}: reboot the node")
    left = wishes((gpus[gpu.address] for gpu in reset), lambda gpu: (*gpu.needs, *gpu.beyond, *gpu.asks))
    if left:
        raise Failed(f"the reset did not help: {left}")
    why = ", ".join(sorted({need for gpu in reset for need in gpu.needs})) or "as told"
    return f"reset {named(reset)} ({why}); no need is left{aside(now)}"


def aside(gpus: Iterable[SmiGpu]) -> str:
    """Say what the driver asks for that no reset of these GPUs does; "" for nothing."""
    asked = wishes(gpus, lambda gpu: (*gpu.asks, *gpu.elsewhere))
    return asked and f"; but {asked}"


def wishes(gpus: Iterable[SmiGpu], which: Callable[[SmiGpu], Sequence[str]]) -> str:
    """Which GPUs want what, in one string."""
    return "; ".join(f"{gpu.address}: {', '.join(wanted)}" for gpu in gpus if (wanted := which(gpu)))


def note(devices: Sequence[str]) -> None:
    """Tell the kernel's log which GPUs and switches were reset: what it says of their errors is past from there on.

    Where that cannot be written an error goes on to count, and the node is rebooted for it: no harm beyond that.
    """
    for device in devices:
        run(note_command(device), NOTE_SECONDS)


def note_command(device: str) -> tuple[str, ...]:
    """One line of the kernel's log."""
    return ("sh", "-c", f"echo '<6>remediator: {device} was reset' > /dev/kmsg")


def named(gpus: Sequence[SmiGpu]) -> str:
    """The addresses, in one string."""
    return ", ".join(gpu.address for gpu in gpus)


if __name__ == "__main__":
    main(reset_gpus, __doc__)
