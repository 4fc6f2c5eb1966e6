"""What tests and simulations make go wrong: refusals, delays, lost answers, cut, silent and forgetful watches."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from remediator.kube.wire.errors import Unavailable
from remediator_sim.apiserver.status import Failure


class Asked(Protocol):
    """What a predicate may look at."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...


When = Callable[[Asked], bool]


class Severed(Unavailable):
    """The connection breaks without an answer, or in the middle of a stream."""

    def __init__(self) -> None:
        super().__init__(0, "", "the connection broke")


class _Delay(NamedTuple):
    seconds: float


class _Lost(NamedTuple):
    pass


_Effect = Failure | _Delay | _Lost


@dataclass(slots=True)
class _Plan:
    effect: _Effect
    times: int
    when: When


@dataclass(eq=False, slots=True)
class Stream:
    """An open watch as faults see it; `wake` is set when something about it changes."""

    wake: asyncio.Event
    silent: bool = False
    cut: bool = False

    def check(self) -> None:
        """Raise Severed where the stream was cut."""
        if self.cut:
            raise Severed


def always(asked: Asked) -> bool:
    """The predicate that holds for every request."""
    return True


@dataclass(eq=False, slots=True)
class Faults:
    """One server's faults. Each call takes effect at once; `times` counts the requests that it still hits."""

    compact: Callable[[], None]
    _plans: list[_Plan] = field(default_factory=list)
    _streams: dict[Stream, None] = field(default_factory=dict)
    _silent: bool = False

    def refuse(
        self, code: int, *, times: int = 1, when: When = always, reason: str = "", after: int = 0, message: str = ""
    ) -> None:
        """Answer the next `times` matching requests with `code`, undone; `after` is their Retry-After in seconds."""
        message = message or f"refused by a planned fault ({code})"
        self._plans.append(_Plan(Failure(code, reason or _REASONS.get(code, ""), message, None, after), times, when))

    def delay(self, seconds: float, *, times: int = 1, when: When = always) -> None:
        """Hold the next matching requests back before they are looked at."""
        self._plans.append(_Plan(_Delay(seconds), times, when))

    def lose(self, *, times: int = 1, when: When = always) -> None:
        """Carry the next matching requests out, and break the connection instead of answering."""
        self._plans.append(_Plan(_Lost(), times, when))

    def cut_watches(self) -> None:
        """Break every open watch."""
        for stream in self._streams:
            stream.cut = True
            stream.wake.set()

    def drop_history(self) -> None:
        """Forget every old version: watches and pages from there get 410."""
        self.compact()

    def silence(self, *, silent: bool = True) -> None:
        """Let all watches, those to come included, stay open and say nothing; False lets them speak again."""
        self._silent = silent
        for stream in self._streams:
            stream.silent = silent
            stream.wake.set()

    def clear(self) -> None:
        """Forget what is planned, and let silent watches speak."""
        self._plans.clear()
        self.silence(silent=False)

    async def meet(self, asked: Asked) -> bool:
        """Let a request meet its faults before it is served: the answer is whether its reply gets lost.

        Raises the Failure that is planned for it.
        """
        if not self._plans:
            return False
        lost = False
        for plan in [plan for plan in self._plans if plan.times > 0 and plan.when(asked)]:
            plan.times -= 1
            if isinstance(plan.effect, _Delay):
                await asyncio.sleep(plan.effect.seconds)
            elif isinstance(plan.effect, Failure):
                self._spend()
                raise plan.effect
            else:
                lost = True
        self._spend()
        return lost

    def _spend(self) -> None:
        self._plans[:] = [plan for plan in self._plans if plan.times > 0]

    def join(self, stream: Stream) -> None:
        """Take an open watch in."""
        stream.silent = self._silent
        self._streams[stream] = None

    def leave(self, stream: Stream) -> None:
        """Let a watch go that is closed."""
        self._streams.pop(stream, None)


_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
