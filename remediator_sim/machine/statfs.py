"""`statfs MOUNTPOINT` on a simulated machine: exit 0, an errno, or no end while the mount is stuck.

A shell script: detectors call it for every mount, and a shell starts in a tenth of Python's time. It reads a file with
a line for each mount, the errno (- while it hangs) and the mount point, and reads it again while it waits.
"""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote

ENOENT, ETIMEDOUT = 2, 110
PAUSE, PAUSES = 0.2, 1500  # seconds, and how many of them: then nobody waits for us any more

PROGRAM = f"""#!/bin/sh
left={PAUSES}
while [ "$left" -gt 0 ]; do
  [ -e {{file}} ] || exit {ENOENT}
  answer={ENOENT}
  while read -r code point; do [ "$point" != "$1" ] || answer=$code; done < {{file}}
  [ "$answer" = - ] || exit "$answer"
  sleep {PAUSE}
  left=$((left - 1))
done
exit {ETIMEDOUT}
"""


def program(file: Path) -> str:
    """The script that reads `file`."""
    return PROGRAM.format(file=quote(str(file)))


def answers(mounts: Mapping[str, int | None]) -> str:
    """What stands in the file: the errno by mount point, None while it hangs."""
    return "".join(f"{'-' if code is None else code} {point}\n" for point, code in mounts.items())
