"""Be a node: `late_driver.py FOLDER SECONDS`. Orders on stdin: the path of a file to make.

Its root is FOLDER; its /dev is seen only by who comes through the root of this process.
"""

import os
import sys
from pathlib import Path

from private import be_private, converse, mount


def main(folder: str, seconds: float) -> None:
    be_private()
    mount("none", f"{folder}/dev", "tmpfs")
    os.chroot(folder)
    os.chdir("/")

    def answer(path: str) -> str:
        Path(path).touch()
        return path

    converse(answer, seconds)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
