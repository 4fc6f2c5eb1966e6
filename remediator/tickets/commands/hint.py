"""What GitHub posts when somebody has commented: a hint to read the comments of that repository at once.

Any replica may be told; the one that leads reads. So the hint stands on the Ticket, whose watch wakes the leader.
Nothing that was posted is believed but that: who wrote what is read from GitHub.
"""

from enum import Enum

import msgspec

from remediator.core import names
from remediator.core.ticket import Ticket
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets.reconcile.cache import TicketCache


class Heard(Enum):
    """What became of a post."""

    RECEIVED = "received"
    IGNORED = "ignored"  # of another event, or below an issue that is not ours, or known already
    BAD = "bad"
    LATER = "later"


class _Repository(msgspec.Struct):
    full_name: str


class _Numbered(msgspec.Struct):
    number: int


class _Identified(msgspec.Struct):
    id: int


class Posted(msgspec.Struct):
    """Only what we read."""

    action: str
    repository: _Repository
    issue: _Numbered
    comment: _Identified


_DECODER = msgspec.json.Decoder(Posted)


class Hints:
    """Takes posts on every replica."""

    def __init__(self, client: Client, cache: TicketCache) -> None:
        self._client, self._cache = client, cache

    async def hear(self, event: str, body: bytes) -> tuple[Heard, str]:
        """Pass one post on. The same one twice, or an older one again, does nothing."""
        if event != "issue_comment":
            return Heard.IGNORED, f"{event or 'no event'}: only issue_comment is listened to"
        try:
            posted = _DECODER.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Heard.BAD, f"no issue_comment of GitHub: {error}; set the content type to application/json"
        ticket = self._ticket(posted)
        if posted.action != "created" or ticket is None or posted.comment.id <= ticket.hinted:
            return Heard.IGNORED, "nothing new below an issue of ours"
        try:
            await self._client.patch(api.TICKET, ticket.name, encode.annotations({names.HINT: str(posted.comment.id)}))
        except errors.ApiError as failure:
            return Heard.LATER, f"not passed on: {failure}; comments are read all the same"
        return Heard.RECEIVED, "the comments are read now"

    def _ticket(self, posted: Posted) -> Ticket | None:
        where = posted.repository.full_name.lower(), posted.issue.number
        issues = ((ticket, ticket.issue) for ticket in self._cache.tickets)
        return next(
            (ticket for ticket, issue in issues if issue and (issue.repository.lower(), issue.number) == where), None
        )
