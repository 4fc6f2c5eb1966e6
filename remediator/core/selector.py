"""Label selectors, as Kubernetes matches them, and as kubectl writes them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class Operator(StrEnum):
    """How one requirement compares."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


# Each look-up of a member takes Python a fifth of a microsecond; these are asked for in every decision.
_IN, _NOT_IN, _EXISTS = Operator.IN, Operator.NOT_IN, Operator.EXISTS


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of matchExpressions."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels satisfy this row; NotIn holds where the key is absent, as in Kubernetes."""
        if self.operator is _IN:
            return self.key in labels and labels[self.key] in self.values
        if self.operator is _NOT_IN:
            return labels.get(self.key) not in self.values
        return (self.key in labels) == (self.operator is _EXISTS)


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold. No requirement matches everything: callers that must not, forbid it."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether every requirement holds."""
        for requirement in self.requirements:  # noqa: SIM110 asked of each node and policy: a generator costs more
            if not requirement.matches(labels):
                return False
        return True


def may_overlap(left: Selector, right: Selector) -> bool:
    """Whether labels are possible that both match."""
    by_key: dict[str, list[Requirement]] = {}
    for requirement in (*left.requirements, *right.requirements):
        by_key.setdefault(requirement.key, []).append(requirement)
    return all(_possible(key, asked) for key, asked in by_key.items())


def _possible(key: str, asked: list[Requirement]) -> bool:
    """Whether some value of a label, or its absence, satisfies all of these requirements on it."""
    named = {value for requirement in asked for value in requirement.values}
    other = next(text for text in map(str, range(len(named) + 1)) if text not in named)
    tried: list[dict[str, str]] = [{}, *({key: value} for value in (*named, other))]
    return any(all(requirement.matches(labels) for requirement in asked) for labels in tried)


EVERYTHING = Selector()
FORM = "a label selector as kubectl takes it, such as '!nvidia.com/gpu.present' or 'pool in (infra,system),!slow'"
_KEY = r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
# What a term looks like, with the key in its first group, and what its operator is; values are in the second.
_TERMS = (
    (re.compile(rf"({_KEY})"), Operator.EXISTS),
    (re.compile(rf"!\s*({_KEY})"), Operator.DOES_NOT_EXIST),
    (re.compile(rf"({_KEY})\s*==?\s*({_VALUE})"), Operator.IN),
    (re.compile(rf"({_KEY})\s*!=\s*({_VALUE})"), Operator.NOT_IN),
    (re.compile(rf"({_KEY})\s+in\s*\(([^()]+)\)"), Operator.IN),
    (re.compile(rf"({_KEY})\s+notin\s*\(([^()]+)\)"), Operator.NOT_IN),
)


def parse(text: str) -> Selector:
    """A selector as kubectl takes it; "" is every object. Raises ValueError for anything else.

    >>> parse("!gpu, pool in (infra,system)").matches({"pool": "infra"})
    True
    """
    if not text.strip():
        return EVERYTHING
    return Selector(tuple(_requirement(term.strip()) for term in re.split(r",(?![^(]*\))", text)))


def _requirement(term: str) -> Requirement:
    for form, operator in _TERMS:
        if match := form.fullmatch(term):
            values = tuple(value.strip() for value in match[2].split(",")) if form.groups == 2 else ()
            if all(re.fullmatch(_VALUE, value) for value in values):
                return Requirement(match[1], operator, values)
    raise ValueError(f"{term!r} is no requirement on a label; write {FORM}")


class SelectorIndex(Generic[T]):
    """Which of many selectors match, without asking each: most can be found by a label that they need."""

    def __init__(self, pairs: Iterable[tuple[Selector, T]]) -> None:
        self._by_label: dict[str, dict[str, list[tuple[Selector, T]]]] = {}
        self._others: list[tuple[Selector, T]] = []
        for selector, item in pairs:
            needed = next((row for row in selector.requirements if row.operator is Operator.IN), None)
            if needed is None:
                self._others.append((selector, item))
                continue
            by_value = self._by_label.setdefault(needed.key, {})
            for value in dict.fromkeys(needed.values):
                by_value.setdefault(value, []).append((selector, item))

    def matching(self, labels: Mapping[str, str]) -> list[T]:
        """What belongs to the selectors that match these labels."""
        likely = [pair for key, by_value in self._by_label.items() for pair in by_value.get(labels.get(key, ""), ())]
        return [item for selector, item in (*self._others, *likely) if selector.matches(labels)]
