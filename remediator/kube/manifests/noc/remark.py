"""What is said of an object of theirs: what of it is different here, or why it becomes nothing."""

from typing import NamedTuple


class Remark(NamedTuple):
    """A field that is not carried over as it is, what follows, and what to do about it."""

    field: str
    message: str


class Refused(ValueError):
    """Nothing is made of this object."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.remark = Remark(field, message)


class Note(NamedTuple):
    """A remark with its object: where that stands ("noc.yaml:12"), and what it is ("NodeOperation/a")."""

    source: str
    object: str
    field: str
    message: str
    refused: bool = False

    def __str__(self) -> str:
        place = ": ".join(part for part in (self.source, self.object, self.field, self.message) if part)
        return f"{'refused' if self.refused else 'note'}: {place}"
