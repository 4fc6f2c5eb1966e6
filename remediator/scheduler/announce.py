"""Tells people when health only scores, and when it refuses again: a line in the log and an Event on our namespace."""

import structlog

from remediator.clock import Clock
from remediator.kube.api import encode
from remediator.kube.api.builtin import EVENT
from remediator.kube.runtime.queue import WorkQueue
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.scheduler.fail_open import OpenReason

log = structlog.get_logger(__name__)


class Announcer:
    """Writes one Event for each change. Every replica sees the same change: those of one hour have one name."""

    def __init__(self, client: Client, namespace: str, clock: Clock) -> None:
        self._client, self._namespace, self._clock = client, namespace, clock
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue("extender")

    async def run(self) -> None:
        """Write Events, until cancelled."""
        try:
            await self._queue.run(self._write, 1)
        finally:
            self._queue.close()

    def announce(self, reason: OpenReason | None, message: str) -> None:
        """Health refuses from now on, or only scores and why."""
        log.warning("the scheduler extender changed", only_scores=reason is not None, message=message)
        self._queue.add((f"ExtenderOnlyScores{reason.value}" if reason else "ExtenderRefuses", message))

    async def _write(self, change: tuple[str, str]) -> None:
        """An Event that is lost, or that another replica wrote, is not written again."""
        reason, message = change
        body = encode.namespace_event(reason, self._namespace, reason, message, self._clock.now())
        try:
            await self._client.create(EVENT, body, namespace="default")
        except errors.AlreadyExists:
            return
        except errors.ApiError as error:
            log.warning("the API server refuses an Event", reason=reason, answer=str(error))
