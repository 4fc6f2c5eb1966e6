#!/usr/bin/env -S python3 -I -S -B
"""What node-problem-detector starts for each run: `start.py DETECTOR [OPTION...]`.

It is short because Python keeps the syntax tree of the file that it was started with until that ends: with the file of
a detector, half a mebibyte that each run holds while it waits.
"""

import os
import sys


def main() -> None:
    """Have the shared process do the run; where that does not begin it, become the detector."""
    sys.path.append(os.path.realpath(f"{__file__}/../../.."))  # where nodelib/ is; python3 -I leaves it out
    from nodelib.state import slots

    program = os.path.realpath(f"{__file__}/../../../detectors/{sys.argv[1]}.py")
    os.stat(program)  # noqa: PTH116  pathlib would cost each run milliseconds
    sys.argv = [program, *sys.argv[2:]]
    if os.environ.get(slots.SHARES) == "yes":
        from nodelib.forks.ask import hand_over

        hand_over(slots.state_folder(sys.argv[1:]))
        del os.environ[slots.SHARES]
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-B", *sys.argv])


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # Python would end with 1, which says that the node is faulty
        print(f"this run did not begin ({type(error).__name__}): give the name of a detector, as deploy/npd does")
        sys.exit(2)
