"""Finds policies whose repairs never count as a success: their Events must be silent for longer than is waited for."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from remediator.core.node_events import asked, of_condition
from remediator.core.policy import Policy


def warnings(policies: Iterable[Policy]) -> Iterator[str]:
    """What to look at, a sentence each."""
    for policy in policies:
        rules = (of_condition(type) for type in asked(policy))
        longest = max(rules, key=lambda rule: rule.within, default=None)
        if longest is not None and longest.within + policy.verify.settle >= policy.verify.timeout:
            within, needed = _minutes(longest.within), _minutes(longest.within + policy.verify.settle)
            yield (
                f"policy {policy.name}: {longest.reason} must be silent for event.within {within} and then "
                f"verify.settle, which is {needed}, but verify.timeout is {_minutes(policy.verify.timeout)}: no repair "
                "is in time to count as one; write a longer verify.timeout, or a shorter event.within"
            )


def _minutes(length: timedelta) -> str:
    return f"{length.total_seconds() / 60:g}m"
