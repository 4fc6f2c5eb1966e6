"""Who may read the page: the bearer of a token of the cluster for it, whose user may list what it shows.

The API server says whose a token is, and what they may. Its answer counts for half a minute and is asked for again
before that is over, so that a reader who loads many pages waits once. Tokens that nobody knows have no end: questions
about them are few, and hold up none about a token whose bearer was let in.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import structlog

from remediator.clock import Clock
from remediator.core import names
from remediator.kube.api.access_reviews import ACCESS_REVIEW, TOKEN_REVIEW, TokenUser, access_review, token_review
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client

log = structlog.get_logger()
AUDIENCE, OF_API_SERVER = "remediator-page", ""  # for whom a token is; one for the second is good for the whole API
SHOWN = ((names.GROUP, "noderemediations"), ("", "nodes"))
AGAIN_SECONDS, COUNTS_SECONDS = 20.0, 30.0  # after the first an answer is asked for again, and counts until the second
STRANGERS_A_SECOND = 10.0  # questions about tokens of strangers, all together
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


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What became of a token, and when that was asked."""

    entry: Entry
    at: float


@dataclass(slots=True)
class Rate:
    """So many a second; as many at once after a pause."""

    a_second: float
    left: float
    at: float

    def take(self, now: float) -> bool:
        """Whether one more may be asked now."""
        self.left = min(self.a_second, self.left + (now - self.at) * self.a_second)
        self.at = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


@dataclass(frozen=True, slots=True)
class Lane:
    """The questions about one sort of tokens: by the hash of the token, so many at once."""

    asked: dict[bytes, asyncio.Task[Entry]] = field(default_factory=dict)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


class TokenReaders:
    """Those whom the API server knows by tokens for one of these audiences."""

    def __init__(self, client: Client, clock: Clock, audiences: Sequence[str] = (AUDIENCE,)) -> None:
        self._client, self._clock, self._audiences = client, clock, audiences
        self._kept: dict[bytes, KeptAnswer] = {}  # by the hash of a token, oldest first
        self._readers, self._strangers = Lane(), Lane()
        self._rate = Rate(STRANGERS_A_SECOND, STRANGERS_A_SECOND, clock.monotonic())
        self._failure = ""

    async def entry(self, token: str) -> Entry:
        """Asked once for all who show the same token meanwhile."""
        if not token or len(token) > LONGEST_TOKEN or not token.isascii() or not token.isprintable():
            return Entry.NOT_SIGNED_IN
        key, now = hashlib.sha256(token.encode()).digest(), self._clock.monotonic()
        kept = self._kept.get(key)
        if kept is not None and now < kept.at + AGAIN_SECONDS:
            return kept.entry
        asked = self._question(key, token, kept, now)
        if kept is not None and now < kept.at + COUNTS_SECONDS:
            return kept.entry
        return Entry.LATER if asked is None else await asyncio.shield(asked)

    def _question(self, key: bytes, token: str, kept: KeptAnswer | None, now: float) -> asyncio.Task[Entry] | None:
        """The one under way, or a new one; None where strangers have asked enough."""
        reads = kept is not None and kept.entry is Entry.MAY
        lane = self._readers if reads else self._strangers
        if key not in lane.asked:
            if not reads and (len(lane.asked) >= MOST_WAITING or not self._rate.take(now)):
                return None
            lane.asked[key] = asyncio.create_task(self._ask(key, token, lane))
        return lane.asked[key]

    async def _ask(self, key: bytes, token: str, lane: Lane) -> Entry:
        try:
            async with lane.turns:
                at = self._clock.monotonic()
                entry = await self._review(token)
        except (errors.ApiError, OSError, TimeoutError) as error:
            self._tell(error)
            return Entry.LATER
        finally:
            del lane.asked[key]
        self._failure = ""
        self._keep(key, KeptAnswer(entry, at))
        return entry

    async def _review(self, token: str) -> Entry:
        user = await self._user(token)
        if user is None:
            return Entry.NOT_SIGNED_IN
        for group, resource in SHOWN:
            asked = access_review(user, "list", group, resource)
            if not (await self._client.create(ACCESS_REVIEW, asked)).status.allowed:
                return Entry.FORBIDDEN
        return Entry.MAY

    async def _user(self, token: str) -> TokenUser | None:
        """An authenticator that knows no audiences names none: its tokens count as those for the API server."""
        for audience in self._audiences:
            known = (await self._client.create(TOKEN_REVIEW, token_review(token, audience))).status
            if known.authenticated and (audience == OF_API_SERVER or audience in known.audiences):
                return known.user
        return None

    def _keep(self, key: bytes, answer: KeptAnswer) -> None:
        """What was refused goes first, so that nobody drives out who may; of nobody's tokens none is kept."""
        self._kept.pop(key, None)
        if answer.entry is not Entry.NOT_SIGNED_IN:
            self._kept[key] = answer
        while len(self._kept) > MOST_KEPT:
            refused = (known for known, kept in self._kept.items() if kept.entry is not Entry.MAY)
            del self._kept[next(refused, next(iter(self._kept)))]

    def _tell(self, error: Exception) -> None:
        """Once for each reason, and never with a token in it."""
        failure = type(error).__name__
        if failure != self._failure:
            remedy = "kubectl apply -k deploy/page" if isinstance(error, errors.Forbidden) else ""
            log.error("nobody can sign in to the page", error=failure, remedy=remedy)
        self._failure = failure
