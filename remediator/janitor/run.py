"""The janitor's loop: a pass when it begins to lead, and one in each interval."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import structlog

from remediator.clock import Clock
from remediator.janitor import metrics
from remediator.janitor.one_pass import OnePass
from remediator.janitor.report import Outcome, Report
from remediator.janitor.settings import JanitorSettings
from remediator.janitor.writer import Writer
from remediator.kube.runtime.leader import Sweep, every, sweeping
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client

FRESH = 3  # intervals without a whole pass after which the janitor is not ready
LOGGED = (Outcome.DELETED, Outcome.TOLD, Outcome.FAILED)
log = structlog.get_logger(__name__)


class Janitor:
    """Passes over one cluster. `leads()`: whether it may write now."""

    def __init__(
        self, client: Client, settings: JanitorSettings, clock: Clock, leads: Callable[[], bool] = lambda: True
    ) -> None:
        self._client, self._settings, self._clock, self._leads = client, settings, clock, leads
        self._writer = Writer(client)
        self._ended = clock.monotonic()
        self.last: Report | None = None

    async def once(self) -> Report:
        """One pass. Raises ApiError where nothing could be read."""
        began = self._clock.monotonic()
        report = await OnePass(self._client, self._settings, self._writer, self._clock.now(), self._leads).run()
        self._ended = self._clock.monotonic()
        self.last = report
        metrics.passed(report, self._ended - began)
        return report

    async def run(self) -> None:
        """Pass after pass, until cancelled. One that fails is logged: the next may do better."""
        due = asyncio.Event()
        due.set()
        interval = timedelta(seconds=self._settings.interval)
        async with asyncio.TaskGroup() as group:
            group.create_task(sweeping(Sweep("janitor", every(interval), due.set), self._clock))
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
        for problem in report.problems:
            log.warning("the janitor cannot do all", problem=problem)
        log.info("pass", mode=report.mode.value, **dict(report.counts))

    def ready(self) -> bool:
        """Whether a pass ended lately, or another replica makes them."""
        return not self._leads() or self._clock.monotonic() - self._ended < FRESH * self._settings.interval
