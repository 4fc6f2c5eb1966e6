"""How long to wait after a failure."""

from collections.abc import Callable


def full_jitter(failures: int, *, base: float, cap: float, rand: Callable[[], float]) -> float:
    """Seconds to wait after `failures` earlier failures: anything from 0 to min(cap, base * 2**failures).

    `rand` gives floats in [0, 1). The whole range is drawn from, so that clients that failed together come back apart.
    """
    return rand() * min(cap, base * 2.0 ** min(failures, 64))
