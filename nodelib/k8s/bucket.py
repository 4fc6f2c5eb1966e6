"""How fast a program may ask for things. Pure: the time is handed in."""


class Bucket:
    """Lets `rate` things through a second, and as many at once after a quiet second."""

    def __init__(self, rate: float, now: float):
        self._rate, self._most = rate, max(1.0, rate)
        self._tokens, self._at = self._most, now

    def take(self, now: float, count: int = 1) -> float:
        """Take so many tokens and return how many seconds to wait before using them."""
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate) - count
        self._at = now
        return max(0.0, -self._tokens / self._rate)
