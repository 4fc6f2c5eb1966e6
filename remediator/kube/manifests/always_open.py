"""Windows of policies that keep nothing out: legal, but hardly meant."""

from collections.abc import Iterable, Iterator

from remediator import windows
from remediator.core.policy import Policy


def warnings(policies: Iterable[Policy]) -> Iterator[str]:
    """What to look at, a sentence each."""
    for policy in policies:
        for index, window in enumerate(policy.windows):
            if not any(windows.problems((window,))) and windows.always_open(window):
                yield (
                    f"policy {policy.name}: spec.windows[{index}] is always open: it opens again before its duration "
                    f"({window.duration}) is over; make it shorter, or remove the windows"
                )
