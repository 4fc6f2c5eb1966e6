"""Which of many cases one run of the tests tries: another part of them at each commit."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

OPTION = "--sample"  # of pytest, that asks for samples
SHARE, SHARE_IN_CI = 8, 3  # one case of so many is in a sample
RARER = 2  # so many times fewer are of those that are marked rare; in CI as many
Item = TypeVar("Item")


def turn() -> int:
    """The number of the sample: what TURN in the environment says, else the number of commits, 0 without git."""
    if "TURN" in os.environ:
        return int(os.environ["TURN"])
    command = ["git", "rev-list", "--count", "HEAD"]
    counted = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return int(counted.stdout or 0)


def one_in(rare: bool = False) -> int:
    """One case of how many is in a sample: SHARE in the environment says it (1: all), else CI does."""
    usual = SHARE * (RARER if rare else 1)
    return int(os.environ.get("SHARE") or (SHARE_IN_CI if os.environ.get("CI") else usual))


def one_slow_in() -> int:
    """One slow test of how many is in a sample: all in CI."""
    return 1 if os.environ.get("CI") else one_in()


def sampled(items: Sequence[Item], number: int, share: int = SHARE) -> Sequence[Item]:
    """One item in `share`, of fewer one; so many numbers in a row have each item at least once."""
    return items[number % min(share, len(items)) :: share] if items else items


def share(items: Sequence[Item]) -> Sequence[Item]:
    """What one test tries of its own cases: the sample of this commit."""
    return sampled(items, turn(), one_in())
