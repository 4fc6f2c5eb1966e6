"""An admission pass with what it leaves to be written, for tests whose caches nobody follows."""

from datetime import datetime

from remediator.controller.admission import Admissions
from remediator.controller.records import AGAIN


async def whole_pass(admissions: Admissions, now: datetime) -> float | None:
    """Admit, and then write what is to be written of each case; seconds until the next look at any of them."""
    waits = [await admissions.run(now)]
    for case in list(admissions.cache.cases):
        seconds = await admissions.records.write(case, admissions.performer, now)
        saved = admissions.cache.cases.get(case.name)
        if seconds == AGAIN and saved is not None:
            seconds = await admissions.records.write(saved, admissions.performer, now)
        waits.append(seconds)
    return min((seconds for seconds in waits if seconds is not None), default=None)
