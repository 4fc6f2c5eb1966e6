"""Which of many cases one run of the tests tries: another part of them at each commit."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

OPTION = "--sample"  # of pytest, that asks for samples
SHARE = 8  # one case of so many is in a sample
# By what a case takes, one of how many is in a sample, and in CI. `rare`: a processor for a second; `on_server`: five
# seconds on a real server. `slow` are whole tests that take a processor for a quarter of a second.
SHARES = {"usual": (SHARE, 3), "rare": (16, 3), "on_server": (16, 8), "slow": (SHARE, 1)}
Item = TypeVar("Item")


def turn() -> int:
    """The number of the sample: what TURN in the environment says, else the number of commits, 0 without git."""
    if "TURN" in os.environ:
        return int(os.environ["TURN"])
    command = ["git", "rev-list", "--count", "HEAD"]
    counted = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return int(counted.stdout or 0)


def one_in(kind: str = "usual") -> int:
    """One case of how many is in a sample: SHARE in the environment says it (1: all), else CI does."""
    elsewhere, in_ci = SHARES[kind]
    return int(os.environ.get("SHARE") or (in_ci if os.environ.get("CI") else elsewhere))


def sampled(items: Sequence[Item], number: int, share: int = SHARE) -> Sequence[Item]:
    """One item in `share`, of fewer one; so many numbers in a row have each item at least once."""
    return items[number % min(share, len(items)) :: share] if items else items


def share(items: Sequence[Item]) -> Sequence[Item]:
    """What one test tries of its own cases: the sample of this commit."""
    return sampled(items, turn(), one_in())
