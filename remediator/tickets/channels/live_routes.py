"""The routes file while it changes: read again without a restart, and kept as it was where what is written is wrong."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from remediator.core.ticket_route import RouteVerdict, TicketRoute
from remediator.kube.runtime.informer import Informer
from remediator.tickets import metrics
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.channels.routes_file import load
from remediator.tickets.channels.team_routes import judged

log = structlog.get_logger()
LOOK_EVERY = timedelta(seconds=10)
Signature = tuple[tuple[str, int, int, int], ...]


class LiveRoutes:
    """Routes of a file, and TicketRoutes. All files of its folder count: templates and schedules lie beside it.

    `newest`: the routes as `current` gave them last; `verdicts`: what was found then of each TicketRoute.
    """

    def __init__(self, path: Path, problem: Callable[[Route], str]) -> None:
        """Raises ValueError as `load` does: nothing begins without routes."""
        self._path, self._problem = path, problem
        self._signature = signature(path.parent)
        self.newest = load(path, problem)
        self._look: datetime | None = None
        self._objects: Callable[[], Iterable[TicketRoute]] = tuple
        self._changed = False
        self.verdicts: Mapping[str, RouteVerdict] = {}

    def take(self, informer: Informer[TicketRoute]) -> None:
        """Read TicketRoutes, too, from now on."""
        self._objects, self._changed = lambda: informer, True
        informer.on_change(lambda key, old, new: self._mark())

    def _mark(self) -> None:
        self._changed = True

    def current(self, now: datetime) -> Routes:
        """The routes as they were written last without a mistake; looks at the file every ten seconds."""
        if self._look is None or not timedelta(0) <= now - self._look < LOOK_EVERY:
            self._look = now
            self._refresh()
        if self._changed:
            self._changed = False
            judgement = judged(self.newest, self._objects())
            self.newest, self.verdicts = replace(self.newest, rows=judgement.rows), judgement.verdicts
        return self.newest

    def _refresh(self) -> None:
        seen = signature(self._path.parent)
        if seen == self._signature:
            return
        self._signature, self._changed = seen, True
        try:
            self.newest = load(self._path, self._problem)
        except ValueError as error:
            message = f"{error}; until then the routes from before that change count"
            self.newest = replace(self.newest, outdated=message)
            log.error("routes not read", message=message)
        else:
            log.info("routes read again", file=str(self._path))
        metrics.ROUTES_OUTDATED.set(bool(self.newest.outdated))


def signature(folder: Path) -> Signature:
    """What tells whether a file of a folder has changed; a ConfigMap is changed by a link that leads elsewhere."""
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        stats = [(path.name, path.stat()) for path in files]
    except OSError:
        return ()
    return tuple((name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats)
