#!/usr/bin/env -S python3 -I -S -B
"""Unload the NVIDIA kernel modules of this node and load them again, with the services that hold them put aside.

For a driver that answers wrongly, or whose library was replaced under it: longer than a reset of a GPU, shorter than a
reboot. Services are stopped, the modules unloaded, those that use others first, and loaded again; services that ran are
started again, and nvidia-smi must list as many GPUs as before. What goes wrong before the first module is unloaded
leaves the node as it was; after that, the sentence says what is loaded, and the node needs a reboot.

Where the template drains (DRAINED is true in its environment), processes of Pods that have a GPU open are ended: after
the drain these are of DaemonSets and static Pods. The kubelet starts them again, so the modules go at once, and it is
tried up to five times. A process of no Pod is never ended.

Refused (exit 2): the driver belongs to the image of the node's system (Talos, Bottlerocket, Container-Optimized OS); a
process of no Pod holds a GPU for busySeconds; the driver lives in a container (restart that Pod
instead); a module that is not NVIDIA's uses it; no driver is loaded; another boot than EXPECTED_BOOT_ID, or an
ATTEMPT_ID that was started before in this boot.

PARAMETERS: services (which of nvidia-persistenced, nvidia-fabricmanager, nvidia-imex, nvidia-dcgm and dcgm may be
stopped; all of them), gpus (how many must be there afterwards; as many as before), moduleSeconds (120), serviceSeconds
(120), busySeconds (30).
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from nodelib.contract.attempt import create_marker, require_fresh
from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import number, words
from nodelib.host.commands import run, shown
from nodelib.host.device_users import User
from nodelib.host.device_users import named as named_users
from nodelib.host.gpu_users import Clients, is_drained, still
from nodelib.host.system import require_other
from nodelib.host.units import Unit, change, look_at, why

# In this order they are unloaded: what uses another comes before it.
MODULES = (
    "nvidia_fs",
    "gdrdrv",
    "nv_peer_mem",
    "nvidia_peermem",
    "nvidia_uvm",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia",
)
SERVICES = (
    "nvidia-dcgm",
    "dcgm",
    "nvidia-imex",
    "nvidia-fabricmanager",
    "nvidia-persistenced",
)  # stopped in this order
MAKE_FILES = ("nvidia-modprobe", "-u", "-c0")  # not on every node; nvidia-smi makes the device files, too
FIXED = ("talos", "bottlerocket", "cos")  # systems whose driver modprobe does not load
CONTAINED = "/run/nvidia/driver"
SMI_SECONDS = 120.0  # the first question after loading wakes every GPU


def reload_driver(environment: Environment, dry_run: bool) -> str:
    """Reload the driver on the node of this environment and return the sentence."""
    marker = require_fresh(environment)
    given, proc = environment.parameters, Path(environment.host_root) / "proc"
    patience, service_patience = number(given, "moduleSeconds", 120), number(given, "serviceSeconds", 120)
    declared = [name for name in SERVICES if name in words(given, "services", SERVICES, SERVICES)]
    require_other(proc, FIXED, "which loads its driver at boot and in its own way: reboot the node")
    require_own_driver(proc)
    modules = unload_order(loaded(proc))
    wanted = int(number(given, "gpus", count_gpus(proc) or 1))
    running = [unit for unit in map(look_at, declared) if unit.runs]
    clients = Clients(proc, is_drained(), number(given, "busySeconds", 30))
    require_idle(clients, running)
    if dry_run:
        return rehearse(str(marker), clients, modules, running, environment.node)
    create_marker(require_fresh(environment))
    stop(running, service_patience)
    try:
        unload(clients, modules, patience)
    except Refused:
        start(running, service_patience)
        raise
    load(proc, modules, patience)
    start(running, service_patience)
    return f"reloaded {', '.join(modules)}: {require_gpus(wanted)} GPUs answer"


def require_own_driver(proc: Path) -> None:
    """Raise Refused when the driver was loaded by a container, whose files this node's modprobe knows nothing of."""
    points = {line.split(" ")[4] for line in (proc / "1/mountinfo").read_text().splitlines()}
    if CONTAINED in points:
        raise Refused(
            f"the driver lives in a container ({CONTAINED} is mounted): delete the driver's Pod of this node instead, "
            "its DaemonSet loads the driver again"
        )


def loaded(proc: Path) -> dict[str, tuple[str, ...]]:
    """Return the modules that are loaded, each with those that use it. Raises Refused where that is not told."""
    try:
        text = (proc / "modules").read_text()
    except OSError as error:
        raise Refused(f"the kernel of this node tells of no modules: {error.strerror}") from error
    rows = [line.split() for line in text.splitlines()]
    return {row[0]: tuple(user for user in row[3].split(",") if user not in ("", "-")) for row in rows}


def unload_order(present: Mapping[str, Sequence[str]]) -> list[str]:
    """Return NVIDIA's modules that are loaded, in the order to unload them.

    Raises Refused when the driver is not loaded, or a module that is none of them uses one.
    """
    if "nvidia" not in present:
        raise Refused("no driver is loaded: there is nothing to reload; load it, or reboot the node")
    order = [name for name in MODULES if name in present]
    strange = sorted({user for name in order for user in present[name]} - set(MODULES))
    if strange:
        raise Refused(f"the driver is used by {', '.join(strange)}: unload it by hand, or reboot the node")
    return order


