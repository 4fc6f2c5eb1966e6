"""How many issues are opened, and when alerts of many nodes become one issue."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class FloodLimits:
    """Numbers of `remediator run`, and the times that go with them.

    An alert that begins on `fold_nodes` nodes within `fold_within` has one issue. Of all issues `per_hour` are opened
    within an hour. Each waits for `settle`: meanwhile what has the same cause, and what is more severe, is heard of.
    """

    fold_nodes: int = 10
    per_hour: int = 60
    fold_within: timedelta = timedelta(minutes=10)
    settle: timedelta = timedelta(seconds=10)
