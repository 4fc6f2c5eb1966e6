"""One handler for each step of a case."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from remediator.controller import case_plan, diagnosis, marks, offer_plan, pods
from remediator.controller.case_view import CaseView, case_view, ledgers_of, taken_back
from remediator.controller.effects import Plan, Retry
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
from remediator.core import keep_out, names
from remediator.core.case import reason_to_end
from remediator.core.case_table import CaseStep, case_step
from remediator.core.health import Health
from remediator.core.offer import Offer, offer
from remediator.core.reasons import Reason
from remediator.kube.api.devices import TAINT_RULE
from remediator.kube.wire import errors

HELD_SECONDS, RULES_SECONDS = 10.0, 5.0
LIVE_CHECKED = frozenset({Reason.TAINT_REMOVED_BY_USER, Reason.ADMITTED_BY_USER, Reason.NODE_GONE})
BEHIND = Retry(1.0, "the cache is behind")


async def ledgers_are_free(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """The finalizer goes last: after the marks on the node and the ledger entries, which the admission pass drops."""
    on_node = view.node is not None and marks.marked(view.node, view.case)
    if not on_node and ledgers_of(dependencies.cache, view.case):
        dependencies.request_admission()
        return Retry(0.5, "entries are still in the ledgers")
    return view if on_node else await _with_rules(view, dependencies)


async def _with_rules(view: CaseView, dependencies: Dependencies) -> CaseView | Retry:
    """The rules by which an operation of the case has isolated a GPU: they end with it."""
    case = view.case
    if all(attempt.template != names.ISOLATE_TEMPLATE for attempt in case.attempts):
        return view
    labels = f"{names.CASE_UID_LABEL}={case.uid}"
    try:
        rules = await dependencies.performer.client.list_all(TAINT_RULE, labels=labels)
    except errors.NotFound:  # the API server has no such kind (any more)
        return view
    except errors.ApiError as error:
        return Retry(RULES_SECONDS, f"DeviceTaintRules not listed: {error}")
    return replace(view, rules=tuple((rule.metadata.name, rule.metadata.uid) for rule in rules))


async def must_leave(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """Whether the node has really gone or lost our marks, or its user the operation: the cache may be behind."""
    if view.leave is Reason.OPERATION_DELETED and view.case.manual:
        asked = await dependencies.performer.operation(view.case.manual.operation)
        return view if taken_back(view.case, asked) else BEHIND
    if view.leave not in LIVE_CHECKED:
        return view
    live = await dependencies.performer.node(view.case.node)
    return view if reason_to_end(view.case, live) is not None else BEHIND


async def with_live_node(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """The base for proving recovery is the node as it is now."""
    return replace(view, node=await dependencies.performer.node(view.case.node))


async def still_unproven(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """Whether a user must look by what the server has now: a watch may be silent when a node proves its health."""
    case, _, _ = await read_live(view.case, dependencies)
    live_view = case_view(dependencies.cache, case, now) if case is not None else None
    if live_view is None or case_step(live_view.observation) is not CaseStep.ESCALATE:
        return BEHIND
    return live_view


async def still_outranked(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """Whether the more severe case still waits for the node, by what the server has now."""
    if view.outranked_by is not None:
        await dependencies.performer.case(view.outranked_by.name)
    case, _, _ = await read_live(view.case, dependencies)
    live_view = case_view(dependencies.cache, case, now) if case is not None else None
    same = live_view is not None and case_step(live_view.observation) is CaseStep.GIVE_WAY
    return live_view if live_view is not None and same else BEHIND


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
    stops = await stops_live(case, node, policy, dependencies, now)
    return stopped(stops) if stops else view


async def still_offered(view: CaseView, dependencies: Dependencies, now: datetime) -> CaseView | Retry:
    """A case is released by itself, or a probe begun, only by what the server has now."""
    if offer(view.offer) not in (Offer.RELEASE, Offer.PROBE):
        return view
    case, node, policy = await read_live(view.case, dependencies)
    live = case_view(dependencies.cache, case, now) if case is not None else None
    if live is None or node is None or case_step(live.observation) is not CaseStep.OFFER:
        return BEHIND
    if await stops_live(live.case, node, policy, dependencies, now):
        return BEHIND
    return live if offer(live.offer) is offer(view.offer) else BEHIND


def make_offer(view: CaseView, now: datetime) -> Plan:
    """What a case that a person has says of its node, or what its policy lets it do."""
    return offer_plan.PLANS[offer(view.offer)](view, now)


def look_at_health(view: CaseView, now: datetime) -> float | None:
    """Health that is being proven is no event; a fault is one. Who has taken a node out need not be told either."""
    if keep_out.is_out(view.case):
        return None
    proving = view.observation.health is Health.HEALTHY and view.case.healthy_since is None
    if offer(view.offer) is not Offer.NOTHING or not (proving or view.offer.by_itself):
        return None
    coming = view.look_again is not None and view.look_again > now
    return max(1.0, seconds_until(view.look_again, now)) if view.look_again and coming else None


def next_proof(view: CaseView, now: datetime) -> float | None:
    """When the proof of health may be complete, or its time over."""
    return SOON if view.look_again is None else seconds_until(view.look_again, now)


def while_held(view: CaseView, now: datetime) -> float | None:
    """What stops a case is looked at again soon; sooner where the node may have proven its health by then."""
    proven = HELD_SECONDS if view.look_again is None else seconds_until(view.look_again, now)
    return min(HELD_SECONDS, max(1.0, proven))


HANDLERS: Mapping[CaseStep, Handler[CaseView]] = {
    CaseStep.NOTHING: Handler(nothing, again=never),
    CaseStep.DELETE_PODS: Handler(case_plan.delete_pods, again=after(1.0)),
    CaseStep.RELEASE: Handler(case_plan.release, ledgers_are_free),
    CaseStep.STOP: Handler(case_plan.stop, again=never),
    CaseStep.END: Handler(case_plan.end, must_leave),
    CaseStep.GIVE_WAY: Handler(case_plan.give_way, still_outranked),
    CaseStep.CLEAR: Handler(case_plan.clear),
    CaseStep.CLAIM: Handler(case_plan.claim, by_admission=True),
    CaseStep.DISOWN: Handler(case_plan.disown),
    CaseStep.HOLD: Handler(case_plan.stay, again=while_held),
    CaseStep.DIAGNOSE: Handler(diagnosis.diagnose, may_look, after(1.0)),
    CaseStep.START: Handler(case_plan.start, by_admission=True),
    CaseStep.FOLLOW: Handler(case_plan.follow),
    CaseStep.PROBE: Handler(case_plan.probe),
    CaseStep.WATCH: Handler(case_plan.watch, again=never),
    CaseStep.RECORD: Handler(case_plan.record, with_live_node),
    CaseStep.VERIFY: Handler(case_plan.verify, again=next_proof),
    CaseStep.RECOVER: Handler(case_plan.recover),
    CaseStep.ESCALATE: Handler(case_plan.escalate, still_unproven),
    CaseStep.TAKE_OUT: Handler(case_plan.take_out),
    CaseStep.OFFER: Handler(make_offer, still_offered, look_at_health),
}
