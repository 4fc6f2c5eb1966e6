"""Prometheus as the parts of a replica ask it: in threads of its own, never on the loop, with a limit on time."""

from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

from remediator.clock import Clock
from remediator.core import promql
from remediator.prometheus import reading
from remediator.prometheus.connection import PrometheusConnection
from remediator.prometheus.failure_log import FailureLog, NoLog
from remediator.prometheus.failures import Server, failure
from remediator.prometheus.metrics import QUERIES, SECONDS
from remediator.prometheus.reading import CannotTell, Doubt, Reading
from remediator.prometheus.source import AT_ONCE
from remediator.prometheus.threads import answered

PATIENCE = 10.0  # seconds for which one answer is waited for
ANSWERED = "Answered"
SERVER = Server("--prometheus", "its answer is larger than 1 MiB; let the query give one number")
# Ask stores that leave out what they cannot reach to refuse instead: Thanos, and VictoriaMetrics.
WHOLE = {"partial_response": "false", "deny_partial_response": "1"}


class Prometheus:
    """A `Source` over HTTP.

    Args:
        url: where its API begins, before /api/v1.
        clock: by which samples are old.
        token: file with a bearer token, read anew for each question.
        authority: file with the certificates that sign the server's; None for those that everybody trusts.
        patience: seconds for which one answer is waited for.
        worker: what runs the requests; threads of its own where none is given.
        failures: where it is logged why there is no verdict.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        token: Path | None = None,
        authority: Path | None = None,
        patience: float = PATIENCE,
        worker: Executor | None = None,
        failures: FailureLog | NoLog | None = None,
    ) -> None:
        self._clock, self._patience = clock, patience
        self.connection = PrometheusConnection(url, token, authority, clock.monotonic)
        self._failures = failures or FailureLog()
        self._worker = worker or ThreadPoolExecutor(AT_ONCE, thread_name_prefix="prometheus")

    async def instant(self, query: str, within: timedelta) -> Reading:
        """See Source."""
        began = self._clock.monotonic()
        answer = await answered(self._worker, partial(self._ask, query, within), SERVER, self._patience)
        SECONDS.observe(max(0.0, self._clock.monotonic() - began))
        self._failures.note(answer, query, self._clock.monotonic())
        QUERIES.labels(answer.doubt.value if isinstance(answer, CannotTell) else ANSWERED).inc()
        return answer

    async def aclose(self) -> None:
        """Drop what waits, and give the connections back; what is under way ends by its limit."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        self.connection.close()

    # From here on everything runs in the worker.

    def _ask(self, query: str, within: timedelta) -> Reading:
        now = self._clock.wall()
        seconds = within.total_seconds()
        try:
            asked = promql.fresh(query, seconds)
        except ValueError as undated:
            return CannotTell(Doubt.UNDATED, str(undated))
        # Newer servers look back so far, older ones as far as they always do.
        limits = {"lookback_delta": f"{seconds:g}", "timeout": f"{self._patience:g}"}
        try:
            status, body = self.connection.instant({"query": asked, **limits, **WHOLE}, self._patience)
        except Exception as failed:
            return failure(SERVER, failed, self._patience, self.connection.hidden)
        return reading.of_answer(status, body, within, now, self.connection.hidden)
