"""The mark `looptime`: the time of a test's loop passes as soon as there is nothing else to do. Options are looptime's.

looptime's own plugin makes every loop ready for that, also where no mark asks for it, looks for it at each fixture of
each test, and lets each turn of a loop ask the kernel twice: 2 % of a whole run. pyproject.toml leaves it out.
"""

import asyncio
from collections.abc import Generator
from typing import Any

import looptime
import pytest
import pytest_asyncio

MARK = "looptime"


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """After the fixtures, whose time is that of the clock."""
    marks = list(pyfuncitem.iter_markers(MARK))
    if not (marks and pytest_asyncio.is_async_test(pyfuncitem)):
        return (yield)
    loop = asyncio.get_event_loop_policy().get_event_loop()
    assert isinstance(loop, asyncio.BaseEventLoop)
    virtual = looptime.patch_event_loop(loop, _enabled=False, **options(marks))
    with virtual.looptime_enabled():
        return (yield)


def options(marks: list[pytest.Mark]) -> dict[str, Any]:
    """What the marks of a test, the nearest first, say together."""
    return {name: value for mark in reversed(marks) for name, value in mark.kwargs.items()}
