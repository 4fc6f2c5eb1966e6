"""Which open breakers on failures a user means by a name, and which objects are to be told to close them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum

from remediator.core.budget import Budget
from remediator.core.failures import template_of
from remediator.core.policy import AttemptRecord, FailureBreaker, Policy


class Of(StrEnum):
    """What a breaker on failures belongs to."""

    POLICY = "policy"
    TEMPLATE = "template"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Closing:
    """What is closed, and what must be told: `policies` and `budgets` by name. None of them where it is not open."""

    of: Of
    name: str
    breaker: FailureBreaker
    policies: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        """Whether it is open."""
        return bool(self.policies or self.budgets)

    @property
    def at_least(self) -> datetime | None:
        """The earliest time at which closing it closes it."""
        return self.breaker.opened

    def __str__(self) -> str:
        """As the command takes it."""
        return f"{self.of}/{self.name}"


@dataclass(frozen=True, slots=True)
class Breakers:
    """All that may have a breaker on failures."""

    policies: Sequence[Policy]
    budgets: Sequence[Budget]
    templates: Sequence[str]

    def named(self, what: str, now: datetime) -> list[Closing]:
        """What `what` names: policy/NAME, template/NAME, budget/NAME, or NAME alone for any of them."""
        kind, _, name = what.rpartition("/")
        return [closing for closing in self._all(name, now) if kind in ("", closing.of)]

    def near(self, what: str) -> list[str]:
        """The names that are most like one that is not there, in the form that the command takes."""
        kind, _, name = what.rpartition("/")
        known = {
            Of.POLICY: [policy.name for policy in self.policies],
            Of.TEMPLATE: list(self.templates),
            Of.BUDGET: [budget.name for budget in self.budgets],
        }
        pairs = [(f"{of}/{each}", each) for of, names in known.items() for each in names if kind in ("", of)]
        close = get_close_matches(name, sorted({each for _, each in pairs}), n=3)
        return [full for full, each in pairs if each in close]

    def _all(self, name: str, now: datetime) -> Iterator[Closing]:
        for policy in self.policies:
            if policy.name == name:
                stays = policy.breaker.stays_open(policy.closed_at, now)
                yield Closing(Of.POLICY, name, policy.breaker, policies=(name,) if stays else ())
        if name in self.templates:
            yield self._of_template(name, now)
        for budget in self.budgets:
            if budget.name == name and budget.breaker is not None:
                stays = budget.failing.stays_open(budget.closed_at, now)
                yield Closing(Of.BUDGET, name, budget.failing, budgets=(name,) if stays else ())

    def _of_template(self, name: str, now: datetime) -> Closing:
        """A template stops every policy that has it: all of them are told, or the next one opens at once."""
        having = [policy for policy in self.policies if any(rung.operation == name for rung in policy.ladder)]
        opened = [
            policy.breaker
            for policy in having
            if template_of(policy.breaker.message) == name and policy.breaker.stays_open(policy.closed_at, now)
        ]
        if not opened:
            return Closing(Of.TEMPLATE, name, FailureBreaker())
        newest = max((each.opened for each in opened if each.opened), default=None)
        records = _of(name, (record for policy in having for record in policy.breaker.records))
        breaker = FailureBreaker(newest, opened[0].message, records)
        return Closing(Of.TEMPLATE, name, breaker, policies=tuple(sorted(policy.name for policy in having)))


def _of(template: str, records: Iterable[AttemptRecord]) -> tuple[AttemptRecord, ...]:
    return tuple(sorted((each for each in records if each.template == template), key=lambda each: each.ended))
