#!/usr/bin/env -S python3 -I -S -B
"""Condition FilesystemError: a file system of this node itself is damaged, or the kernel has shut it.

Looked at is each ext2/3/4, xfs, btrfs and f2fs on a block device that process 1 has mounted, but for volumes of Pods,
which no reboot mends: VolumeError tells of them. Faults:

  has met errors since boot       ext4's count of errors has grown (/sys/fs/ext4), or btrfs's (/sys/fs/btrfs)
  was shut by the kernel          ext4: the option emergency_ro or shutdown (new kernels leave "rw" in its flags);
                                  xfs: EIO for its root folder, or a shutdown in the kernel's log where it cannot be
                                  asked; btrfs: forced readonly
  has become read-only            it was writable when it was first seen

No fault: an error of ext4 from before this boot (reported by --explain; e2fsck clears it), a file system that was
read-only from the first, one in a file server or in memory.

Remedy: FilesystemError: move the work off the node and reboot it: file systems that are checked at boot come back
clean. "DiskFault" beside it: the disk is the cause, replace it. Where it comes back, unmount it and run e2fsck -f,
xfs_repair or btrfs check. "has become read-only" by a person's own wish: mount -o remount,rw. What the kernel said is
in <state>/evidence/filesystem_error.json.
"Cannot tell": "cannot be read", "cannot be asked", "does not report", "make no sense": run node-problem-detector
privileged, with the node's /sys, process ids and /dev/kmsg. "has not answered since": an XFS hangs with its disk: see
DiskFault and UnkillableProcess, reboot where it lasts.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse

from nodelib.contract.detector import main, parser
from nodelib.contract.npd import Verdict
from nodelib.host import fs_health
from nodelib.host.fs_health import Watch

WATCH = Watch(
    "filesystem_error",
    "FilesystemError",
    volumes=False,
    fine="no file system of the node has errors",
    none="this node has mounted no file system of a disk",
)


def check(options: argparse.Namespace) -> tuple[Verdict, str]:
    """One run over the node's own file systems."""
    return fs_health.check(options, WATCH)


if __name__ == "__main__":
    main(parser(__doc__, 10.0, "an answer of each XFS").parse_args(sys.argv[1:]), WATCH.name, check)
