"""Whether the definitions of our kinds have every field that this version writes: who leads asks, and tells.

Where they do not, the API server drops what it does not know, and says nothing. It is asked again until they do.
Its document is late where definitions have just changed: what two looks have seen is told.
"""

from datetime import datetime

import structlog

from remediator import metrics
from remediator.clock import Clock
from remediator.controller import measure
from remediator.controller.effects import Create, Done, EffectResult
from remediator.controller.perform import Performer
from remediator.core.missing_fields import REASON, REMEDY, Missing, in_words
from remediator.kube.api import encode
from remediator.kube.api.builtin import EVENT
from remediator.kube.manifests.missing_fields import missing_fields
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.wire import errors

log = structlog.get_logger()
# Seconds until the next look: the second, while some are missing, and where nobody has answered.
SECOND, AGAIN, UNKNOWN = 30.0, 600.0, 60.0
KEY = "all"
NOTHING: tuple[Missing, str] = ({}, "")  # told, and in which hour


class Definitions:
    """Two looks when leading begins; more of them only while fields are missing."""

    def __init__(self, namespace: str, performer: Performer, clock: Clock) -> None:
        self._namespace, self._performer, self._clock = namespace, performer, clock
        self._seen: Missing | None = None
        self._told = NOTHING
        self.queue: LeaderQueue[str] = LeaderQueue(
            "definitions", self._pass, lambda: [KEY], workers=1, essential=False, ended=self._ended
        )

    async def _pass(self, _: str) -> float | None:
        try:
            missing = await missing_fields(self._performer.client)
        except (errors.NotFound, errors.Forbidden) as refused:
            log.debug("nobody here may know which fields the definitions have", answer=str(refused))
            return AGAIN  # a server that has just started answers so for a moment
        except errors.ApiError as error:
            log.debug("which fields the definitions have was not answered", answer=str(error))
            return error.retry_after or UNKNOWN
        seen, self._seen = self._seen, missing
        if missing != seen:
            return SECOND
        now = self._clock.now()
        hour = f"{now:%Y-%m-%dT%H}" if missing else ""
        if (missing, hour) != self._told and isinstance(await self._tell(missing, now), Done):
            self._told = missing, hour
        return AGAIN if missing else None

    async def _tell(self, missing: Missing, now: datetime) -> EffectResult:
        measure.show(metrics.MISSING_FIELDS, {kind: len(fields) for kind, fields in missing.items()})
        if not missing:
            log.info("the definitions have every field of this version now")
            return Done()
        log.warning("the definitions are older than this version", missing=in_words(missing), remedy=REMEDY)
        return await self._performer.all([self._event(missing, now)])

    def _event(self, missing: Missing, now: datetime) -> Create:
        """One in an hour, as long as Events are kept, for the same that is missing."""
        message = f"the API server drops what the definitions lack: {in_words(missing)}; to mend it: {REMEDY}"
        body = encode.namespace_event(message, self._namespace, REASON, message, now)
        return Create(EVENT, body, namespace="default")

    def _ended(self) -> None:
        """Who leads next counts anew."""
        self._seen, self._told = None, NOTHING
        metrics.MISSING_FIELDS.clear()
