"""One pass over one case."""

from collections.abc import Iterator
from datetime import datetime

from remediator.controller import case_plan
from remediator.controller.case_view import CaseView, case_view
from remediator.controller.effects import Done
from remediator.controller.handlers.base import SOON, Dependencies, seconds, seconds_until
from remediator.controller.handlers.case import HANDLERS
from remediator.core.case import Case
from remediator.core.case_table import case_step


def _ends(case: Case) -> Iterator[datetime]:
    """When what users have set on an open case for a time is over."""
    if case.open and case.hold_terms.ends is not None:
        yield case.hold_terms.ends
    if case.open and case.keep_out is not None:
        yield case.keep_out.until


class CaseReconciler:
    """Brings each case one step further."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    async def reconcile(self, name: str, now: datetime) -> float | None:
        """One step, after the Events of the one before. What needs admission is only requested here.

        A case that has claimed its node says so before anything else is decided, or its node would be given back
        without proof of its health.
        """
        records, performer = self._dependencies.records, self._dependencies.performer
        await records.events.create(name, performer)
        case = self._dependencies.cache.cases.get(name)
        if case is None or case.unreadable:
            return None
        if case.open and case_plan.hold_is_over(case, now):
            return seconds(await performer.all(case_plan.end_hold(case)))
        after = await self._step(case, now)
        times = [seconds_until(end, now) for end in _ends(case) if end > now]
        return min(times if after is None else (after, *times), default=None)

    async def _step(self, case: Case, now: datetime) -> float | None:
        records, performer = self._dependencies.records, self._dependencies.performer
        view = case_view(self._dependencies.cache, case, now)
        if records.has_claim(case) and not view.stops:
            return await records.write(case, performer, now)
        handler = HANDLERS[case_step(view.observation)]
        if handler.by_admission:
            return await self._request_admission(view, now)
        return await handler.handle(view, self._dependencies, now)

    async def _request_admission(self, view: CaseView, now: datetime) -> float | None:
        """Ask once for each state of the case; what the last admission pass has left to be written is written here.

        A case that somebody else made gets our finalizer first, so that it cannot vanish while it holds a node.
        """
        case, dependencies = view.case, self._dependencies
        if view.stops:
            dependencies.records.withdraw(case)
        if not case.finalizer:
            result = await dependencies.performer.all(case_plan.add_finalizer(case))
            return SOON if isinstance(result, Done) else seconds(result)
        if dependencies.records.asks(case, view.node):
            dependencies.request_admission()
        return await dependencies.records.write(case, dependencies.performer, now)
