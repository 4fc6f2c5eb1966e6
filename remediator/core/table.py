"""Decision tables: rows are read from the top, and the first row that fits gives the result.

A row checks only what it names. The last row names nothing, so a table has a result for every observation. Nothing is
stored here: each pass observes again, so after a crash between two writes the same row fits again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Generic, TypeVar

R = TypeVar("R")


def _nothing(observation: object) -> object:
    return ()


@dataclass(frozen=True, slots=True)
class Row(Generic[R]):
    """`asks` maps fields of the observation to the values that they must have; `why` is the reason for its place."""

    asks: Mapping[str, object]
    result: R
    why: str
    _look: Callable[[object], object] = field(init=False, repr=False, compare=False)
    _values: object = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = tuple(self.asks.values())  # each pass asks dozens of rows: their fields are looked up in one call
        object.__setattr__(self, "_look", attrgetter(*self.asks) if values else _nothing)
        object.__setattr__(self, "_values", values[0] if len(values) == 1 else values)

    def fits(self, observation: object) -> bool:
        """Whether the observation has every value that the row asks for."""
        return self._look(observation) == self._values


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """The rows of one table. Raises ValueError where the last row asks for something: the table would not be total."""

    rows: tuple[Row[R], ...]

    def __post_init__(self) -> None:
        if not self.rows or self.rows[-1].asks:
            raise ValueError("the last row of a table must ask for nothing, so that every observation has a result")

    def row(self, observation: object) -> Row[R]:
        """The first row that fits."""
        for row in self.rows[:-1]:
            if row.fits(observation):
                return row
        return self.rows[-1]

    def result(self, observation: object) -> R:
        """The result of the first row that fits."""
        return self.row(observation).result
