#!/usr/bin/env -S python3 -I -S -B
"""Reboot this node, once for one attempt.

It refuses (exit 2) when the node's boot id is not EXPECTED_BOOT_ID, which means that the reboot has happened already,
and when a file named ATTEMPT_ID exists under the node's /run/remediator, which means that this attempt was started
before. That file goes with the reboot. File systems are synced first, but not waited for without end: a node whose disk
hangs needs the reboot most.

It asks the service manager first. If that does not reboot the node, it asks the kernel (sysrq: sync, read-only,
reboot), but only if PARAMETERS have lastResort: the kernel stops no service. On Talos, which has no systemd, it asks
the kernel at once. On another node without systemd it refuses (exit 2), unless PARAMETERS have lastResort.

PARAMETERS: waitSeconds (780), how long to wait for the node to go down after it was asked. It exits 1 if the node still
runs then; the node may still reboot later, since services may stop slowly. lastResort ("sysrq"), what to do when the
service manager refuses the request, does not answer within 90 s, or the node has not gone down in time. Whether the
reboot worked is seen by the node's new boot id, not by this program.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from nodelib.contract.attempt import create_marker, require_fresh
from nodelib.contract.operation import Environment, Failed, Refused, Stopped, main, say
from nodelib.contract.parameters import number
from nodelib.host.commands import ENTER, ends_by
from nodelib.host.system import NodeSystem, node_system

WAIT_SECONDS = 780.0  # the rest of the template's 30 minutes is for the boot
SYNC_SECONDS = 20.0
ANSWER_SECONDS = 90.0  # systemctl itself gives the service manager 25 s for one question
SYSRQ, PAUSE, LAST_SECONDS = "proc/sysrq-trigger", 1.0, 30.0  # PAUSE: sync and read-only are done by the kernel later
BY_KERNEL = (
    "talos",
)  # systems, by the ID of their os-release, of which we know that the kernel is all there is to ask
COMMAND = (*ENTER, "systemctl", "reboot")


def ask_for_reboot() -> subprocess.Popen[bytes]:
    """The last step: ask the node's own service manager, in its own namespaces, to reboot."""
    return subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL)


def reboot(environment: Environment, dry_run: bool) -> str:
    """Reboot the node of this environment. Returns only when stopped by the shutdown, or in a dry run."""
    wait, sysrq = number(environment.parameters, "waitSeconds", WAIT_SECONDS), has_last_resort(environment.parameters)
    marker, alone = require_fresh(environment), without_systemd(Path(environment.host_root) / "proc", sysrq)
    if dry_run:
        return rehearse(environment, str(marker), sysrq, alone)
    sync()
    create_marker(require_fresh(environment))
    sentence = f"reboot of {environment.node} asked for by attempt {environment.attempt}"
    say(environment.termination_log, sentence)  # now, for the node may take us with it
    try:
        if alone:
            return by_kernel(environment, f"{alone.name} has no systemd to ask")
        if not sysrq:
            return wait_to_be_killed(ask_for_reboot(), wait, wait)
        return last_resort(environment, wait)
    except Stopped:
        return sentence


def without_systemd(proc: Path, sysrq: bool) -> NodeSystem | None:
    """What this node runs on, where that is known to have no systemd; else None. Raises Refused: see BY_KERNEL."""
    here = node_system(proc)
    if not here or not here.lacks_systemd:
        return None
    if here.kind not in BY_KERNEL and not sysrq:
        why = f"this node runs {here.name}, which has no systemd to ask"
        raise Refused(f'{why}: let the kernel do it, by PARAMETERS {{"lastResort": "sysrq"}}, or power-cycle it')
    return here


def rehearse(environment: Environment, marker: str, sysrq: bool, alone: NodeSystem | None) -> str:
    """Print what would be done."""
    trigger = Path(environment.host_root) / SYSRQ
    first = f"would sync file systems for at most {SYNC_SECONDS:g} s, create {marker} and"
    if alone:
        print(f"{first} write s, u and b to {trigger}: {alone.name} has no systemd to ask")
    else:
        print(f"{first} run {' '.join(COMMAND)}")
        if sysrq:
            print(f"would, if nothing comes of it, write s, u and b to {trigger}")
    return f"would reboot {environment.node}"


def has_last_resort(given: Mapping[str, object]) -> bool:
    """Whether PARAMETERS declare sysrq. Raises Refused for another word."""
    if given.get("lastResort") not in (None, "sysrq"):
        raise Refused('PARAMETERS.lastResort knows only sysrq: write {"lastResort": "sysrq"}')
    return given.get("lastResort") == "sysrq"


def last_resort(environment: Environment, wait: float) -> str:
    """Ask for the reboot, and tell the kernel when nothing comes of it. Raises Failed when the node still runs."""
    try:
        return wait_to_be_killed(ask_for_reboot(), wait, min(wait, ANSWER_SECONDS))
    except (Failed, OSError) as failure:
        return by_kernel(environment, str(failure))


def by_kernel(environment: Environment, why: str) -> str:
    """Let the kernel reboot the node. Raises Failed when the node still runs."""
    say(environment.termination_log, f"reboot of {environment.node} by sysrq: {why}")
    print(f"{why}: going on with sysrq", flush=True)
    sync()
    try:
        for key in "sub":  # sync, unmount (read-only), reboot
            press(Path(environment.host_root) / SYSRQ, key)
            time.sleep(PAUSE)
    except OSError as error:
        raise Failed(f"{why}; sysrq cannot be written: {error}") from error
    time.sleep(LAST_SECONDS)
    raise Failed(f"{why}; sysrq was written and the node still runs: power-cycle it")


def press(trigger: Path, key: str) -> None:
    """Hand the kernel one key; it must be there, it is never made."""
    descriptor = os.open(trigger, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, key.encode())
    finally:
        os.close(descriptor)


def sync() -> None:
    """Sync every file system from a child that is left behind when a disk does not answer."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import os; os.sync()"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if not ends_by(child, time.monotonic() + SYNC_SECONDS):
        print(f"file systems not synced within {SYNC_SECONDS:g} s, going on", flush=True)


def wait_to_be_killed(asked: subprocess.Popen[bytes], seconds: float, answer: float) -> str:
    """Wait for the end of this node. Raises Failed when the request was turned down or nothing came of it in time.

    `answer`: how many seconds its service manager may take to accept it.
    """
    begun = time.monotonic()
    until = begun + seconds
    if not ends_by(asked, begun + answer):
        raise Failed(f"the node's service manager did not answer within {answer:g} s")
    if asked.returncode:
        raise Failed(f"the node did not take the reboot: nsenter exited {asked.returncode}")
    time.sleep(max(0.0, until - time.monotonic()))
    raise Failed(f"the node was asked to reboot and still runs after {seconds:g} s; the reboot may still come")


if __name__ == "__main__":
    main(reboot, __doc__)
