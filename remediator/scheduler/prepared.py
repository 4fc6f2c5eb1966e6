"""What was said of a list of names, in parts, each kept until something has changed for one of its nodes."""

import weakref
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from remediator.scheduler.asked import AskedNames

T = TypeVar("T")


class FilteredNames(NamedTuple):
    """Of some names: those that are left, and as JSON these and the refusals of the others, each in one of two lists.

    `refused`: those that somebody has told us of; the counts are those of both lists, strangers among them.
    """

    left: list[str]
    text: bytes
    failed: bytes
    unresolvable: bytes
    refused: frozenset[str]
    failed_count: int
    unresolvable_count: int


class PreparedParts(Generic[T]):
    """One part for each slice of a list, while somebody else keeps the list: the parts go with it."""

    def __init__(self, names: AskedNames) -> None:
        self._parts: dict[int, T] = {}
        let_go = self._parts.clear
        self._names = weakref.ref(names, lambda _: let_go())

    def are_of(self, names: AskedNames) -> bool:
        """Whether they are of this very list."""
        return self._names() is names

    def moved(self, name: str) -> None:
        """Something has changed for this node."""
        if self._parts and (names := self._names()) is not None:
            self._parts.pop(names.slice_of.get(name, -1), None)

    def all(self, names: AskedNames, made: Callable[[dict[str, None]], T]) -> list[T]:
        """All parts of the list; what is not there is made."""
        parts = self._parts
        for at in names.slices.keys() - parts.keys():
            parts[at] = made(names.slices[at])
        return [parts[at] for at in names.slices]
