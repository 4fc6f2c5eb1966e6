"""One handler for each step of a case."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from remediator.controller import case_plan, diagnosis, marks, pods
from remediator.controller.case_view import CaseView, case_view, ledgers_of
from remediator.controller.effects import Retry
from remediator.controller.handlers.base import (
    SOON,
    Dependencies,
    Handler,
    after,
    never,
    nothing,
    read_live,
    seconds_until,
    stopped,
    stops_live,
)
from remediator.core.case import reason_to_end
from remediator.core.case_table import Step, case_step
from remediator.core.reasons import Reason

LIVE_CHECKED = frozenset({Reason.TAINT_REMOVED_BY_USER, Reason.NODE_GONE})


async def ledgers_are_free(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """The finalizer goes last: after the marks on the node and the ledger entries, which the admission pass drops."""
    on_node = view.node is not None and marks.marked(view.node, view.case)
    if not on_node and ledgers_of(dependencies.cache, view.case):
        dependencies.request_admission()
        return Retry(0.5, "entries are still in the ledgers")
    return view


async def must_leave(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """Whether the node has really gone or lost our marks: the cache may be behind."""
    if view.leave not in LIVE_CHECKED:
        return view
    live = await dependencies.performer.node(view.case.node)
    return view if reason_to_end(view.case, live) is not None else Retry(1.0, "the cache is behind")


async def with_live_node(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """The base for proving recovery is the node as it is now."""
    return replace(view, node=await dependencies.performer.node(view.case.node))


async def still_unproven(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """Whether a user must look by what the server has now: a watch may be silent when a node proves its health."""
    case, _, _ = await read_live(view.case, dependencies)
    live_view = case_view(dependencies.cache, case, now) if case is not None else None
    if live_view is None or case_step(live_view.observation) is not Step.ESCALATE:
        return Retry(1.0, "the cache is behind")
    return live_view


async def may_look(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """Before the first Pod, live: the case still holds the node, and nothing stops it. After its time: the Pod."""
    late = diagnosis.overdue(view, now)
    pod = await dependencies.performer.pod(pods.diagnostics_pod_name(view.case)) if late else None
    if pod is not None and pod.case_uid == view.case.uid:
        return replace(view, pods=(pod,))
    if view.pods:
        return view
    case, node, policy = await read_live(view.case, dependencies)
    if case is None or node is None or reason_to_end(case, node) is not None:
        return Retry(1.0, "the node or the case has changed")
    stops = await stops_live(case, node, policy, dependencies)
    return stopped(stops) if stops else view


def next_proof(view: CaseView, now: datetime) -> float | None:
    """When the proof of health may be complete, or its time over."""
    return SOON if view.look_again is None else seconds_until(view.look_again, now)


HANDLERS: Mapping[Step, Handler[CaseView]] = {
    Step.NOTHING: Handler(nothing, again=never),
    Step.DELETE_PODS: Handler(case_plan.delete_pods, again=after(1.0)),
    Step.RELEASE: Handler(case_plan.release, ledgers_are_free),
    Step.STOP: Handler(case_plan.stop, again=never),
    Step.END: Handler(case_plan.end, must_leave),
    Step.CLEAR: Handler(case_plan.clear),
    Step.CLAIM: Handler(case_plan.claim, by_admission=True),
    Step.DISOWN: Handler(case_plan.disown),
    Step.HOLD: Handler(case_plan.stay, again=after(10.0)),
    Step.DIAGNOSE: Handler(diagnosis.diagnose, may_look, after(1.0)),
    Step.START: Handler(case_plan.start, by_admission=True),
    Step.FOLLOW: Handler(case_plan.follow),
    Step.WATCH: Handler(case_plan.watch, again=never),
    Step.RECORD: Handler(case_plan.record, with_live_node),
    Step.VERIFY: Handler(case_plan.verify, again=next_proof),
    Step.RECOVER: Handler(case_plan.recover),
    Step.ESCALATE: Handler(case_plan.escalate, still_unproven),
}
