"""One handler for each answer to an operation that a user has made."""

from collections.abc import Mapping
from datetime import datetime

from remediator.controller import request_plan
from remediator.controller.effects import Retry
from remediator.controller.handlers.base import Dependencies, Handler, after, never, nothing
from remediator.controller.request_view import RequestView, is_meant
from remediator.core import manual
from remediator.core.request_table import RequestStep

BEHIND = Retry(1.0, "the cache is behind")


async def case_is_gone(view: RequestView, dependencies: Dependencies, now: datetime) -> RequestView | Retry:
    """Whether the case is not on the server either."""
    return BEHIND if await dependencies.performer.case(manual.case_name(view.operation)) else view


async def node_is_gone(view: RequestView, dependencies: Dependencies, now: datetime) -> RequestView | Retry:
    """Whether the server does not have that node either."""
    live = await dependencies.performer.node(view.operation.node)
    return BEHIND if is_meant(view.operation, live) else view


async def still_asked_for(view: RequestView, dependencies: Dependencies, now: datetime) -> RequestView | Retry:
    """Whether the user still asks, live: a case must not be opened for an operation that had one."""
    live = await dependencies.performer.operation(view.operation.name)
    return view if live == view.operation else BEHIND


HANDLERS: Mapping[RequestStep, Handler[RequestView]] = {
    RequestStep.NOTHING: Handler(nothing, again=never),
    RequestStep.FINISH: Handler(request_plan.finish, again=never),
    RequestStep.SHOW: Handler(request_plan.show, again=after(30.0)),
    RequestStep.GIVE_UP: Handler(request_plan.give_up, case_is_gone, never),
    RequestStep.REFUSE: Handler(request_plan.refuse, node_is_gone, never),
    RequestStep.OPEN: Handler(request_plan.open_case, still_asked_for),
}
