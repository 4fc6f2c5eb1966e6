"""How one process reaches GitHub, in virtual time: by seed, one call after the other."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from random import Random
from typing import Any

from remediator.clock import Clock
from remediator.tickets.channels.base import ChannelError
from remediator.tickets.channels.github import Credentials, GitHub
from remediator_sim.github.connection import connected
from remediator_sim.github.dispatch import Reply
from remediator_sim.simulation.clock import now
from remediator_sim.simulation.hub import Hub
from remediator_sim.simulation.wire import WireFault

LEAST, MORE = 0.05, 0.3  # seconds for one way


class Line(Executor):
    """Runs what PyGithub is asked for. All requests of one call reach GitHub at one instant, and its answer comes later
    by what each of them takes. `die` is called where a planned fault kills the process.
    """

    def __init__(self, hub: Hub, chance: Random, die: Callable[[], None]) -> None:
        self._hub, self._chance, self._die = hub, chance, die
        self.dead = False
        self.faults: list[WireFault] = []
        self._waiting: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._busy, self._seconds, self._spacing = False, 0.0, 0.0

    def channel(self, url: str, credentials: Credentials, clock: Clock, *, spacing: float) -> GitHub:
        """The shipped channel over this line, which keeps the spacing: PyGithub would by the clock of this machine."""
        self._spacing = spacing
        with connected(self):
            return GitHub(url, credentials, clock, spacing=0.0, worker=self)

    def kill(self) -> None:
        """From now on nothing goes out and nothing comes in."""
        self.dead = True
        self._waiting.clear()

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        """See Executor. The future is one of the running loop: it is awaited there, and its order is fixed."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((future, partial(work, *args, **named)))
        if not self._busy:
            self._next()
        return future

    def _next(self) -> None:
        self._busy = bool(self._waiting)
        if self._waiting:
            asyncio.get_running_loop().call_later(self._travel(), self._work, *self._waiting.popleft())

    def _work(self, future: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        if self.dead:
            return
        self._seconds = 0.0
        answer = error = None
        if not future.cancelled():
            try:
                answer = work()
            except ChannelError as failure:
                error = failure
        asyncio.get_running_loop().call_later(self._seconds, self._deliver, future, answer, error)

    def _deliver(self, future: asyncio.Future[Any], answer: Any, error: ChannelError | None) -> None:
        if self.dead:
            return
        if not future.done():
            future.set_exception(error) if error else future.set_result(answer)
        self._next()

    # --- one request -------------------------------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """See connection.GithubAccess."""
        self._seconds += seconds

    def carry(self, method: str, url: str, headers: Mapping[str, str], raw: bytes) -> Reply | None:
        """See connection.GithubAccess."""
        self._seconds += self._travel() + (self._spacing if method != "GET" else self._spacing / 4)
        fault = self._meet(method, url)
        if fault == "die-before":
            self._die()
        if self.dead or self._hub.away:
            return None
        self._seconds += self._hub.slow
        reply = self._hub.github.serve(method, url, headers, raw)
        if method != "GET":
            self._hub.look()
        if fault == "die-after":
            self._die()
        return reply

    def _meet(self, method: str, url: str) -> str:
        fault = next(
            (planned for planned in self.faults if planned.until >= now() and planned.matches(method, url)), None
        )
        if fault is None:
            return ""
        fault.left -= 1
        return fault.what

    def _travel(self) -> float:
        return LEAST + MORE * self._chance.random()
