"""Logs why a server gave no verdict: each reason once, and not for each of thousands of questions."""

import structlog

from remediator.prometheus.reading import CannotTell, Doubt

QUIET = 300.0  # seconds without a failure after which it is over
MOST = 8  # messages under one reason: a server may say something new each time
log = structlog.get_logger(__name__)


class NoLog:
    """Of a command, which tells its user itself."""

    def note(self, reading: object, query: str, now: float) -> None:
        """Say nothing."""


class FailureLog:
    """The failures of late of one server, and when each was last seen."""

    def __init__(self, server: str = "Prometheus") -> None:
        self._server = server
        self._seen: dict[tuple[Doubt, str], float] = {}

    def note(self, reading: object, query: str, now: float) -> None:
        """Log a failure that is new; and, when there is an answer, that the last one is over. `now`: monotonic."""
        lasting = {failure: at for failure, at in self._seen.items() if now - at < QUIET}
        if isinstance(reading, CannotTell):
            self._seen = self._noted(lasting, reading, query, now)
        elif self._seen and not lasting:
            self._seen = {}
            log.info(f"{self._server} answers again")

    def _noted(
        self, lasting: dict[tuple[Doubt, str], float], failed: CannotTell, query: str, now: float
    ) -> dict[tuple[Doubt, str], float]:
        failure = (failed.doubt, failed.message)
        if failure not in lasting:
            if sum(doubt is failed.doubt for doubt, _ in lasting) >= MOST:
                return lasting
            log.warning(
                f"{self._server} gives no verdict",
                reason=failed.doubt.value,
                because=failed.message,
                query=query,
                detail=failed.detail,
            )
        return lasting | {failure: now}
