"""The causes of an issue: those that are active now against those that it reported. Pure."""

from collections.abc import Iterable

from remediator.core.ticket import CAUSES, EARLIEST, CauseState, ReportedCause

SHARED = "cause"  # the key of what many nodes have in common


def by_key(causes: Iterable[ReportedCause]) -> dict[str, ReportedCause]:
    """Causes by their keys."""
    return {cause.key: cause for cause in causes}


def new_causes(reported: Iterable[ReportedCause], active: Iterable[ReportedCause]) -> tuple[ReportedCause, ...]:
    """Active causes that were never reported, or that began again after they were reported."""
    before = by_key(reported)
    return tuple(cause for cause in active if cause.key not in before or cause.since > before[cause.key].since)


def all_reported(reported: Iterable[ReportedCause], active: Iterable[ReportedCause]) -> tuple[ReportedCause, ...]:
    """What an issue has reported once it says what is so: the active causes, and that the others are over.

    Bounded: of those that are over the oldest are dropped. A cause never grows younger: when the youngest of several
    alerts of a name ends, nothing is new about the others.
    """
    before, now = by_key(reported), by_key(active)
    still = [
        ReportedCause(key, cause.state, max(cause.since, before[key].since if key in before else EARLIEST))
        for key, cause in now.items()
    ]
    over = [ReportedCause(key, CauseState.OVER, cause.since) for key, cause in before.items() if key not in now]
    over.sort(key=lambda cause: cause.since, reverse=True)
    return tuple([*still, *over][:CAUSES])


def still_active(reported: Iterable[ReportedCause], active: Iterable[ReportedCause]) -> tuple[ReportedCause, ...]:
    """Reported causes that are active: all that is to be remembered of an issue that a user closed."""
    now = by_key(active)
    return tuple(cause for cause in reported if cause.key in now and cause.state is not CauseState.OVER)
