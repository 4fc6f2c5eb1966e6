"""Something that a detector measures is told of when it was bad in several looks in a row, and until it was good in as
many: what lies near a limit does not come and go with each look. Pure.
"""

from typing import NamedTuple


class Looks(NamedTuple):
    """In how many looks in a row it was bad, or good, by now; `told`: whether it stands."""

    bad: int = 0
    good: int = 0
    told: bool = False


def look(before: Looks, is_bad: bool, wanted: int) -> Looks:
    """Return what stands after one more look; `wanted`: how many in a row begin or end it.

    >>> look(Looks(2, 0, False), True, 3).told, look(Looks(3, 0, True), False, 3).told
    (True, True)
    """
    bad, good = (min(before.bad + 1, wanted), 0) if is_bad else (0, min(before.good + 1, wanted))
    return Looks(bad, good, bad >= wanted or (before.told and good < wanted))
