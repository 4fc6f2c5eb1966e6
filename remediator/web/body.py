"""Bodies of requests: how large one may be, how long it may take, and how much of all of them is held at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from io import BytesIO

from aiohttp import web

from remediator.metrics import CALLS_REFUSED


class Why(StrEnum):
    """Why a body was not taken."""

    TOO_LARGE = "too-large"
    TOO_SLOW = "too-slow"
    FULL = "full"


class NotTaken(Exception):
    """The body was not taken; no more of it is read."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.value)
        self.why = why


class Bodies:
    """Of one endpoint. `most` bytes of one, `room` bytes of all that are held, `seconds` until one is there."""

    def __init__(self, endpoint: str, most: int, room: int, seconds: float) -> None:
        self.most, self.room, self.seconds, self.held = most, room, seconds, 0
        self._endpoint = endpoint

    @asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytes]:
        """The whole body, in its only copy, which counts as held until the block is left. Raises NotTaken.

        What has arrived counts, not what is announced: who announces much and sends nothing takes no room.
        """
        body = BytesIO()
        try:
            await self._gather(request, body)
            yield body.getvalue()
        except NotTaken as refused:
            CALLS_REFUSED.labels(self._endpoint, refused.why.value).inc()
            raise
        finally:
            self.held -= body.tell()

    async def _gather(self, request: web.Request, body: BytesIO) -> None:
        if (request.content_length or 0) > self.most:
            raise NotTaken(Why.TOO_LARGE)
        try:
            async with asyncio.timeout(self.seconds):
                async for chunk in request.content.iter_any():
                    if body.tell() + len(chunk) > self.most:
                        raise NotTaken(Why.TOO_LARGE)
                    if self.held + len(chunk) > self.room:
                        raise NotTaken(Why.FULL)
                    self.held += len(chunk)
                    body.write(chunk)
        except TimeoutError:
            raise NotTaken(Why.TOO_SLOW) from None
