"""What a connection sends before somebody is let in on it: in small pieces, one in each turn of the loop, and not much.

A head, and chunks of one byte each, take so long to read as there are bytes: so a turn never reads more of a stranger
than a piece, and callers are answered between two of them.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

PIECE_BYTES = 2**11  # that a turn hands on
MOST_BYTES = 2**16  # that one may send before it is let in: a head with a large token has a quarter of it
HELD_BYTES = 2**14  # that are read at once, and that TLS may hold unopened
DROPPED_BYTES, DROPPED_SECONDS = 2**20, 1.0  # of what comes after an answer, and is looked at by nobody


class StrangerReader(asyncio.Protocol):
    """Between a connection and the handler of its requests until `is_known()`; `refuse` ends who sends too much."""

    def __init__(
        self,
        transport: asyncio.Transport,
        handler: asyncio.Protocol,
        is_known: Callable[[], bool],
        refuse: Callable[[], None],
    ) -> None:
        self._transport, self._handler = transport, handler
        self._is_known, self._refuse = is_known, refuse
        self._waiting = bytearray()  # read, and not handed on
        self._sent = 0
        self._turn: asyncio.Handle | None = None
        self._left: int | None = None  # to come before it has been dropped; None: nothing is dropped
        self._dropped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(self, early: bytes) -> None:
        """Take the connection, with what it has sent already."""
        hold_at_most(self._transport, HELD_BYTES)
        self._transport.set_protocol(self)
        self._handler.connection_made(self._transport)
        if early:
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        """The first piece goes on at once; nothing more is read before all of it has."""
        if self._left is not None:
            self._drop(len(data))
            return
        self._waiting += data
        if self._turn is None and not self._transport.is_closing():
            self._transport.pause_reading()
            self._hand_on()

    async def drop(self, left: int) -> None:
        """Take what is still sent after an answer, so many bytes, and look at none of it.

        Where a connection ends with something unread, its other side may lose the answer.
        """
        self._left = min(left, DROPPED_BYTES)
        if self._turn is not None:
            self._turn.cancel()
        waiting = len(self._waiting)
        self._waiting.clear()
        self._drop(waiting)
        if not self._dropped.done() and not self._transport.is_closing():
            self._transport.resume_reading()
            with suppress(TimeoutError):
                async with asyncio.timeout(DROPPED_SECONDS):
                    await self._dropped

    def _drop(self, count: int) -> None:
        assert self._left is not None
        self._left -= count
        if self._left <= 0 and not self._dropped.done():
            self._dropped.set_result(None)

    def eof_received(self) -> bool | None:
        """Nothing more comes."""
        return self._handler.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended."""
        self._waiting.clear()
        self._handler.connection_lost(error)

    def pause_writing(self) -> None:
        """Too much of an answer is not taken."""
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """It is."""
        self._handler.resume_writing()

    def _hand_on(self) -> None:
        """One piece; all, once the sender is known."""
        self._turn = None
        if self._transport.is_closing():
            self._waiting.clear()
        elif self._is_known():
            self._give_up()
        elif self._sent >= MOST_BYTES:
            self._waiting.clear()
            self._refuse()
        else:
            self._hand_on_piece()

    def _hand_on_piece(self) -> None:
        piece = bytes(self._waiting[:PIECE_BYTES])
        del self._waiting[:PIECE_BYTES]
        self._sent += len(piece)
        self._handler.data_received(piece)
        if self._waiting:
            self._turn = asyncio.get_running_loop().call_soon(self._hand_on)
        elif not self._transport.is_closing():
            self._transport.resume_reading()

    def _give_up(self) -> None:
        """The handler has the connection to itself from now on."""
        data = bytes(self._waiting)
        self._waiting.clear()
        hold_at_most(self._transport, None)
        self._transport.set_protocol(self._handler)
        self._transport.resume_reading()
        if data:
            self._handler.data_received(data)


def hold_at_most(transport: Any, most: int | None) -> None:
    """How much a turn reads, and TLS holds unopened; None: what asyncio takes by itself, which has no other way."""
    if hasattr(transport, "set_read_buffer_limits"):
        transport.set_read_buffer_limits(most)
    elif most is not None:
        transport.max_size = most
    elif "max_size" in vars(transport):
        del transport.max_size
