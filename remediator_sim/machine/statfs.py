"""`statfs MOUNTPOINT` on a simulated machine: exit 0, an errno, or no end while the mount is stuck.

Run as `python statfs.py FILE MOUNTPOINT`; FILE holds {mount point: errno, or null while it hangs} and is read again
while it waits. Standard library only, for it starts as bare as the detectors that call it.
"""

import json
import sys
import time
from pathlib import Path

ENOENT, ETIMEDOUT = 2, 110
FOR_EVER = 300.0  # seconds


def main(file: Path, point: str) -> int:
    """What statfs answers at `point`; no machine any more is ENOENT, and after so long nobody waits for us."""
    until = time.monotonic() + FOR_EVER
    while time.monotonic() < until:
        try:
            code = json.loads(file.read_bytes()).get(point, ENOENT)
        except FileNotFoundError:
            return ENOENT
        if code is not None:
            return int(code)
        time.sleep(0.05)
    return ETIMEDOUT


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
