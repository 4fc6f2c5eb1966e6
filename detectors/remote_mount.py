#!/usr/bin/env -S python3 -I -S -B
"""Condition RemoteMountFault: a mount of Lustre, CephFS, GPFS, WekaFS, BeeGFS or FUSE does not work on this node.

Each of them that process 1 has mounted (one for each super block) is asked by statvfs in a child that can be left
behind; of one file system at most 8 are left behind. NFS has detectors of its own, and FUSE that is no network's
(LXCFS, snaps, overlays) is left out, as is what --ignore names. Faults:

  hangs                                in two runs in a row: no answer by --deadline
  fails (EIO ...)                      in two runs in a row, with the error's name; ESHUTDOWN, of Lustre: the server has
                                       evicted this client
  its program has ended (ENOTCONN)     at once: the process that serves a FUSE mount has died or was killed
  is stale (ESTALE)                    at once

Remedy: RemoteMountFault: on many nodes look at the file system's servers and the network to them first. On one node:
its client (lctl dl, mmgetstate, weka local status, the Pod that serves a FUSE mount and its memory limit), then take
the Pods that use the mount off the node and mount it anew. No repair of the node is tried: what helps is different for
each. A mount that root may not look into (EACCES of FUSE without allow_root) answers. "(seen once)": the next run
decides. "not asked": others hang; see what is said of these. "could not be asked", "cannot be read", "make no sense":
run node-problem-detector privileged, with the node's process ids (hostPID). Mounts are in
<state>/evidence/remote_mount.json.

Exit codes: 0 every mount answers, 1 a mount does not work, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import errno
import os
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host import mountinfo
from nodelib.host.child_process import ChildAnswer
from nodelib.host.mountinfo import GARBLED, MountLine
from nodelib.net import mount_probe

NAME = "remote_mount"
KINDS = ("lustre", "ceph", "gpfs", "wekafs", "beegfs", "beegfs_nodev", "fuse")
LOCAL = ("lxcfs", "snapfuse", "portal", "gvfsd-fuse", "fuse-overlayfs", "squashfuse", "squashfuse_ll", "erofsfuse")
REFUSALS = (errno.EACCES, errno.EPERM)
AT_ONCE = {errno.ENOTCONN: "its program has ended (ENOTCONN)", errno.ESTALE: "is stale (ESTALE)"}
FINE, NONE = "every mount of a remote file system answers", "no remote file system but NFS is mounted"


class Memory(NamedTuple):
    """The mounts that hung or failed in the last run, by key."""

    ill: Collection[str] = ()


def is_watched(mount: MountLine, ignored: Collection[str]) -> bool:
    """Tell whether a mount is of a remote file system, and nobody left it out."""
    kind, _, program = mount.kind.partition(".")
    remote = kind in KINDS and program not in LOCAL
    return remote and not any(fnmatchcase(name, pattern) for pattern in ignored for name in (mount.point, mount.kind))


def once(mounts: Collection[MountLine]) -> list[MountLine]:
    """Return the first mount of each super block, in order of their paths."""
    first: dict[str, MountLine] = {}
    for mount in sorted(mounts, key=lambda mount: mount.point):
        first.setdefault(mount.device, mount)
    return [*first.values()]


def decide(answer: ChildAnswer, ill_before: bool) -> tuple[Verdict, str]:
    """Return the verdict of one mount and its words; `ill_before`: whether the last run found it hanging or failing."""
    code = answer.answers.get("errno")
    if answer.silent_since:
        return _twice("hangs", ill_before)
    if answer.why or type(code) is not int or code < 0 or code == errno.ENOENT:
        return Verdict.UNKNOWN, f"could not be asked: {answer.why or errno.errorcode.get(code or 0, 'killed')}"
    if code in AT_ONCE:
        return Verdict.FAULT, AT_ONCE[code]
    if code == 0 or code in REFUSALS:
        return Verdict.OK, "answers"
    return _twice(f"fails ({errno.errorcode.get(code, f'error {code}')})", ill_before)


def _twice(words: str, ill_before: bool) -> tuple[Verdict, str]:
    return (Verdict.FAULT, words) if ill_before else (Verdict.UNKNOWN, f"{words} (seen once)")


def judge(found: Mapping[MountLine, tuple[Verdict, str]], garbled: int) -> tuple[Verdict, str]:
    """Turn what was found of every mount into a verdict and its line."""
    texts = {GARBLED: Verdict.UNKNOWN} if garbled else {}
    texts |= {f"{mount.kind} mount {mount.point} {words}": verdict for mount, (verdict, words) in found.items()}
    return conclude(texts, FINE if found else NONE)


def key(mount: MountLine) -> str:
    """Return a file name for this mount."""
    return mount_probe.key(mount.device, mount.source)


def look(mounts: list[MountLine], options: argparse.Namespace, folder: Path) -> Mapping[MountLine, ChildAnswer]:
    """Ask the mounts."""
    return mount_probe.bounded(
        mounts,
        lambda mount: mount.source,
        lambda mount: mount_probe.left_behind(folder, key(mount)),
        lambda mount: mount_probe.ask_mount(
            mount.point, key(mount), folder, options.proc, options.statfs, options.deadline
        ),
    )


def check(run: Run[Memory]) -> Findings:
    """One run: ask the mounts, judge, remember which are ill."""
    options, folder = run.options, run.options.state / NAME
    lines, garbled = mountinfo.parse(os.fsdecode((options.proc / "1/mountinfo").read_bytes()))
    mounts = once([mount for mount in lines if is_watched(mount, options.ignore)])
    answers = look(mounts, options, folder)
    verdicts = {mount: decide(answers[mount], key(mount) in run.last.ill) for mount in mounts}
    if not options.explain:
        mount_probe.forget(folder, {key(mount) for mount in mounts})
    verdict, line = judge(verdicts, garbled)
    return Findings(
        verdict,
        line,
        Memory([key(one) for one in mounts if decide(answers[one], ill_before=True)[0] is Verdict.FAULT]),
        evidence=lambda: {"mounts": evidence(verdicts)},
        explain=lambda: explain({}, {f"{one.kind} {one.point}": str(answers[one]) for one in mounts}, verdict),
    )


def evidence(verdicts: Mapping[MountLine, tuple[Verdict, str]]) -> list[dict[str, str]]:
    """Return the mounts that are at fault; bounded, lest it be cut elsewhere."""
    faults = [mount for mount, (verdict, _) in verdicts.items() if verdict is Verdict.FAULT][:8]
    return [{"mount": mount.point[:100], "source": mount.source[:100], "kind": mount.kind} for mount in faults]


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 12.0, "each mount; 5 more to end the child")
    options.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PATTERN",
        help="mount points and types to leave out, such as 'fuse.sshfs' or '/mnt/*'; may be given many times",
    )
    options.add_argument(
        "--statfs",
        metavar="PROGRAM",
        help="run as PROGRAM MOUNTPOINT instead of statvfs: exit 0 fine, else an errno (107 ENOTCONN); hanging hangs",
    )
    return options.parse_args(arguments)


DETECTOR = Detector(NAME, "RemoteMountFault", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
