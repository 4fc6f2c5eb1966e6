"""How much may be written, and when GitHub may be asked again. Times are seconds on one monotonic clock."""

from collections import deque

from remediator.clock import Clock
from remediator.tickets.channels.base import ChannelError, Later, Refused
from remediator.tickets.channels.github.errors import FailureTime, GithubCall, limited, translate

CREATIONS = ((80, 60.0), (500, 3600.0))  # GitHub's documented content creation: 80 a minute, 500 an hour
SPARED = 0.2


class RateLimit:
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


class Silence:
    """Until when GitHub asked us to be silent, by its own names of the limits: core, search, ..."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def keep(self, resource: str, seconds: float, now: float) -> None:
        """GitHub said: not for so many seconds."""
        self._until[resource] = max(self._until.get(resource, 0.0), now + seconds)

    def wait(self, resource: str, now: float) -> float:
        """Seconds that are left of that."""
        return max(0.0, self._until.get(resource, 0.0) - now)


class RateLimits:
    """All limits of one token. Not for several threads."""

    def __init__(self, clock: Clock, creations: tuple[tuple[int, float], ...] = CREATIONS) -> None:
        self._clock = clock
        self._creations, self._silence = RateLimit(creations), Silence()
        self._in_a_row = self._failures = 0

    def admit(self, call: GithubCall, resource: str = "") -> None:
        """Raises Later, without a word to GitHub, while it asked for silence or enough was created."""
        now, resource = self._clock.monotonic(), resource or call.resource
        if wait := self._silence.wait(resource, now):
            raise Later(f"could not {call.what}: GitHub's rate limit ({resource}) is spent for {wait:.0f} s more", wait)
        if call.once and (wait := self._creations.wait(now)):
            raise Later(f"could not {call.what}: enough issues and comments were made; more in {wait:.0f} s", wait)

    def spare(self, call: GithubCall, left: int, quota: int, reset: float) -> None:
        """Raises Later while less than a fifth of a quota is left, which its reset renews: that is for issues."""
        wait = reset - self._clock.wall().timestamp()
        if 0 <= left < quota * SPARED and wait > 0:
            raise Later(f"did not {call.what}: {left} of {quota} requests are left, for {wait:.0f} s", wait)

    def count_creation(self) -> None:
        """An issue or a comment is about to be sent."""
        self._creations.take(self._clock.monotonic())

    def answered(self) -> None:
        """GitHub did what was asked."""
        self._in_a_row = self._failures = 0

    def failed(self, error: Exception, call: GithubCall) -> ChannelError:
        """An error in our words; where it names a limit, that is kept from now on."""
        failure = translate(error, call, FailureTime(self._clock.wall().timestamp(), self._in_a_row, self._failures))
        if (resource := limited(error)) and isinstance(failure, Later):
            self._in_a_row += 1
            self._silence.keep(resource, failure.after, self._clock.monotonic())
        else:
            self._failures = 0 if isinstance(failure, Refused) else self._failures + 1
        return failure
