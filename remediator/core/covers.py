"""What need not be tried any more once an operation was done: what its template covers, and what that covers."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

Covers = Mapping[str, Sequence[str]]  # by template: those that its field `covers` names

NOTHING: Covers = MappingProxyType({})


def covered(covers: Covers, done: Iterable[str]) -> frozenset[str]:
    """What these operations cover, step by step. A cycle leads back to one that was seen, and ends there."""
    return frozenset([name for operation in set(done) for name in _below(covers, operation) if name != operation])


def covering(covers: Covers, operation: str) -> set[str]:
    """Those that cover an operation, and that it does not cover itself, as in a cycle."""
    above: set[str] = set()
    below = [operation]
    while below:
        name = below.pop()
        upper = [other for other, under in covers.items() if name in under and other not in above]
        above.update(upper)
        below += upper
    return above - _below(covers, operation) if above else above


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
