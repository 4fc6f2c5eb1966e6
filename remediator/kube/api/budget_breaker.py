"""spec.breaker of a NodeDisruptionBudget: when no more may be started on its nodes."""

from typing import Annotated

from msgspec import Meta

from remediator.kube.api.common import Base, Rule, doc, rules
from remediator.kube.api.durations import BreakerWindow


class FailureLimit(Base, frozen=True, kw_only=True):
    """How many of the newest attempts may be in vain."""

    of: Annotated[int, Meta(ge=1, le=16), doc("How many of the newest attempts of a day are looked at. Default 8.")] = 8
    most: Annotated[
        int, Meta(ge=1, le=16), doc("When so many of them were in vain, nothing more starts. Default 4.")
    ] = 4


_OPENS = Rule(
    "self.most <= self.of",
    "most must not be more than of; write both, for most is 4 and of is 8 where they are left out",
)


class BudgetBreaker(Base, frozen=True, kw_only=True):
    """When nothing more starts on the nodes of the budget. It never stops a recovery."""

    starts: Annotated[
        Annotated[int, Meta(ge=1, le=10_000)] | None,
        doc("Most attempts that start on all nodes of the budget in the window."),
    ] = None
    percent: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        doc(
            "The same as a percentage of the budget's nodes, rounded down but never below one. With starts, the smaller"
            " of the two counts."
        ),
    ] = None
    window: Annotated[
        BreakerWindow,
        doc("The time over which starts are counted. Default 10m."),
    ] = "10m"
    failures: Annotated[
        FailureLimit | None,
        rules(_OPENS),
        doc(
            "Opens when too many of the newest attempts on nodes of the budget were in vain, and stays open until a "
            "user closes it, such as with `remediator close-breaker budget/training`.",
        ),
    ] = None


# On the spec that has it.
BREAKER_RULES = (
    Rule(
        "!has(self.breaker) || has(self.breaker.starts) || has(self.breaker.percent) || has(self.breaker.failures)",
        "at least one of starts, percent and failures is required; write one, or remove breaker",
        ".breaker",
    ),
)
