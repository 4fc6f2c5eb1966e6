#!/usr/bin/env -S python3 -I -S -B
"""Take stuck or stale NFS mounts of this node down, without waiting for their server, and mount them again.

A mount is stuck when a statfs of it, in a child that can be left behind, does not end in time or ends with an I/O
error, and stale when it says so. None of them is a success: there is nothing to do. Each is taken down lazily and
mounted again from the same source with the same type and options; all mounts of one connection are down before the
first is mounted, or it would be found stuck again. A stuck volume of a Pod that is gone is only taken down. What is
down and not back yet is written down on the node until it is, so that the next attempt mounts it even though nothing
shows it any more. A mount of NFS that the node declares (/etc/fstab without noauto, a mount unit of systemd that a
target wants) and that is not there is mounted, too.

Refused (exit 2): the node has no programs to mount NFS with; a Pod holds the mount (its own volume, or a copy in its
mount namespace that would stay stuck); the server does not answer an RPC NULL, so that mounting is in vain and nothing
is wrong with this node; another boot than EXPECTED_BOOT_ID, or an ATTEMPT_ID that was started before in this boot.

PARAMETERS: mountPoints (a list of paths: these and what shares their connection, stuck or not), probeSeconds (20),
mountSeconds (60), kubeletRoot (/var/lib/kubelet: whose volume a mount is, its place below tells).
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import json
import os
import re
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from nodelib.contract.attempt import create_marker, require_fresh
from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import number, words
from nodelib.host import mountinfo
from nodelib.host.commands import Command, CommandOutput, run, shown
from nodelib.host.crictl import kubelet_root
from nodelib.host.declared_mounts import declared
from nodelib.host.mounts import Mount, absent, read_mounts, server_of, users_of, why_silent
from nodelib.host.mounts import shown as shown_server
from nodelib.host.system import require_programs

RPC_SECONDS = 10.0
UMOUNT_SECONDS = 30.0
# What stat says when statfs failed, and when that is the mount's fault (a lack of permission, say, is an answer).
ANSWERED = re.compile(r"can(?:no|')t read file system information")
SICK = re.compile(r"stale (?:nfs )?file handle|input/output error|timed out", re.IGNORECASE)
DOWN = "run/remediator/nfs-down.json"  # below the node's root


def remount(environment: Environment, dry_run: bool) -> str:
    """Remount what needs it on the node of this environment and return the sentence."""
    marker = require_fresh(environment)
    root, given = Path(environment.host_root), environment.parameters
    kubelet = kubelet_root(given)
    present = read_mounts(root / "proc/1/mountinfo", kubelet)
    down = lost(root, {one.point for one in present})
    patience = number(given, "probeSeconds", 20)
    if present or down:
        require_programs(root / "proc", ("umount", "mount.nfs"), "drain the node and reboot it")
    sick = choose(present, down, words(given, "mountPoints")) if "mountPoints" in given else ailing(present, patience)
    if not sick and not down:
        return f"nothing to remount: {len(present)} NFS mounts of {environment.node} answer"
    back = [*down, *(mount for mount in sick if not mount.pod)]
    require_free(root / "proc", sick)
    require_servers(back)
    if dry_run:
        return rehearse(marker, sick, back)
    create_marker(require_fresh(environment))
    remember(root / DOWN, back)
    take_down(sick)
    mount_again(root, back, number(given, "mountSeconds", 60))
    return confirm(read_mounts(root / "proc/1/mountinfo", kubelet), sick, back, patience)


def lost(root: Path, present: Collection[str]) -> list[Mount]:
    """Return the mounts that are to come back: what was taken down before, and what the node declares and has not.

    `present`: points of NFS mounts; one that is declared may wait for its first use, under another kind (autofs).
    """
    down = [mount for mount in recall(root / DOWN) if mount.point not in present]
    lines, _ = mountinfo.parse((root / "proc/1/mountinfo").read_text(errors="replace"))
    there = {line.point for line in lines} | {mount.point for mount in down}
    return [*down, *absent(declared(root / "proc/1/root").values(), there)]


def choose(present: Sequence[Mount], down: Sequence[Mount], wanted: Sequence[str]) -> list[Mount]:
    """Return the mounts that PARAMETERS name, and those that share their connection, or mounting would find it again.

    Raises Refused for a name that is none, neither present nor taken down before.
    """
    strange = set(wanted) - {mount.point for mount in (*present, *down)}
    if strange:
        raise Refused(f"no NFS mount of this node is at {', '.join(sorted(strange))}")
    devices = {mount.device for mount in present if mount.point in wanted}
    return [mount for mount in present if mount.device in devices]


def ailing(mounts: Sequence[Mount], seconds: float) -> list[Mount]:
    """Return the mounts whose connection does not answer a statfs; each connection is asked once, all at a time."""
    asked = {mount.device: mount for mount in mounts}
    commands = {device: Command(statfs(mount)) for device, mount in asked.items()}
    until = time.monotonic() + seconds
    told = {device: command.told(until) for device, command in commands.items()}
    bad = {device for device, answer in told.items() if is_sick(answer)}
    return [mount for mount in mounts if mount.device in bad]


def is_sick(result: CommandOutput) -> bool:
    """Whether a statfs shows a mount that must go. Raises Refused when it does not report: that takes no mount down."""
    if result.code in (0, None):
        return result.code is None
    if not ANSWERED.search(result.text):
        raise Refused(f"cannot determine whether the mounts answer: stat exits {result.code}: {result.last}")
    return SICK.search(result.text) is not None


def statfs(mount: Mount) -> tuple[str, ...]:
    """The question that a server must answer: statfs is served from no cache."""
    return ("stat", "-f", "-c", "%T", mount.point)


def umount_command(mount: Mount) -> tuple[str, ...]:
    """Forced and lazy: it waits for no server."""
    return ("umount", "-f", "-l", mount.point)


def mount_command(mount: Mount) -> tuple[str, ...]:
    """The same source, type and options at the same place."""
    return ("mount", "-t", mount.kind, "-o", mount.wanted, mount.origin, mount.point)


def require_free(proc: Path, mounts: Sequence[Mount]) -> None:
    """Raise Refused while a Pod holds one of `mounts`."""
    users = users_of(proc, list(mounts))
    if users:
        raise Refused(f"in use: {'; '.join(users)}: drain the node, or reboot it if the Pod cannot be killed")


def require_servers(mounts: Sequence[Mount]) -> None:
    """Raise Refused unless the server of each of `mounts` answers; one that is declared may take any version."""
    servers = {server_of(mount): mount.source for mount in mounts}
    anything = {server_of(mount) for mount in mounts if not mount.device and not mount.option("vers")}
    silent = [
        f"{shown_server(server)} of {source}: {why}"
        for server, source in sorted(servers.items())
        if (why := why_silent(server, RPC_SECONDS))
        and (server not in anything or why_silent((*server[:2], 4), RPC_SECONDS))
    ]
    if silent:
        raise Refused(f"the server does not answer, mend it first, the node is not at fault: {'; '.join(silent)}")


def rehearse(marker: Path, sick: Sequence[Mount], back: Sequence[Mount]) -> str:
    """Print what would be done."""
    print(f"would create {marker} and write {len(back)} mounts to {DOWN}")
    for command in (*map(umount_command, sick), *map(mount_command, back)):
        print(f"would run {shown(command)}")
    return f"would take down {points(sick) or 'nothing'} and mount {points(back) or 'nothing'}"


def take_down(mounts: Sequence[Mount]) -> None:
    """Unmount all, deepest first. Raises Failed when one stays."""
    for mount in sorted(mounts, key=lambda one: one.point, reverse=True):
        result = run(umount_command(mount), UMOUNT_SECONDS)
        if result.code and "not mounted" not in result.text:
            raise Failed(f"{mount.point} could not be taken down (exit {result.code}): {result.last}")
        if result.code is None:
            raise Failed(f"umount of {mount.point} did not end within {UMOUNT_SECONDS:g} s: reboot the node")


def mount_again(root: Path, mounts: Sequence[Mount], seconds: float) -> None:
    """Mount all, shallowest first, and forget each that is back. Raises Failed with those that could not be mounted."""
    left, troubles = sorted(mounts), []
    for mount in sorted(mounts):
        result = run(mount_command(mount), seconds)
        if result.code == 0:
            left.remove(mount)
            remember(root / DOWN, left)
        else:
            troubles.append(f"{mount.point} from {mount.source}: {why(result, seconds)}")
    if troubles:
        raise Failed(f"could not be mounted again: {'; '.join(troubles)}")


def why(result: CommandOutput, seconds: float) -> str:
    """Why a command did not work."""
    return f"no answer within {seconds:g} s" if result.code is None else f"exit {result.code}: {result.last}"


def confirm(now: Sequence[Mount], sick: Sequence[Mount], back: Sequence[Mount], seconds: float) -> str:
    """Look again and return the sentence. Raises Failed when a mount is missing, stuck still, or would not go."""
    wanted, gone = {mount.point for mount in back}, {mount.point for mount in sick if mount.pod}
    missing = wanted - {mount.point for mount in now}
    if missing:
        raise Failed(f"not mounted after all: {', '.join(sorted(missing))}")
    bad = ailing([mount for mount in now if mount.point in wanted], seconds)
    if bad:
        raise Failed(f"stuck as before: {points(bad)}: reboot the node")
    stayed = gone & {mount.point for mount in now}
    if stayed:
        raise Failed(f"could not be taken down: {', '.join(sorted(stayed))}: reboot the node")
    parts = [f"remounted {points(back)}" if back else "", f"took down {', '.join(sorted(gone))}" if gone else ""]
    return "; ".join(filter(None, parts))


def points(mounts: Sequence[Mount]) -> str:
    """The mount points, in one string."""
    return ", ".join(sorted(mount.point for mount in mounts))


def recall(path: Path) -> list[Mount]:
    """Return what was taken down and is not back as far as we know; nothing where that makes no sense."""
    try:
        return [Mount(*fields) for fields in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError):
        return []


def remember(path: Path, mounts: Sequence[Mount]) -> None:
    """Keep on the node which mounts must come back, in one step."""
    if not mounts:
        path.unlink(missing_ok=True)
        return
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(mounts))
    draft.replace(path)


if __name__ == "__main__":
    main(remount, __doc__)
