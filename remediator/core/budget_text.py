"""What the status of a budget says of it, in words. Pure."""

from datetime import datetime

from remediator.core import budget_breaker
from remediator.core.budget import Budget, Counts, GroupCounts


def group_as_shown(ledger: Budget, group: str, now: datetime) -> str:
    """One group of a budget, or the whole where it has none, for who does not know all nodes."""
    if ledger.shown is None or not ledger.group_by:
        return as_shown(ledger, now)
    breaker = _open(ledger, now)
    if not group:
        return f"{ledger.name}: the node has no label {ledger.group_by}, so that nothing starts on it{breaker}"
    mine = next((each for each in ledger.shown.groups if each.group == group), None)
    used = _counted(ledger, mine) if mine else "none unavailable"
    together = f"; all groups: {_counted(ledger, ledger.shown)}" if ledger.limits_all_groups else ""
    return f"{ledger.name}, {ledger.group_by} {group}: {used}{together}{breaker}"


def as_shown(ledger: Budget, now: datetime) -> str:
    """A budget as a whole, as its status says it."""
    counts, breaker = ledger.shown, _open(ledger, now)
    if counts is None:
        return f"{ledger.name}: not counted yet{breaker}"
    if not ledger.group_by:
        return f"{ledger.name}: {_counted(ledger, counts)}{breaker}"
    quarantined = f", {counts.quarantined} quarantined" if counts.quarantined else ""
    groups = f"groups: {counts.group_total}, of which full: {counts.groups_full}"
    return f"{ledger.name}, by {ledger.group_by}: {counts.unavailable} unavailable{quarantined}; {groups}{breaker}"


def _open(ledger: Budget, now: datetime) -> str:
    why = budget_breaker.why(ledger, now)
    return f"; breaker open: {why}" if why else ""


def _counted(ledger: Budget, counts: Counts | GroupCounts) -> str:
    most_quarantined = ledger.most_quarantined(counts.total)
    quarantined = f", {counts.quarantined} of {most_quarantined} quarantined" if counts.quarantined else ""
    return f"{counts.unavailable} of {ledger.most(counts.total)} unavailable{quarantined}"
