"""The second source of a policy: what it is asked about a node, and what its answer lets begin."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

from remediator.core import promql
from remediator.core.policy import Policy

LONGEST_VALID = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Question:
    """One query, and how old a sample may be when something begins because of it."""

    query: str
    within: timedelta

    @property
    def valid_for(self) -> timedelta:
        """How long an answer may be used."""
        return min(LONGEST_VALID, self.within / 2)

    @property
    def lookback(self) -> timedelta:
        """How old a sample may be when it is asked about: at the end of `valid_for` it is `within` old."""
        return self.within - self.valid_for


class ConfirmationVerdict(Enum):
    """What the second source says."""

    CONFIRMED = auto()
    DENIED = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class ConfirmationAnswer:
    """What the second source says, and why. `open`: the question still waits for its answer."""

    verdict: ConfirmationVerdict
    why: str = ""
    open: bool = False


def question(policy: Policy | None, node: str) -> Question | None:
    """What is asked before anything is done to a node; None where the policy has no second source."""
    if policy is None or policy.confirm is None:
        return None
    return Question(promql.filled(policy.confirm.query, node), policy.confirm.within)


def judged(values: Sequence[float], query: str) -> ConfirmationAnswer:
    """What the values of a whole and fresh answer say: one that is not zero confirms. There is at least one."""
    if any(values):
        return ConfirmationAnswer(ConfirmationVerdict.CONFIRMED)
    hint = (
        "; a series that is left with the value 0 says no: write == bool 0" if promql.lets_zero_through(query) else ""
    )
    return ConfirmationAnswer(ConfirmationVerdict.DENIED, f"Prometheus says 0 to {query}{hint}")
