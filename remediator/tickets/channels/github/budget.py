"""How much may be written, and when GitHub may be asked again. Times are seconds on one monotonic clock."""

from collections import deque

CREATIONS = ((80, 60.0), (500, 3600.0))  # GitHub's documented content creation: 80 a minute, 500 an hour


class Budget:
    """At most so many creations in any window: a sliding count, so that no window of GitHub's can hold more."""

    def __init__(self, windows: tuple[tuple[int, float], ...] = CREATIONS) -> None:
        self._windows = windows
        self._made: deque[float] = deque(maxlen=max(count for count, _ in windows))

    def wait(self, now: float) -> float:
        """Seconds until one more may be made; 0 when it may be now."""
        return max(self._wait(count, seconds, now) for count, seconds in self._windows)

    def _wait(self, count: int, seconds: float, now: float) -> float:
        if len(self._made) < count:
            return 0.0
        return max(0.0, self._made[-count] + seconds - now)

    def take(self, now: float) -> None:
        """Count one that is about to be sent, whatever comes of it."""
        self._made.append(now)


class Quiet:
    """Until when GitHub asked us to be silent, by its own names of the limits: core, search, ..."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def keep(self, resource: str, seconds: float, now: float) -> None:
        """GitHub said: not for so many seconds."""
        self._until[resource] = max(self._until.get(resource, 0.0), now + seconds)

    def wait(self, resource: str, now: float) -> float:
        """Seconds that are left of that."""
        return max(0.0, self._until.get(resource, 0.0) - now)
