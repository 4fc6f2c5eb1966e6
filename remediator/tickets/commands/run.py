"""Comments are read, their commands are carried out, and each comment is answered once; by the leader."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from remediator.clock import Clock
from remediator.core.ticket import IssueRef, Ticket
from remediator.kube.runtime.leader import Leader, LeaderQueue
from remediator.kube.wire.client import Client
from remediator.kube.wire.errors import ApiError
from remediator.tickets import metrics
from remediator.tickets.channels.base import Channel, ChannelError, Later, Refused, Unsure
from remediator.tickets.channels.inbox import Comment, Inbox
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.routes import Routes
from remediator.tickets.commands.act import Acting, NotNow
from remediator.tickets.commands.answers import (
    SHOWN_BY,
    answer,
    is_owner,
    refusal,
    unanswered,
    wanted,
    was_refused,
    window,
)
from remediator.tickets.commands.parse import parse
from remediator.tickets.reconcile.cache import TicketCache

EVERY, SOON = 30.0, 1.0  # seconds between two looks into a repository; where something changed while we acted
LAG = timedelta(minutes=1)  # for so long a comment of which GitHub told is looked for every few seconds
LOOK_AGAIN = 3.0
HOLDS = ""  # the key under which holds are ended, beside the names of repositories
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Thread:
    """One issue of ours with its newest comments; `us` is our own login."""

    ticket: Ticket
    issue: IssueRef
    us: str
    comments: Sequence[Comment]


class Commands:
    """What people say below issues, repository by repository. `queue` is served where `leader` leads.

    Args:
        channel: writes answers; may refuse to, where everybody could read them.
        inbox: the same tracker, for all else.
    """

    def __init__(
        self,
        client: Client,
        channel: Channel,
        inbox: Inbox,
        cache: TicketCache,
        routes: Routes | LiveRoutes,
        leader: Leader,
        clock: Clock,
    ) -> None:
        self._channel, self._inbox, self._cache, self._clock, self._routes = channel, inbox, cache, clock, routes
        self._acting = Acting(client, channel, inbox, cache, lambda: leader.is_leader)
        # What needs no answer any more, and since when: comments, and people without write access by issue.
        self._answered: dict[int | tuple[IssueRef, str], datetime] = {}
        self._us: dict[IssueRef, str] = {}
        self._hinted: dict[int, datetime] = {}  # comments that no list has shown yet, and when we were told of them
        cache.tickets.on_change(self._on_ticket)
        self.queue: LeaderQueue[str] = LeaderQueue(
            "commands",
            self.serve,
            lambda: (HOLDS, *routes.newest.commanded),
            workers=1,
            informers=lambda: cache.informers,
            essential=False,
            began=self._answered.clear,
        )

    async def serve(self, key: str) -> float | None:
        """One pass over a repository, or over holds that may be over; seconds until the next, None for none."""
        now = self._clock.now()
        if key == HOLDS:
            await self._acting.end_holds(now)
            return EVERY
        if key not in self._routes.current(now).commanded:
            return None
        try:
            threads = await self._threads(key, now)
        except ChannelError as error:
            log.warning("commands not read", repository=key, message=error.message)
            return max(EVERY, error.after) if isinstance(error, Later) else EVERY
        done = [await self._served(thread, now) for thread in threads]
        if not all(done):
            return SOON
        return LOOK_AGAIN if self._hinted else EVERY

    def _on_ticket(self, key: str, old: Ticket | None, new: Ticket | None) -> None:
        """A comment of which GitHub has told: its repository is read at once."""
        before = old.hinted if old else 0
        if new is not None and new.issue is not None and new.hinted > before and self.queue.leading:
            self._hinted[new.hinted] = self._clock.now()
            commanded = self._routes.newest.commanded
            self.queue.add(*(name for name in commanded if name.lower() == new.issue.repository.lower()))

    async def _threads(self, repository: str, now: datetime) -> list[Thread]:
        """Our issues with comments that may want an answer."""
        by_issue: defaultdict[int, list[Comment]] = defaultdict(list)
        for comment in await self._inbox.comments(repository, window(now)):
            by_issue[comment.issue].append(comment)
            self._hinted.pop(comment.id, None)
        self._hinted = {comment: at for comment, at in self._hinted.items() if now - at < LAG}
        self._answered = {what: at for what, at in self._answered.items() if at >= window(now)}
        threads = []
        for ticket in self._cache.tickets:
            issue = ticket.issue
            if issue is None or issue.repository.lower() != repository.lower() or issue.number not in by_issue:
                continue
            comments = by_issue[issue.number]
            if any(comment.id not in self._answered for comment in wanted(comments, now)):
                threads.append(Thread(ticket, issue, await self._opened_by(issue), comments))
        return threads

    async def _opened_by(self, issue: IssueRef) -> str:
        if issue not in self._us:
            self._us[issue] = await self._inbox.opened_by(issue)
        return self._us[issue]

    async def _served(self, thread: Thread, now: datetime) -> bool:
        """Whether nothing calls for another look at once. What cannot be answered now holds no other comment up."""
        fresh = (comment for comment in wanted(thread.comments, now) if comment.id not in self._answered)
        for comment in unanswered(fresh, thread.comments, thread.us):
            try:
                if await self._obeyed(thread, comment, now):
                    self._answered[comment.id] = comment.created
            except NotNow:
                return False
            except (ChannelError, ApiError) as error:
                log.warning("command not answered", comment=comment.url, message=error.message)
        return True

    async def _obeyed(self, thread: Thread, comment: Comment, now: datetime) -> bool:
        """Carry one comment out and answer it; whether nothing is left to do about it."""
        if is_owner(thread.ticket, comment) or await self._inbox.may_write(comment):
            decided = [
                (command, await self._acting.act(thread.ticket, thread.issue, comment, number, command))
                for number, command in enumerate(parse(comment.text))
            ]
            return await self._answer(thread, comment, answer(comment, decided), now)
        metrics.COMMANDS.labels("", "refused").inc()
        log.warning("command refused: no write access", author=comment.author, comment=comment.url)
        who = thread.issue, comment.author
        if who in self._answered or was_refused(comment.author, thread.comments, thread.us):
            return True
        self._answered[who] = comment.created
        return await self._answer(thread, comment, refusal(comment), now)

    async def _answer(self, thread: Thread, comment: Comment, text: str, now: datetime) -> bool:
        """Answer once: whoever reacts first answers; who comes later waits until that answer would have been seen."""
        first = await self._inbox.react(comment)
        if not first and now - comment.created < SHOWN_BY:
            return False
        try:
            await self._channel.comment(thread.issue, text)
        except Unsure:
            return False
        except Refused as error:
            log.warning("command not answered", comment=comment.url, message=error.message)
        return True
