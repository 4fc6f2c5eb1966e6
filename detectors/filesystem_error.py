#!/usr/bin/env -S python3 -I -S -B
"""Condition FilesystemError: an ext2/3/4 of this node itself is damaged, or the kernel has shut it.

Looked at is each of them on a block device that process 1 has mounted, but for volumes of Pods, which no reboot mends:
VolumeError tells of them. FilesystemDamage tells of file systems that no boot checks. Faults:

  has met errors since boot       its count of errors has grown (/sys/fs/ext4)
  was shut by the kernel          the option emergency_ro or shutdown (new kernels leave "rw" in its flags)
  has become read-only            it was writable when it was first seen
  has errors from before this boot: nobody has checked it
                                  e2fsck clears the count, so it has not run: the boot did not check it (a 0 at the end
                                  of its line in /etc/fstab), or could not

No fault: a file system that was read-only from the first, one in a file server or in memory.

Remedy: FilesystemError: move the work off the node and reboot it: file systems that are checked at boot come back
clean. "DiskFault" beside it: the disk is the cause, replace it. Where it comes back, and "nobody has checked it":
unmount it and run e2fsck -f, and put a 1 or 2 at the end of its line in /etc/fstab. "has become read-only" by a
person's own wish: mount -o remount,rw. What the kernel said is in <state>/evidence/filesystem_error.json.
"Cannot tell": "cannot be read", "cannot be asked", "does not report", "make no sense": run node-problem-detector
privileged, with the node's /sys, process ids and /dev/kmsg.

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
    "filesystem_error",
    "FilesystemError",
    volumes=False,
    fine="no file system of the node has errors",
    none="this node has mounted no file system of a disk",
    kinds=("ext2", "ext3", "ext4"),
)
DETECTOR = detector(WATCH)


if __name__ == "__main__":
    main(parser(__doc__, 10.0, "an answer of each XFS").parse_args(), DETECTOR)
