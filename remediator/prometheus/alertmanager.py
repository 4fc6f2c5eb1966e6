"""One Alertmanager as the leader asks it: in a thread, never on the loop, with limits on time and size."""

from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

from remediator.clock import Clock
from remediator.prometheus import alerts
from remediator.prometheus.alerts import Listing
from remediator.prometheus.connection import PrometheusConnection
from remediator.prometheus.failure_log import FailureLog
from remediator.prometheus.failures import Server, failure
from remediator.prometheus.metrics import LISTS
from remediator.prometheus.reading import CannotTell
from remediator.prometheus.threads import answered

PATIENCE = 10.0  # seconds for which one list is waited for
LARGEST = 16 << 20  # bytes of a list: as much as one post to the webhook
PATH = "/api/v2/alerts"
ANSWERED = "Answered"
SERVER = Server("--alertmanager", "its list of alerts is larger than 16 MiB; let fewer alerts fire")


class Alertmanager:
    """An `AlertSource` over HTTP. `url` is where its API begins, before /api/v2; `matcher`: what alerts must have."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        token: Path | None = None,
        authority: Path | None = None,
        matcher: str = "",
        patience: float = PATIENCE,
        worker: Executor | None = None,
    ) -> None:
        self._url, self._clock, self._patience = url, clock, patience
        self._asked = {"filter": matcher} if matcher else {}
        self.connection = PrometheusConnection(url, token, authority, clock.monotonic)
        self._failures = FailureLog("Alertmanager")
        self._worker = worker or ThreadPoolExecutor(1, thread_name_prefix="alertmanager")

    async def alerts(self) -> Listing:
        """See AlertSource."""
        answer = await answered(self._worker, self._ask, SERVER, self._patience)
        self._failures.note(answer, f"{self._url}{PATH}", self._clock.monotonic())
        LISTS.labels(answer.doubt.value if isinstance(answer, CannotTell) else ANSWERED).inc()
        return answer

    async def aclose(self) -> None:
        """Drop what waits, and give the connection back; what is under way ends by its limit."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        self.connection.close()

    # From here on everything runs in the worker.

    def _ask(self) -> Listing:
        try:
            status, body = self.connection.get(PATH, self._asked, self._patience, LARGEST)
        except Exception as failed:
            return failure(SERVER, failed, self._patience, self.connection.hidden)
        return alerts.of_answer(status, body)
