"""The janitor's loop: a pass when it begins to lead, and one in each interval."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from remediator.clock import Clock
from remediator.core.idle_policy import JanitorMode
from remediator.janitor import metrics
from remediator.janitor.idle.one_pass import IdlePass
from remediator.janitor.idle.sources import Sources
from remediator.janitor.one_pass import OnePass
from remediator.janitor.outcome import DONE, JanitorOutcome
from remediator.janitor.owner_tickets import OwnerTickets
from remediator.janitor.pass_report import Report
from remediator.janitor.pods import PodWatch
from remediator.janitor.settings import JanitorSettings
from remediator.janitor.writer import Writer
from remediator.kube.api.builtin import POD_HEAD
from remediator.kube.runtime.leader import Sweep, every, sweeping
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client

FRESH = 3  # intervals without a whole pass after which the janitor is not ready
LOOK = 600.0  # seconds between two looks at IdlePolicies, none of which acts on what is younger
BEHIND = "Pods are listed with each pass: their watch does not tell of all; the account may need the verb watch"
LOGGED = (JanitorOutcome.DELETED, JanitorOutcome.TOLD, JanitorOutcome.FAILED)
log = structlog.get_logger(__name__)


class Janitor:
    """Passes over one cluster. `leads()`: whether it may write now. `sources`: who is asked for IdlePolicies."""

    def __init__(
        self,
        client: Client,
        settings: JanitorSettings,
        clock: Clock,
        leads: Callable[[], bool] = lambda: True,
        sources: Sources | None = None,
    ) -> None:
        self._sources = sources or Sources()
        self._client, self._settings, self._clock, self._leads = client, settings, clock, leads
        self._writer = Writer(client)
        self._ended = clock.monotonic()
        self._looked: float | None = None  # when IdlePolicies were looked at
        self._pods: PodWatch | None = None  # while we lead
        self.last: Report | None = None

    async def once(self) -> Report:
        """One pass. Raises ApiError where nothing could be read."""
        began = self._clock.monotonic()
        now = self._clock.now()
        tickets = OwnerTickets(self._client, self._writer, now, self._leads)
        writes = self._settings.mode is JanitorMode.ENFORCE and self._leads()
        if writes:
            await tickets.keep()
        pods = self._pods if self._pods is not None and self._pods.whole() else None
        report = await OnePass(self._client, self._settings, self._writer, now, self._leads, pods).run()
        report.problems += [BEHIND] if self._pods is not pods else []
        if self._looked is None or began - self._looked >= LOOK or self.last is None:
            await self._idle(report, now, pods)
        else:
            report.idle, report.idle_problems, report.looked = self.last.idle, self.last.idle_problems, False
            report.idle_whole = self.last.idle_whole
        directory = self._settings.directory.current(now)
        if writes:
            await tickets.write(report, directory)
        report.problems += [*tickets.problems, *filter(None, [self._settings.directory.outdated])]
        self._ended = self._clock.monotonic()
        self.last = report
        metrics.passed(report, self._ended - began, directory)
        return report

    async def _idle(self, report: Report, now: datetime, pods: PodWatch | None) -> None:
        """The same of IdlePolicies, into the same report."""
        idle = IdlePass(self._client, self._settings, self._sources, self._writer, now, self._leads, pods)
        try:
            report.idle = await idle.run()
            self._looked = self._clock.monotonic()
        except errors.ApiError as error:
            report.idle_problems.append(f"idle policies are not looked at: {error.message}")
        report.idle_whole = not report.idle_problems and not idle.problems
        report.idle_problems += idle.problems
        report.idle_problems += [
            f"idle policy {policy_report.policy.name}: {why}"
            for policy_report in report.idle
            for why in policy_report.problems
        ]

    async def run(self) -> None:
        """Pass after pass, until cancelled. One that fails is logged: the next may do better."""
        self._looked = None  # another replica may have told owners meanwhile
        due = asyncio.Event()
        due.set()
        interval = timedelta(seconds=self._settings.interval)
        async with asyncio.TaskGroup() as group:
            group.create_task(sweeping(Sweep("janitor", every(interval), due.set), self._clock))
            if self._settings.selection.places == ("",) and self._settings.selection.kind(POD_HEAD.plural):
                self._pods = PodWatch(self._client, self._settings)
                group.create_task(self._pods.run())
                await self._pods.listed()
            while True:
                await due.wait()
                due.clear()
                await self._logged()

    async def _logged(self) -> None:
        before = self.last
        try:
            report = await self.once()
        except errors.ApiError as error:
            metrics.FAILED.inc()
            log.warning("the janitor's pass failed", answer=str(error))
            return
        for outcome in LOGGED:
            for line in report.new(outcome, before):
                word = report.word(outcome)
                log.info(word, object=line.what, reason=line.reason.value, message=line.message)
        looked = report.idle if report.looked else []
        written = (done for idle in looked if idle.enforces for done in idle.lines if done.outcome in DONE)
        for done in written:
            log.info(DONE[done.outcome], object=done.what, reason=done.reason.value, message=done.message)
        for problem in (*report.problems, *report.idle_problems):
            log.warning("the janitor cannot do all", problem=problem)
        log.info("pass", mode=report.mode.value, **dict(report.counts))

    def ready(self) -> bool:
        """Whether a pass ended lately, or another replica makes them."""
        return not self._leads() or self._clock.monotonic() - self._ended < FRESH * self._settings.interval
