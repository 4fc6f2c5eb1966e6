"""Hold an ext4 and freeze it: `frozen_disk.py IMAGE FOLDER SECONDS`. Orders on stdin: freeze, thaw.

While it is frozen whoever writes waits in state D, and no signal ends that. This process never writes there, so that
nothing keeps it from thawing it at its end, whatever that is.
"""

import fcntl
import os
import subprocess
import sys

from private import be_private, converse, unmount

ORDERS = {"freeze": 0xC0045877, "thaw": 0xC0045878}  # FIFREEZE and FITHAW, what fsfreeze(8) calls


def main(image: str, point: str, seconds: float) -> None:
    be_private()
    subprocess.run(["mount", "-o", "loop", image, point], check=True)  # the loop device goes with the mount
    folder = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    frozen = False

    def answer(order: str) -> str:
        nonlocal frozen
        wanted = order == "freeze"
        if wanted != frozen:
            fcntl.ioctl(folder, ORDERS[order], 0)
            frozen = wanted
        return order

    try:
        converse(answer, seconds)
    finally:
        answer("thaw")
        os.close(folder)
        unmount(point)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
