"""Label selectors, as Kubernetes matches them."""

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


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of matchExpressions."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels satisfy this row; NotIn holds where the key is absent, as in Kubernetes."""
        match self.operator:
            case Operator.IN:
                return self.key in labels and labels[self.key] in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values
            case Operator.EXISTS:
                return self.key in labels
            case Operator.DOES_NOT_EXIST:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold. No requirement matches everything: callers that must not, forbid it."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether every requirement holds."""
        return all(requirement.matches(labels) for requirement in self.requirements)


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
