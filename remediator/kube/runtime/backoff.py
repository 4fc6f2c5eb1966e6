"""How long to wait after a failure."""

import random
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
MOST_KEYS = 10_000


def full_jitter(failures: int, *, base: float, cap: float, rand: Callable[[], float]) -> float:
    """Seconds to wait after `failures` earlier failures: anything from 0 to min(cap, base * 2**failures).

    `rand` gives floats in [0, 1). The whole range is drawn from, so that clients that failed together come back apart.
    """
    return rand() * min(cap, base * 2.0 ** min(failures, 64))


class Backoff(Generic[K]):
    """How long to wait after each failure of the same thing: twice as long each time, until it succeeds.

    `rand` gives floats in [0, 1). Forgets all at once where too many things fail: that only makes some waits short.
    """

    def __init__(self, rand: Callable[[], float] = random.random) -> None:
        self._rand = rand
        self._failures: dict[K, int] = {}

    def failed(self, key: K, base: float, cap: float) -> float:
        """Seconds to wait: between one half and the whole of min(cap, base * 2**earlier failures)."""
        if len(self._failures) >= MOST_KEYS:
            self._failures.clear()
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        whole = full_jitter(failures, base=base, cap=cap, rand=lambda: 1.0)
        return whole * (1 + self._rand()) / 2

    def succeeded(self, key: K) -> None:
        """The next failure waits from the start again."""
        self._failures.pop(key, None)
