"""The routes file while it changes, and TicketRoutes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from remediator.core.ticket_route import RouteVerdict, TicketRoute
from remediator.kube.runtime.informer import Informer
from remediator.live_file import LiveFile
from remediator.tickets import metrics
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.channels.routes_file import load
from remediator.tickets.channels.team_routes import judged


class LiveRoutes:
    """Routes of a file, and TicketRoutes. All files of its folder count: templates and schedules lie beside it.

    `newest`: the routes as `current` gave them last; `verdicts`: what was found then of each TicketRoute.
    """

    def __init__(self, path: Path, problem: Callable[[Route], str]) -> None:
        """Raises ValueError as `load` does: nothing begins without routes."""
        gauge, folder = metrics.ROUTES_OUTDATED, path.parent
        self._file = LiveFile(path, lambda path: load(path, problem), "routes", gauge, folder)
        self.newest = self._file.newest
        self._objects: Callable[[], Iterable[TicketRoute]] = tuple
        self._changed = False
        self._on_read: Callable[[], None] = lambda: None
        self.verdicts: Mapping[str, RouteVerdict] = {}

    def take(self, informer: Informer[TicketRoute]) -> None:
        """Read TicketRoutes, too, from now on."""
        self._objects, self._changed = lambda: informer, True
        informer.on_change(lambda key, old, new: self._mark())

    def on_read(self, callback: Callable[[], None]) -> None:
        """Call back whenever the file was read again."""
        self._on_read = callback

    def _mark(self) -> None:
        self._changed = True

    def current(self, now: datetime) -> Routes:
        """The routes as they were written last without a mistake; looks at the file every ten seconds."""
        read = self._file.refresh(now)
        if read:
            self._changed = True
            self.newest = replace(self._file.newest, outdated=self._file.outdated)
        if self._changed:
            self._changed = False
            judgement = judged(self.newest, self._objects())
            self.newest, self.verdicts = replace(self.newest, rows=judgement.rows), judgement.verdicts
        if read:
            self._on_read()
        return self.newest
