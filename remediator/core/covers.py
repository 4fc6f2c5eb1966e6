"""What need not be tried any more once an operation was done: what its template covers, and what that covers."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from types import MappingProxyType

Covers = Mapping[str, Sequence[str]]  # by template: those that its field `covers` names

NOTHING: Covers = MappingProxyType({})


def covered(covers: Covers, done: Iterable[str]) -> frozenset[str]:
    """What these operations cover, step by step. A cycle leads back to one that was seen, and ends there."""
    return frozenset([name for operation in set(done) for name in _below(covers, operation) if name != operation])


def weaker(covers: Covers, operations: Set[str], done: Collection[str]) -> set[str]:
    """Those of `operations` that one of `done` covers, and not the other way round, as in a cycle."""
    below = {other: _below(covers, other) & operations for other in done}
    return {name for other, names in below.items() for name in names if other not in _below(covers, name)}


def cycle(covers: Covers, operation: str) -> bool:
    """Whether what the operation covers leads back to it."""
    return operation in _below(covers, operation)


def _below(covers: Covers, operation: str) -> set[str]:
    seen: set[str] = set()
    ahead = list(covers.get(operation, ()))
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += covers.get(name, ())
    return seen
