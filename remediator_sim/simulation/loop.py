"""An event loop whose time is virtual, and whose order is the same in every run."""

import asyncio
import contextvars
import selectors
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Callback = Callable[..., object]


class Process:
    """What can be stopped and go on later, as by SIGSTOP: all that runs in its context waits meanwhile."""

    def __init__(self, name: str) -> None:
        self.name, self.frozen = name, False
        self.waiting: list[asyncio.Handle] = []

    def freeze(self) -> None:
        """Run nothing of it from now on."""
        self.frozen = True

    def thaw(self, loop: "VirtualLoop") -> None:
        """Run what has become due meanwhile, in its order."""
        self.frozen = False
        waiting, self.waiting = self.waiting, []
        for handle in waiting:
            if not handle.cancelled():
                loop.requeue(handle)


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class NumberedTask(asyncio.Task[Any]):
    """A task that is hashed by its number: a set of such tasks has the same order in every run."""

    def __init__(self, coro: Any, *, loop: "VirtualLoop", context: contextvars.Context | None = None) -> None:
        self._number = loop.number()
        super().__init__(coro, loop=loop, context=context, name=f"task {self._number}")

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class _TimeSelector(selectors.SelectSelector):
    """Nothing ever arrives from outside: a wait is over at once, and moves the time on by as long as it would take."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See BaseSelector. Raises RuntimeError where the wait would have no end."""
        if timeout is None:
            raise RuntimeError("nothing is left that could ever happen")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time begins at 0 and moves to the next timer as soon as nothing is left to do."""

    def __init__(self) -> None:
        self._time = _TimeSelector()
        super().__init__(self._time)
        self._clock_resolution = 1e-6  # sums of waits are not exact
        self._tasks = 0
        self.set_task_factory(_numbered)

    def number(self) -> int:
        """One more than the last time."""
        self._tasks += 1
        return self._tasks

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._time.now

    def call_soon(  # type: ignore[override]
        self, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """See AbstractEventLoop; what belongs to a frozen process waits."""
        context = contextvars.copy_context() if context is None else context
        process = context.get(PROCESS)
        if process is None or not process.frozen:
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        process.waiting.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """See AbstractEventLoop; a timer of a frozen process rings when it goes on."""
        context = contextvars.copy_context() if context is None else context
        process = context.get(PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        timer: list[asyncio.TimerHandle] = []
        timer.append(super().call_at(when, self._ring, process, timer, callback, args, context=context))
        return timer[0]

    def _ring(
        self, process: Process, timer: list[asyncio.TimerHandle], callback: Callback, args: tuple[Any, ...]
    ) -> None:
        """The time of a timer has come; one that is cancelled while it waits for its process never rings."""
        if process.frozen:
            again = (process, timer, callback, args)
            process.waiting.append(asyncio.Handle(self._ring, again, self, contextvars.copy_context()))
        elif not timer[0].cancelled():
            callback(*args)

    def requeue(self, handle: asyncio.Handle) -> None:
        """Run a handle that waited."""
        super().call_soon(handle._run)


def _numbered(
    loop: asyncio.AbstractEventLoop,
    coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
    context: contextvars.Context | None = None,
) -> "asyncio.Future[T]":
    assert isinstance(loop, VirtualLoop)
    return NumberedTask(coro, loop=loop, context=context)


def run(main: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that runs in a loop of its own. Tasks that are left are cancelled."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
