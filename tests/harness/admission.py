"""A replica whose passes a test makes one by one, and an admission pass with what it leaves to be written."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from remediator.clock import SYSTEM
from remediator.controller.admission import Admissions
from remediator.controller.explain import snapshot
from remediator.controller.handlers.base import Dependencies
from remediator.controller.perform import Performer
from remediator.controller.records import AGAIN
from remediator.core.breaker import Breaker


async def replica(
    harness: Any, starts: int = 1000, request_admission: Callable[[], None] = lambda: None
) -> tuple[Dependencies, Admissions]:
    """A replica whose caches show the cluster as it is now and will not move, but for its own writes.

    `starts`: of its breaker in ten minutes.
    """
    cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
    performer = Performer(harness.client, cache, lambda: True)
    admissions = Admissions(cache, performer, Breaker(starts=starts), SYSTEM.monotonic)
    return Dependencies(cache, performer, request_admission, 50, admissions.records), admissions


async def whole_pass(admissions: Admissions, now: datetime) -> float | None:
    """Admit, and then write what is to be written of each case; seconds until the next look at any of them."""
    waits = [await admissions.run(now)]
    for case in list(admissions.cache.cases):
        seconds = await admissions.records.write(case, admissions.performer, now)
        await admissions.records.events.create(case.name, admissions.performer)
        saved = admissions.cache.cases.get(case.name)
        if seconds == AGAIN and saved is not None:
            seconds = await admissions.records.write(saved, admissions.performer, now)
        waits.append(seconds)
    return min((seconds for seconds in waits if seconds is not None), default=None)
