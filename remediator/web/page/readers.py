"""Who may read the page: the bearer of a token of the cluster whose user may get noderemediations.

The API server says whose a token is, and what they may. Its answer counts for half a minute, so that a reader who loads
many pages asks it once; of what it refuses nothing is kept but that.
"""

import asyncio
import hashlib
from enum import Enum
from typing import Protocol

import structlog

from remediator.clock import Clock
from remediator.core import names
from remediator.kube.api.access_reviews import ACCESS_REVIEW, TOKEN_REVIEW, access_review, token_review
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client

log = structlog.get_logger()
COUNTS_SECONDS = 30.0
MOST_KEPT, AT_ONCE, MOST_WAITING = 256, 4, 32
LONGEST_TOKEN = 3500  # a browser keeps a cookie of 4096 bytes with its name and what it is for


class Entry(Enum):
    """What becomes of a request."""

    MAY = "may"
    NOT_SIGNED_IN = "not signed in"
    FORBIDDEN = "forbidden"
    LATER = "later"


class Readers(Protocol):
    """Who may read."""

    async def entry(self, token: str) -> Entry:
        """What becomes of a request with this token; "" for none."""


class Everybody:
    """All on this machine, for trying out."""

    async def entry(self, token: str) -> Entry:
        """They may."""
        return Entry.MAY


class TokenReaders:
    """Those whom the API server knows by their tokens."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._kept: dict[bytes, tuple[float, Entry]] = {}  # by the hash of a token, oldest first
        self._asked: dict[bytes, asyncio.Task[Entry]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._failure = ""

    async def entry(self, token: str) -> Entry:
        """Asked once for all who show the same token meanwhile."""
        if not token or len(token) > LONGEST_TOKEN or not token.isascii() or not token.isprintable():
            return Entry.NOT_SIGNED_IN
        key = hashlib.sha256(token.encode()).digest()
        until, entry = self._kept.get(key, (0.0, Entry.LATER))
        if self._clock.monotonic() < until:
            return entry
        if key not in self._asked:
            if len(self._asked) >= MOST_WAITING:
                return Entry.LATER
            self._asked[key] = asyncio.create_task(self._ask(key, token))
        return await asyncio.shield(self._asked[key])

    async def _ask(self, key: bytes, token: str) -> Entry:
        try:
            async with self._turns:
                entry = await self._review(token)
        except (errors.ApiError, OSError, TimeoutError) as error:
            self._tell(error)
            return Entry.LATER
        finally:
            del self._asked[key]
        self._failure = ""
        if entry is not Entry.NOT_SIGNED_IN:  # such tokens have no end, and would drive out the others
            self._keep(key, entry)
        return entry

    async def _review(self, token: str) -> Entry:
        known = (await self._client.create(TOKEN_REVIEW, token_review(token))).status
        if not known.authenticated:
            return Entry.NOT_SIGNED_IN
        asked = access_review(known.user, "get", names.GROUP, "noderemediations")
        allowed = (await self._client.create(ACCESS_REVIEW, asked)).status.allowed
        return Entry.MAY if allowed else Entry.FORBIDDEN

    def _keep(self, key: bytes, entry: Entry) -> None:
        self._kept.pop(key, None)
        self._kept[key] = (self._clock.monotonic() + COUNTS_SECONDS, entry)
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def _tell(self, error: Exception) -> None:
        """Once for each reason, and never with a token in it."""
        failure = type(error).__name__
        if failure != self._failure:
            remedy = "kubectl apply -k deploy/page" if isinstance(error, errors.Forbidden) else ""
            log.error("nobody can sign in to the page", error=failure, remedy=remedy)
        self._failure = failure