def count_gpus(proc: Path) -> int:
    """Return how many GPUs the driver has now; 0 where it does not say."""
    folder = proc / "driver/nvidia/gpus"
    return len(list(folder.iterdir())) if folder.exists() else 0


def is_stranger(user: User, stopped: Sequence[Unit]) -> bool:
    """Whether a process that holds a GPU is none of a service that will be stopped."""
    return not user.service or user.service not in {unit.name for unit in stopped}


def require_idle(clients: Clients, stopped: Sequence[Unit]) -> None:
    """Raise Refused when a GPU stays held by a process that may not be ended, and is not stopped with a service."""
    clients.let_answer(lambda user: is_stranger(user, stopped))
    strangers = still(lambda: clients.holders(lambda user: is_stranger(user, stopped))[1], clients.seconds)
    if strangers:
        raise Refused(f"{named_users(strangers)}: end it, or reboot the node; the driver was left alone")


def rehearse(marker: str, clients: Clients, modules: Sequence[str], running: Sequence[Unit], node: str) -> str:
    """Print what would be done, in its order."""
    print(f"would create {marker}")
    for unit in running:
        print(f"would run {shown(change('stop', unit.name))}")
    ours, _ = clients.holders(lambda user: is_stranger(user, running))
    if ours:
        print(f"would send SIGTERM, and after 90 s SIGKILL, to what holds a GPU: {named_users(ours)}")
    commands = [
        *map(unload_command, modules),
        *map(load_command, reversed(modules)),
        MAKE_FILES,
        *(change("start", unit.name) for unit in reversed(running)),
    ]
    for command in commands:
        print(f"would run {shown(command)}")
    return f"would reload the driver of {node}"


def unload_command(module: str) -> tuple[str, ...]:
    """Unload one module; one that went with another before is no error."""
    return ("modprobe", "-r", module)


def load_command(module: str) -> tuple[str, ...]:
    """Load one module, and what it needs."""
    return ("modprobe", module)


def stop(units: Sequence[Unit], seconds: float) -> None:
    """Stop all. Raises Failed when one stays; those that were stopped are started again."""
    for index, unit in enumerate(units):
        result = run(change("stop", unit.name), seconds)
        if result.code != 0:
            start(units[: index + 1], seconds)
            raise Failed(f"{unit.name} could not be stopped ({why(result, seconds)}); the driver was left alone")


def start(units: Sequence[Unit], seconds: float) -> None:
    """Start all, in the other order. Raises Failed with those that did not."""
    troubles = []
    for unit in reversed(units):
        result = run(change("start", unit.name), seconds)
        if result.code != 0:
            troubles.append(f"{unit.name} ({why(result, seconds)})")
    if troubles:
        raise Failed(f"these services do not start again: {', '.join(troubles)}: reboot the node")


def unload(clients: Clients, modules: Sequence[str], seconds: float) -> None:
    """Unload all as soon as nobody holds them. Raises Refused when nothing was changed, Failed when it is half-way."""
    trouble = ""
    for held in clients.turns(lambda one: True):
        trouble = held or unload_once(clients.proc, modules, seconds)
        if not trouble:
            return
    left = [name for name in modules if name in loaded(clients.proc)]
    if len(left) == len(modules):
        raise Refused(f"{trouble}: end what holds the driver, or reboot the node; it was left as it was")
    raise Failed(f"{trouble}; {state(modules, left)}")


def unload_once(proc: Path, modules: Sequence[str], seconds: float) -> str:
    """Unload what is loaded; return what stood in the way, "" for nothing. Raises Failed for one that hangs."""
    for module in (name for name in modules if name in loaded(proc)):
        result = run(unload_command(module), seconds)
        left = [name for name in modules if name in loaded(proc)]
        if result.code == 0 and module not in left:
            continue
        trouble = (
            f"{module} could not be unloaded ({why(result, seconds) if result.code != 0 else 'it is loaded still'})"
        )
        if result.code is None:
            raise Failed(f"{trouble}; {state(modules, left)}")
        return trouble
    return ""


def load(proc: Path, modules: Sequence[str], seconds: float) -> None:
    """Load all, in the other order, and make the device files. Raises Failed when the node is left half-way."""
    for module in reversed(modules):
        result = run(load_command(module), seconds)
        if result.code != 0:
            left = [name for name in modules if name in loaded(proc)]
            raise Failed(f"{module} could not be loaded again ({why(result, seconds)}); {state(modules, left)}")
    run(MAKE_FILES, seconds)


def state(modules: Sequence[str], left: Sequence[str]) -> str:
    """In which state the node is left."""
    gone = [name for name in modules if name not in left]
    return f"loaded are {', '.join(left) or 'none'}, not loaded {', '.join(gone) or 'none'}: reboot the node"


def require_gpus(wanted: int) -> int:
    """Return how many GPUs nvidia-smi lists. Raises Failed when these are fewer than `wanted`."""
    result = run(("nvidia-smi", "-L"), SMI_SECONDS)
    found = len(re.findall(r"^GPU \d+:", result.text, flags=re.MULTILINE))
    if result.code != 0 or found < wanted:
        said = why(result, SMI_SECONDS) if result.code != 0 else ""
        raise Failed(
            f"the driver was reloaded, and nvidia-smi lists {found} of {wanted} GPUs: {said or 'reboot the node'}"
        )
    return found


if __name__ == "__main__":
    main(reload_driver, __doc__)
