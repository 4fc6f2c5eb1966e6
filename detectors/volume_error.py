#!/usr/bin/env -S python3 -I -S -B
"""Condition VolumeError: a volume of a Pod is damaged, or the kernel has shut it.

Looked at is each ext2/3/4, xfs, btrfs and f2fs on a block device that process 1 has mounted for Pods only: below the
kubelet's folders pods/ and plugins/. FilesystemError tells of all others. Faults:

  has met errors since boot       ext4's count of errors has grown (/sys/fs/ext4), or btrfs's (/sys/fs/btrfs)
  was shut by the kernel          ext4: the option emergency_ro or shutdown (new kernels leave "rw" in its flags);
                                  xfs: EIO for its root folder, or a shutdown in the kernel's log where it cannot be
                                  asked; btrfs: forced readonly

No fault: an error that a volume has brought along from another node or another day: only those count that came while
it was mounted here. A volume that is or becomes read-only: it may be the Pod's wish.

Remedy: VolumeError: no repair of the node helps, and a volume that is broken takes its errors to the next node. Which
one it is: `findmnt -S /dev/DEVICE` on the node, or <state>/evidence/volume_error.json: the folder is named after its
PersistentVolume. Delete the Pod and see that it stays away (scale what owns it to 0), look at the storage that the
volume is on, and check it where nothing has it mounted: e2fsck -f, xfs_repair or btrfs check. "was shut by the kernel"
where a disk was detached by force: the same; once its Pod is gone all is well.
"Cannot tell": "cannot be read", "cannot be asked", "does not report", "make no sense": run node-problem-detector
privileged, with the node's /sys, process ids and /dev/kmsg. "has not answered since": an XFS hangs with its storage:
look at that, and at UnkillableProcess.

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
    "volume_error",
    "VolumeError",
    volumes=True,
    fine="no volume of a Pod has errors",
    none="no Pod has a volume of a disk",
)
DETECTOR = detector(WATCH)


if __name__ == "__main__":
    main(parser(__doc__, 10.0, "an answer of each XFS").parse_args(), DETECTOR)
