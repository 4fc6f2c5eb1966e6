"""`statfs MOUNTPOINT` on a simulated machine: exit 0, an errno, or no end while the mount is stuck.

Run as `python statfs.py FILE MOUNTPOINT`; FILE holds {mount point: errno, or null while it hangs} and is read again
while it waits. Standard library only, for it starts as bare as the detectors that call it.
"""

import json
import sys
import time
from pathlib import Path

ENOENT = 2


def main(file: Path, point: str) -> int:
    """What statfs answers at `point`; no machine any more is ENOENT."""
    while True:
        try:
            code = json.loads(file.read_bytes()).get(point, ENOENT)
        except FileNotFoundError:
            return ENOENT
        if code is not None:
            return int(code)
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
