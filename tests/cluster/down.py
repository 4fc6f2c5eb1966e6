"""End what `python -m tests.cluster.up` started."""

import shutil
import sys

from tests.cluster import record
from tests.cluster.processes import end


def main() -> int:
    """End exactly those processes; the exit status."""
    standing = record.load()
    if standing is None:
        print("no control plane is up")
        return 0
    end(standing.processes)
    shutil.rmtree(record.folder(), ignore_errors=True)
    print("the control plane is down")
    return 0


if __name__ == "__main__":
    sys.exit(main())
