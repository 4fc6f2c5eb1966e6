#!/usr/bin/env -S python3 -I -S -B
"""Condition FilesystemDamage: an XFS, btrfs or f2fs of this node itself is damaged, or the kernel has shut it.

No boot checks these file systems: it only hides what is wrong with them. Looked at is each on a block device that
process 1 has mounted, but for volumes of Pods (VolumeError tells of them). Faults:

  was shut by the kernel          xfs: EIO for its root folder, or a shutdown in the kernel's log where it cannot be
                                  asked; btrfs: forced readonly
  has met errors since boot       btrfs has counted more errors on its disks (/sys/fs/btrfs)
  has errors from before this boot: nobody has checked it
                                  btrfs has counted errors, and nobody has set them back
  has become read-only            it was writable when it was first seen

Remedy: FilesystemDamage: keep new work off the node, see DiskFault first, and have a person repair it where it is not
mounted: xfs_repair (a mount that replays its log must have worked once), btrfs scrub or btrfs check and then btrfs
device stats -z, fsck.f2fs. Do not reboot for it: XFS has no mark of damage that outlasts the boot. "has become
read-only" by a person's own wish: mount -o remount,rw. What the kernel said is in
<state>/evidence/filesystem_damage.json.
"Cannot tell": "cannot be read", "cannot be asked", "does not report", "make no sense": run node-problem-detector
privileged, with the node's /sys, process ids and /dev/kmsg. "has not answered since": an XFS hangs with its disk: see
DiskFault and UnkillableProcess.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from nodelib.contract.detector import main, parser
from nodelib.host.fs_health import FsWatch, detector

WATCH = FsWatch(
    "filesystem_damage",
    "FilesystemDamage",
    volumes=False,
    fine="no file system that a boot leaves unchecked has errors",
    none="this node has mounted no XFS, btrfs or f2fs",
    kinds=("xfs", "btrfs", "f2fs"),
)
DETECTOR = detector(WATCH)


if __name__ == "__main__":
    main(parser(__doc__, 10.0, "an answer of each XFS").parse_args(), DETECTOR)
