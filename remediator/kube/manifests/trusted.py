"""Policies that trust what is no new criterion: legal, but hardly meant."""

from collections.abc import Iterable, Iterator

from remediator.core import names
from remediator.core.new_criteria import asked
from remediator.core.policy import Policy


def warnings(policies: Iterable[Policy]) -> Iterator[str]:
    """What to look at, a sentence each."""
    for policy in policies:
        new = [criterion.name for criterion in asked(policy)]
        known = f"what is new there: {', '.join(new)}" if new else "nothing that it asks for is new"
        for name in sorted(policy.trusts.difference(new)):
            what = f"the annotation {names.TRUSTED_CRITERIA} names {name}, which has no effect"
            yield f"policy {policy.name}: {what} ({known}); correct it, or remove it"
