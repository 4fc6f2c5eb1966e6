"""An admission pass with what it leaves to be written, for tests whose caches nobody follows."""

from datetime import datetime

from remediator.controller.admission import Admissions


async def whole_pass(admissions: Admissions, now: datetime) -> float | None:
    """Admit, and then write what is to be written of each case; seconds until the next look at any of them."""
    waits = [await admissions.run(now)]
    for case in list(admissions.cache.cases):
        waits.append(await admissions.records.write(case, admissions.performer, now))
    return min((seconds for seconds in waits if seconds is not None), default=None)
