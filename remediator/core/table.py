"""Decision tables: rows are read from the top, and the first row that fits gives the result.

A row checks only what it names. The last row names nothing, so a table has a result for every observation. Nothing is
stored here: each pass observes again, so after a crash between two writes the same row fits again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Row(Generic[R]):
    """`asks` maps fields of the observation to the values that they must have; `why` is the reason for its place."""

    asks: Mapping[str, object]
    result: R
    why: str

    def fits(self, observation: object) -> bool:
        """Whether the observation has every value that the row asks for."""
        for name, value in self.asks.items():  # noqa: SIM110 each pass asks dozens of rows: a generator costs more
            if getattr(observation, name) != value:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """The rows of one table. Raises ValueError where the last row asks for something: the table would not be total."""

    rows: tuple[Row[R], ...]

    def __post_init__(self) -> None:
        if not self.rows or self.rows[-1].asks:
            raise ValueError("the last row of a table must ask for nothing, so that every observation has a result")

    def row(self, observation: object) -> Row[R]:
        """The first row that fits."""
        return next(row for row in self.rows if row.fits(observation))

    def result(self, observation: object) -> R:
        """The result of the first row that fits."""
        return self.row(observation).result
