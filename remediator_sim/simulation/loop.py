"""An event loop whose time is virtual, and whose order is the same in every run."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from concurrent.futures import Executor
from heapq import heappop, heappush
from typing import Any, TypeVar

T = TypeVar("T")
Callback = Callable[..., object]
Timer = tuple[float, int, asyncio.TimerHandle]  # when, its number, what rings


class VirtualHandle(asyncio.TimerHandle):
    """What runs in a turn of the loop: the shipped one, without what serves asyncio's debug mode alone."""

    __slots__ = ()
    _repr = _source_traceback = None

    def __init__(
        self,
        when: float,
        callback: Callback,
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._callback, self._args, self._when, self._cancelled = callback, args, when, False

    def cancel(self) -> None:
        """See asyncio.Handle."""
        self._cancelled = True
        self._callback, self._args = _nothing, ()


class VirtualProcess:
    """What runs in one context, turn by turn: between two turns lies every await.

    It can be stopped and go on later, as by SIGSTOP, and die at a turn that is chosen.
    """

    def __init__(self, name: str) -> None:
        self.name, self.frozen = name, False
        self._waiting: list[asyncio.Handle] = []
        self._left, self._die = 0, _nothing

    def takes(self, handle: asyncio.Handle) -> bool:
        """Whether a turn of it runs now; one that comes while it is frozen waits."""
        if self.frozen:
            self._waiting.append(handle)
            return False
        if self._left > 0:
            self._left -= 1
            if self._left == 0:
                self._die()
        return True

    def die_at(self, turn: int, die: Callable[[], None]) -> None:
        """Call `die` just before this turn, counted from now on: 1 is the next one."""
        self._left, self._die = turn, die

    def freeze(self) -> None:
        """Run nothing of it from now on."""
        self.frozen = True

    def thaw(self, loop: "VirtualLoop") -> None:
        """Run what has become due meanwhile, in its order."""
        self.frozen = False
        loop.requeue(self._waiting)
        self._waiting = []

    def forget(self) -> None:
        """Never run what waits, and plan no end."""
        self._waiting, self._left = [], 0


def _nothing() -> None:
    """No end is planned."""


PROCESS: contextvars.ContextVar[VirtualProcess | None] = contextvars.ContextVar("process", default=None)


class NumberedTask(asyncio.Task[Any]):
    """A task that is hashed by its number: a set of such tasks has the same order in every run."""

    def __init__(self, coro: Any, *, loop: "VirtualLoop", context: contextvars.Context | None = None) -> None:
        self._number = loop.number()
        super().__init__(coro, loop=loop, context=context, name=f"task {self._number}")

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(asyncio.BaseEventLoop):
    """Time begins at 0 and moves to the next timer as soon as nothing is left to do. Nothing arrives from outside."""

    _ready: deque[asyncio.Handle]  # of BaseEventLoop
    _stopping: bool
    wall = None  # whose time passes otherwise says what a clock shows that is right, see clock.py
    get_debug = staticmethod(bool)  # False: every future and every task asks

    def __init__(self) -> None:
        super().__init__()
        self._now, self._timers, self._made = 0.0, list[Timer](), 0
        self.set_task_factory(_numbered)

    def number(self) -> int:
        """One more than the last time."""
        self._made += 1
        return self._made

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now

    def call_soon(  # type: ignore[override]
        self, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """See AbstractEventLoop."""
        handle = VirtualHandle(0.0, callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """See AbstractEventLoop."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """See AbstractEventLoop; timers of one time ring in the order in which they were made."""
        handle = VirtualHandle(when, callback, args, context)
        self._made += 1
        heappush(self._timers, (when, self._made, handle))
        return handle

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """See AbstractEventLoop: the default executor has no threads, and its work takes no time."""
        if executor is not None:
            return super().run_in_executor(executor, func, *args)
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def requeue(self, handles: Iterable[asyncio.Handle]) -> None:
        """Run what waited for its process."""
        self._ready.extend(handles)

    def _run_once(self) -> None:
        """See BaseEventLoop: here all turns until the loop is stopped. Raises RuntimeError where a wait has no end."""
        ready, timers = self._ready, self._timers
        while not self._stopping:
            while timers and timers[0][2]._cancelled:
                heappop(timers)
            if not ready and not timers:
                raise RuntimeError("nothing is left that could ever happen")
            if not ready:
                self._now = max(self._now, timers[0][0])
            while timers and timers[0][0] <= self._now:
                ready.append(heappop(timers)[2])
            for _ in range(len(ready)):
                handle = ready.popleft()
                if handle._cancelled:
                    continue
                context = handle._context  # type: ignore[attr-defined]
                process = context.get(PROCESS)
                if process is None or process.takes(handle):
                    try:
                        context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
                    except (SystemExit, KeyboardInterrupt):
                        raise
                    except BaseException as error:
                        self.call_exception_handler({"message": f"Exception in {handle!r}", "exception": error})

    def _write_to_self(self) -> None:
        """Nobody has to wake a loop that never sleeps."""


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
