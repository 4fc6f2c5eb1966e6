"""Which of many cases one run of the tests tries: another part of them at each commit."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

OPTION = "--sample"  # of pytest, that asks for samples
SHARE = 6  # one case of so many is in a sample
Item = TypeVar("Item")


def turn() -> int:
    """The number of the sample: what TURN in the environment says, else the number of commits, 0 without git."""
    if "TURN" in os.environ:
        return int(os.environ["TURN"])
    command = ["git", "rev-list", "--count", "HEAD"]
    counted = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return int(counted.stdout or 0)


def sampled(items: Sequence[Item], number: int) -> Sequence[Item]:
    """Every SHARE-th item, of fewer one; SHARE numbers in a row have each item at least once."""
    return items[number % min(SHARE, len(items)) :: SHARE] if items else items


def share(items: Sequence[Item]) -> Sequence[Item]:
    """What one test tries of its own cases: all in CI, else the sample of this commit."""
    return items if os.environ.get("CI") else sampled(items, turn())
