"""Tasks that run for as long as an exit stack is open."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any


class TaskExitStack(AsyncExitStack):
    """An exit stack that also runs things until it is closed."""

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run until closed; then it is cancelled, and waited for."""
        task = asyncio.ensure_future(work)

        async def end() -> None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        self.push_async_callback(end)
