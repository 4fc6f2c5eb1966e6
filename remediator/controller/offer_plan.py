"""What a case that a person has says of its node → its effects. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from remediator.controller import case_plan
from remediator.controller.case_view import CaseView
from remediator.controller.effects import Plan, SaveCase
from remediator.core import guard
from remediator.core.case import TIMELINE, Case, CaseEvent, Phase, advance, release_command
from remediator.core.ladder import Next, has_room
from remediator.core.offer import Offer
from remediator.core.policy import Policy
from remediator.core.probe import of_this_proof
from remediator.core.proof import well_since
from remediator.core.reasons import REMEDY, Reason


def offered(case: Case) -> str:
    """What a user reads of a case whose node has become healthy; "" where it has not."""
    if case.healthy_since is None or not case.open or case.phase is not Phase.ESCALATED:
        return ""
    since = f"{case.healthy_since:%Y-%m-%d %H:%M:%S} UTC"
    return f"{case.node} looks healthy since {since}; where it is repaired, give it back with: {release_command(case)}"


def nothing(view: CaseView, now: datetime) -> Plan:
    """What the case says is true."""
    return ()


def say(view: CaseView, now: datetime) -> Plan:
    """Offer the release. The timeline says so once: a node that goes to and fro must not fill it."""
    case = view.case
    since = well_since(view.node, view.policy) if view.node and view.policy else None
    if since is None:
        return ()
    after = replace(case, healthy_since=since)
    if not any(event.reason is Reason.HEALTHY_AGAIN for event in case.timeline):
        event = CaseEvent(now, Reason.HEALTHY_AGAIN, offered(after))
        after = replace(after, timeline=(*case.timeline, event)[-TIMELINE:])
    return (SaveCase(case, after),)


def take_back(view: CaseView, now: datetime) -> Plan:
    """The node does not look healthy any more."""
    return (SaveCase(view.case, replace(view.case, healthy_since=None)),)


def release(view: CaseView, now: datetime) -> Plan:
    """The node has proven its health, and its policy gives it back."""
    since = well_since(view.node, view.policy) if view.node and view.policy else None
    probed = f", and {view.policy.verify.probe} has succeeded" if view.policy and of_this_proof(view.case) else ""
    healthy = f"healthy since {since:%Y-%m-%d %H:%M:%S} UTC{probed}" if since else "healthy"
    message = f"{healthy}; the policy gives the node back by itself (spec.escalation.release)"
    return case_plan.give_back(view, Reason.RELEASED_HEALTHY, message, now)


def retry(view: CaseView, now: datetime) -> Plan:
    """The case tries again, and every guard stands before its start; where nothing is left to try, it says so."""
    case, policy, following = view.case, view.policy, view.next
    user = guard.set_by(case.set_by.retry)
    answered = replace(case, retries=case.retry)
    if policy is not None and case.new_node:
        return _try_again(case, answered, f"{policy.verify.probe} is tried again", now)
    if policy is None or not isinstance(following, Next):
        reason = following if isinstance(following, Reason) else Reason.POLICY_MISSING
        message = f"a person must look: spec.retry is {case.retry}{user}, but {_nothing_left(case, policy, reason)}"
        return (SaveCase(case, advance(answered, reason, message, now)),)
    operation = policy.ladder[following.rung].operation
    return _try_again(case, answered, f"it tries again from rung {following.rung + 1}, {operation}", now)


def _try_again(case: Case, answered: Case, what: str, now: datetime) -> Plan:
    message = f"spec.retry is {case.retry}{guard.set_by(case.set_by.retry)}: {what}"
    after = advance(answered.trying_again(now), Reason.RETRIED_BY_USER, message, now, Phase.VERIFYING)
    return (SaveCase(case, replace(after, healthy_since=None, blocks=())),)


def _nothing_left(case: Case, policy: Policy | None, reason: Reason) -> str:
    """Why nothing is tried, and what lets the next rise of spec.retry begin something."""
    if policy is None:
        return f"policy {case.policy} does not exist: create it again, {_OR_BY_HAND}"
    if policy.unreadable:
        return f"policy {case.policy} cannot be read: {REMEDY[Reason.POLICY_UNREADABLE]}, {_OR_BY_HAND}"
    if not policy.ladder:
        return f"the ladder of policy {case.policy} is empty: write spec.ladder of it, {_OR_BY_HAND}"
    if reason is Reason.ATTEMPTS_SPENT and has_room(case):
        raised = f"raise attempts.max of policy {case.policy}, which is {policy.attempts_max}"
        return f"its attempts are spent: {raised}, {_OR_BY_HAND}"
    return f"nothing is left to try: {REMEDY[reason]}"


_OR_BY_HAND = "then raise spec.retry again; or repair the node by hand, then set spec.release of the case to true"


PLANS: Mapping[Offer, Callable[[CaseView, datetime], Plan]] = {
    Offer.NOTHING: nothing,
    Offer.WATCH: case_plan.stop,
    Offer.RELEASE: release,
    Offer.RETRY: retry,
    Offer.PROBE: case_plan.probe,
    Offer.SAY: say,
    Offer.TAKE_BACK: take_back,
    Offer.TELL_OUT: case_plan.take_out,
}
