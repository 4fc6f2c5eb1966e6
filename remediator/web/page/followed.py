"""A node or a case that somebody follows: what is shown of it is made once for all who follow it.

A view is made with a snapshot, so every two seconds at most, and only where its node or its case has changed since, or
10 seconds have passed: policies, budgets and the leader change what is said of it, too, and how long ago something was.
Who begins to follow has it made once more at most, as to load the page does. So 64 readers of 64 nodes cost 64 views in
10 seconds however much the fleet changes, and those of them that have changed; one after the other, with pauses as long
as each took. A case that is over is read from the API server to be shown: once, not every 10 seconds.
"""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable

from remediator.clock import Clock
from remediator.web.page.detail_view import CaseDetail, NodeView, tag
from remediator.web.page.snapshots import Snapshot
from remediator.web.page.stream import Follower

RENEWED = 10.0  # seconds after which a view is made anew though neither node nor case has changed
GONE = "gone"
ViewOfOne = NodeView | CaseDetail


class FollowedView:
    """The newest view of one. `facts()`: what it rests on, compared; `make()`: None for what is not there."""

    def __init__(
        self,
        facts: Callable[[], object],
        make: Callable[[], Awaitable[ViewOfOne | None]],
        page: Callable[[ViewOfOne], bytes],
        clock: Clock,
    ) -> None:
        self._facts, self._make, self._page, self._clock = facts, make, page, clock
        self._turn = asyncio.Lock()
        self._seen: Snapshot | None = None  # with which it was looked at
        self._known: object = None  # the facts of the view
        self._at, self._lasting = -math.inf, False
        self.tag, self.event = "", b""
        self.as_of = ""  # the moment of the view; of one in which time changes nothing, that of the last look

    def events(self, shown: str) -> Follower:
        """The page anew, whenever it is another one than what this tag names."""
        return ViewFollower(self, shown, -math.inf if shown == self.tag else self._clock.monotonic())

    async def look(self, snapshot: Snapshot, since: float) -> None:
        """See that the view is as new as the snapshot, and was made since then."""
        async with self._turn:
            if self._seen is snapshot and self._at >= since:
                return
            facts, now = (self._facts(), snapshot.facts.fresh.why), self._clock.monotonic()
            if facts != self._known or not (self._lasting or self._at >= max(since, now - RENEWED)):
                self._show(await self._make())
                self._known, self._at = facts, now
            elif self._lasting:
                self.as_of = snapshot.view.as_of
            self._seen = snapshot

    def _show(self, view: ViewOfOne | None) -> None:
        named = tag(view) if view else GONE
        if named != self.tag:
            data = json.dumps(self._page(view).decode()) if view else "{}"
            self.event = f"id: {named}\nevent: {'page' if view else GONE}\ndata: {data}\n\n".encode()
        self.tag, self._lasting = named, view is not None and view.lasting
        self.as_of = view.as_of if view else ""


class ViewFollower:
    """One who follows a view, and shows what has this tag; `since`: not one that was made before."""

    def __init__(self, view: FollowedView, shown: str, since: float) -> None:
        self._view, self._shown, self._since = view, shown, since

    async def event(self, snapshot: Snapshot) -> bytes:
        """The page, where it is another one."""
        await self._view.look(snapshot, self._since)
        before, self._shown = self._shown, self._view.tag
        return b"" if before == self._shown else self._view.event

    @property
    def as_of(self) -> str:
        """See Follower."""
        return self._view.as_of if self._shown == self._view.tag else ""
