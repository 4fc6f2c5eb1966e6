#!/usr/bin/env -S python3 -I -S -B
"""Restart one service of this node through its systemd, and wait until it stays up.

Only services of a list are restarted. None of them takes running containers with it: the kubelet only watches them,
containerd, CRI-O, k3s and RKE2 leave them to their shims and monitors. Where a unit would end them after all (KillMode
is not process; docker without live-restore), and where processes hold a GPU that would lose it (fabric manager, IMEX),
it is refused. `runtime` and `kubelet` stand for whatever service has that part on this node: k3s and RKE2 have both.

Up means: active with the same process for settleSeconds, and of the kubelet that its healthz says ok. A kubelet that is
down starts no Pod, this one neither; a node whose kubelet is dead needs an operation that runs elsewhere.

Refused (exit 2): the node has no systemd; the service is not in the list, does not exist on this node or is masked;
another boot than EXPECTED_BOOT_ID, or an ATTEMPT_ID that was started before in this boot.

PARAMETERS: service (required), restartSeconds (120), settleSeconds (10), healthzPort (10248; 0: do not ask).
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.attempt import create_marker, require_fresh
from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import number
from nodelib.host.commands import run, shown
from nodelib.host.crictl import is_absent
from nodelib.host.device_users import named, users
from nodelib.host.system import require_systemd
from nodelib.host.units import Unit, change, look_at, why

ASK_SECONDS = 10.0


LIVE_RESTORE = ("docker", "info", "--format", "{{.LiveRestoreEnabled}}")


class Care(NamedTuple):
    """What a restart of a service must heed."""

    shims: bool = False  # containers live in its unit, and stay only with KillMode=process
    daemon: bool = False  # it ends its containers itself, unless live-restore is on
    gpus: bool = False  # work on GPUs ends with it
    healthz: bool = False  # it tells of its health


ALLOWED: Mapping[str, Care] = {
    "kubelet": Care(healthz=True),
    "containerd": Care(shims=True),
    "crio": Care(),
    "docker": Care(daemon=True),
    "cri-docker": Care(),
    "k3s": Care(shims=True, healthz=True),
    "k3s-agent": Care(shims=True, healthz=True),
    "rke2-server": Care(shims=True, healthz=True),
    "rke2-agent": Care(shims=True, healthz=True),
    "nvidia-persistenced": Care(),
    "nvidia-fabricmanager": Care(gpus=True),
    "nvidia-imex": Care(gpus=True),
    "nvidia-dcgm": Care(),
    "chronyd": Care(),
    "chrony": Care(),
    "systemd-timesyncd": Care(),
    "systemd-resolved": Care(),
    "sssd": Care(),
    "rpc-statd": Care(),
}
WHOLE = ("rke2-agent", "rke2-server", "k3s-agent", "k3s")  # kubelet and runtime in one service
# The services that a word may stand for: the first that is used on the node.
ROLES = {"runtime": (*WHOLE, "crio", "cri-docker", "containerd"), "kubelet": ("kubelet", *WHOLE)}


def restart_service(environment: Environment, dry_run: bool) -> str:
    """Restart a service on the node of this environment and return the sentence."""
    marker = require_fresh(environment)
    given = environment.parameters
    word = choose(given.get("service"))
    patience, settle = number(given, "restartSeconds", 120), number(given, "settleSeconds", 10)
    port = int(number(given, "healthzPort", 10248, most=65535))
    proc = Path(environment.host_root) / "proc"
    require_systemd(proc, "restart the service with the node's own tools, or reboot the node")
    before = require_fit(used(word), proc)
    name = before.name
    if dry_run:
        print(f"would create {marker}")
        for command in commands(name):
            print(f"would run {shown(command)}")
        return f"would restart {name}, which is {before.active}"
    create_marker(require_fresh(environment))
    restart(name, patience)
    wait_until_up(name, time.monotonic() + patience, settle)
    health = require_health(name, port if ALLOWED[name].healthz else 0, patience)
    return f"restarted {name}, which was {before.active}; {health}"


def choose(name: object) -> str:
    """Return the service to restart. Raises Refused when it is not one of the list."""
    plain = name.removesuffix(".service") if isinstance(name, str) else ""
    if plain not in {*ALLOWED, *ROLES}:
        raise Refused(f"PARAMETERS.service is {name!r}, not one of {', '.join(dict.fromkeys((*ALLOWED, *ROLES)))}")
    return plain


def used(word: str) -> Unit:
    """Return the service that a word means on this node. One that was never started is only installed."""
    units = []
    for name in ROLES.get(word, (word,)):
        unit = look_at(name)
        if unit.load == "loaded" and unit.active != "inactive":
            return unit
        units.append(unit)
    return next((unit for unit in units if unit.load == "loaded"), units[0])


def require_fit(unit: Unit, proc: Path) -> Unit:
    """Return `unit`. Raises Refused where it cannot be restarted, or others would lose by it."""
    care = ALLOWED[unit.name]
    if unit.load != "loaded":
        raise Refused(f"{unit.name}.service is {unit.load} on this node")
    if care.shims and unit.kill_mode != "process":
        raise Refused(
            f"a restart of {unit.name} would end every container (its KillMode is {unit.kill_mode}): "
            "set KillMode=process, or drain and reboot the node"
        )
    if care.daemon and run(LIVE_RESTORE, ASK_SECONDS).last != "true":
        raise Refused(
            f"a restart of {unit.name} would end every container (its live-restore is not on): "
            "set live-restore in daemon.json, or drain and reboot the node"
        )
    holding = [user for user in users(proc) if user.service != unit.name] if care.gpus else []
    work = [one for one in holding if one.service not in ALLOWED]
    if work:
        raise Refused(f"{named(work)}, and would lose it with {unit.name}: drain the node first")
    return unit


def commands(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is run: too many starts before would count, so they are forgotten first."""
    return change("reset-failed", name), change("restart", name)


def restart(name: str, seconds: float) -> None:
    """Restart it. Raises Failed when systemd does not."""
    forget, again = commands(name)
    run(forget, ASK_SECONDS)
    result = run(again, seconds)
    if result.code != 0:
        raise Failed(f"{name} could not be restarted: {why(result, seconds)}")


def wait_until_up(name: str, until: float, settle: float) -> None:
    """Wait until the service has run for `settle` seconds as one process. Raises Failed when it does not in time."""
    pid, since = 0, time.monotonic()
    while True:
        unit, now = look_at(name), time.monotonic()
        if not unit.runs or unit.pid != pid:
            pid, since = unit.pid if unit.runs else 0, now
        if unit.runs and now - since >= settle:
            return
        if now >= until + settle:
            raise Failed(f"{name} was restarted and does not stay up: it is {unit.active}; see journalctl -u {name}")
        time.sleep(min(0.5, settle / 2 + 0.01))


def require_health(name: str, port: int, seconds: float) -> str:
    """Return what is known of its health. Raises Failed when it is asked for and is not ok in time."""
    if not port:
        return "it is active"
    ask = ("curl", "-fsS", "--noproxy", "*", "--max-time", "5", f"http://127.0.0.1:{port}/healthz")
    until = time.monotonic() + seconds
    while (result := run(ask, ASK_SECONDS)).code != 0:
        if is_absent(result):
            return "it is active; its healthz could not be asked, the node has no curl"
        if time.monotonic() >= until:
            raise Failed(f"{name} is active and its healthz is not ok: {why(result, ASK_SECONDS)}")
        time.sleep(0.5)
    return "it is active and healthy"


if __name__ == "__main__":
    main(restart_service, __doc__)
