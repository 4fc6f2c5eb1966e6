"""The invariants, asked at every write as it happens."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.store import Change, Listener
from remediator_sim.invariants import attempts, endings, tickets
from remediator_sim.invariants.checker import Checker
from remediator_sim.invariants.contract import KINDS, TICKETS, uid
from remediator_sim.invariants.event import (
    ABSENT,
    ALERTS,
    CONFIRMED,
    FINAL,
    ISSUES,
    KILLED,
    PERSON,
    REBOOT,
    TICK,
    Event,
)
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tickets import SeenIssue
from remediator_sim.invariants.tracked import Limits
from remediator_sim.simulation.clock import true_time

Tell = Callable[[Event], None]
EVERY = 20.0  # seconds between two looks at the clock


class Judge:
    """Listens to one store from its making on. `tell` is given each event once it was judged; `now` is never wrong."""

    def __init__(
        self,
        cluster: Cluster,
        limits: Limits,
        tell: Tell,
        report_broken: Callable[[str], None],
        now: Callable[[], datetime] = true_time,
    ) -> None:
        self._cluster, self._limits, self._now = cluster, limits, now
        self._tell, self._report = tell, report_broken
        self._reported: set[str] = set()
        self._absent: bool | None = None
        self._issues: list[SeenIssue] = []
        self._earlier: list[Checker] = []
        self._kinds: tuple[str, ...] = KINDS
        self._checker = self._begun()
        for kind in KINDS:
            self._listen(kind)

    def follow(self, *kinds: str) -> None:
        """Listen to kinds that only some clusters have, too."""
        self._kinds += kinds
        for kind in kinds:
            self._listen(kind)

    def _begun(self) -> Checker:
        """A checker that knows what stands now, and nothing of what was before."""
        checker = Checker(self._limits)
        for kind in self._kinds:
            for entry in self._cluster.store.collection(kind).entries.values():
                checker.history.take(Event(kind, self._now(), None, entry.obj))
        return checker

    def restored(self) -> None:
        """What is stored was set back: of what was known, only what happened outside of it still holds.

        That includes when machines were asked to reboot by attempts that go on, but not for what: names of attempts
        come again.
        """
        before = self._checker.history
        self._earlier.append(self._checker)
        self._checker = self._begun()
        self._absent = None
        now = self._checker.history
        pending = [record for record in before.reboots if attempts.reboots(before, record)]
        now.confirmed, now.proven = before.confirmed, before.proven
        now.absences, now.reboots = before.absences, [record | {"attemptID": ""} for record in pending]
        now.set_back = self._now()
        now.forgotten = tickets.forgotten(before.issues, now.objects[TICKETS].values())
        self.issues(self._issues)

    def _listen(self, kind: str) -> None:
        def hear(change: Change) -> None:
            old = change.old.obj if change.old else None
            new = None if change.type == "DELETED" else change.entry.obj
            self.put(kind, old, new)

        self._cluster.store.collection(kind).listen(Listener(None, hear, lambda: None))

    def put(self, kind: str, old: dict[str, Any] | None = None, new: dict[str, Any] | None = None) -> None:
        """One event, now."""
        event = Event(kind, self._now(), old, new)
        news = self._checker.hear(event)
        self._tell(event)
        if news:
            self._report_news()

    def _report_news(self) -> None:
        for sentence in self.broken():
            if sentence not in self._reported:
                self._reported.add(sentence)
                self._report(sentence)

    def broken(self) -> list[str]:
        """What was found wrong, by promise."""
        checkers = (*self._earlier, self._checker)
        results = (checked for checker in checkers for checked in checker.report().values())
        return [f"{checked.name}: {text}" for checked in results for text in checked.broken]

    def checks(self) -> dict[str, int]:
        """How often each promise was put to the test."""
        reports = [checker.report() for checker in (*self._earlier, self._checker)]
        return {name: sum(report[name].checks for report in reports) for name in reports[0]}

    def waits(self, case: dict[str, Any]) -> bool:
        """Whether nothing need happen to an open case before somebody does something."""
        tracked = self._checker.history.tracked.get(uid(case))
        return tracked is not None and endings.waits(self._checker.history, tracked)

    def nodes(self) -> list[str]:
        """The names of the nodes that there are."""
        return list(self._checker.history.nodes)

    def killed(self) -> None:
        """A replica has just been killed."""
        self.put(KILLED)

    def person(self, node: str, **marks: Any) -> None:
        """A user has just set this on a node, and it must stay."""
        usual: dict[str, Any] = {"labels": {}, "annotations": {}, "taints": [], "cordon": False}
        self.put(PERSON, None, {"node": node} | usual | marks)

    def issues(self, seen: list[SeenIssue]) -> None:
        """The issues have changed."""
        self._issues = seen
        self.put(ISSUES, None, {"issues": [issue._asdict() for issue in seen]})

    def tickets_at_rest(self, alerts: list[str]) -> bool:
        """Whether every case and alert that wants an issue has one, and no issue is open that nobody needs."""
        event = Event(ALERTS, self._now(), None, {"firing": alerts})
        checks = (tickets.told_a_person, tickets.closed_when_over, tickets.told_of_alerts)
        return all(finding == HELD for check in checks for finding in check(self._checker.history, event))

    def rebooted(self, node: str, boot: str, attempt: str) -> None:
        """A machine was asked to reboot in this boot, by the operation of this name."""
        self.put(REBOOT, None, {"node": node, "bootID": boot, "attemptID": attempt})

    async def run(self, pace: Callable[[], float]) -> None:
        """Let time pass, until cancelled; between two looks `pace()` times as much as usual."""
        while True:
            await asyncio.sleep(EVERY * pace())
            self.put(TICK)

    def end(self, alerts: list[str]) -> None:
        """Everything has happened; these alerts fire, and were taken."""
        self.put(TICK)
        self.put(ALERTS, None, {"firing": alerts})
        self.put(FINAL)

    def confirmed(self, node: str, condition: str) -> None:
        """The second source has said yes."""
        self.put(CONFIRMED, None, {"node": node, "condition": condition})

    def absent(self, absent: bool) -> None:
        """Whether nobody of us can act from now on."""
        if absent != self._absent:
            self._absent = absent
            self.put(ABSENT, None, {"absent": absent})
