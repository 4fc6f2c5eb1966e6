"""Whether the controller could act, and since when: kept as an annotation of the Lease, which is written anyway."""

from datetime import datetime, timedelta

from remediator.controller.cache import ClusterCache
from remediator.core import absence, names
from remediator.kube.runtime.leader import Leader

LOOK = timedelta(seconds=30)  # how often we look whether we can act
FROZEN = LOOK + timedelta(seconds=10)  # nothing was looked at for so long: the process stood still
SILENT = timedelta(minutes=15)  # a watch that says nothing for so long, while others do: it may never speak again


class Presence:
    """Keeps `cache.absences` and `cache.silent` for the leader."""

    def __init__(self, cache: ClusterCache, leader: Leader) -> None:
        self._cache, self._leader = cache, leader
        self._looked: datetime | None = None
        self._able = True
        self._silent_since: datetime | None = None

    def look(self, now: datetime) -> None:
        """Note the time since the last look, if we could not act at either end of it. Before every decision.

        Where our clock goes back, it was ahead: what it has seen of the future is no absence.
        """
        if self._looked is None:
            self._begin(now)
        able, looked = self._can_act(now), self._looked or now
        if now < looked:
            self._keep(self._cache.absences.until(now))
        elif not (able and self._able) or now - looked > FROZEN:
            self._include(looked, now)
        self._able, self._looked = able, now

    def end(self, now: datetime) -> None:
        """We no longer lead. Who leads next finds in the Lease since when nobody has."""
        if self._looked is not None and not (self._able and self._can_act(now)):
            self._include(self._looked, now)
        self._looked, self._able = None, True
        self._silent_since, self._cache.silent = None, ()

    def _begin(self, now: datetime) -> None:
        """What others have noted, and the time in which nobody led.

        Where the Lease is gone, or says no time, so is what it told of absences: any time of a case that goes on may
        have been one.
        """
        renewed, notes = self._leader.before
        known = absence.read(notes.get(names.ABSENCES, ""), now)
        for gap in self._cache.absences.until(now).gaps:  # of an earlier leadership of ours
            known = known.including(gap.begin, gap.end)
        self._cache.absences = known
        if renewed is None:
            renewed = min((case.created for case in self._cache.unfinished), default=now)
        self._include(renewed, now)

    def _include(self, begin: datetime, end: datetime) -> None:
        self._keep(self._cache.absences.including(begin, end))

    def _keep(self, absences: absence.Absences) -> None:
        self._cache.absences = absences
        self._leader.note(names.ABSENCES, str(absences))

    def _can_act(self, now: datetime) -> bool:
        paused = self._cache.paused and not self._cache.leaving  # who leaves waits for the end of what goes on
        return self._leader.is_leader and not paused and self._has_news(now)

    def _has_news(self, now: datetime) -> bool:
        """Whether every watch is fresh; after 15 minutes, whether any is: what is late is read live, so time goes on.

        From then on `cache.silent` names the kinds that nobody tells us of, and nothing new starts.
        """
        silent = tuple([informer.kind for informer in self._cache.informers if not informer.fresh()])
        self._silent_since = min(self._silent_since or now, now) if silent else None
        lasts = self._silent_since is not None and now - self._silent_since >= SILENT
        self._cache.silent = tuple(dict.fromkeys(silent)) if lasts else ()
        return not silent or (lasts and len(silent) < len(self._cache.informers))
