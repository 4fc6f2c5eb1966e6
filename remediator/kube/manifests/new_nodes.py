"""Finds gates of new nodes that are legal and unwise: two policies that open the same gate."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from remediator.core.policy import Policy


def warnings(policies: Iterable[Policy]) -> Iterator[str]:
    """What to look at, a sentence each."""
    by_taint: defaultdict[str, list[str]] = defaultdict(list)
    for policy in policies:
        if policy.admit is not None:
            by_taint[policy.admit.taint].append(policy.name)
    for taint, names in sorted(by_taint.items()):
        if len(names) > 1:
            first, *others = sorted(names)
            yield (
                f"policies {', '.join([first, *others])}: all have admit.taint {taint}; on a node that several select "
                f"{first} alone opens the gate; give each its own taint, or see that their selectors do not overlap"
            )
