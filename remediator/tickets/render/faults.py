"""The first lines of an issue: what it is about, and its causes."""

from remediator.core.case import Phase
from remediator.core.keep_out import terms
from remediator.core.owner_work import object_of
from remediator.core.reasons import Reason
from remediator.core.ticket import About, Alert
from remediator.tickets.floods.fold import shared_subject
from remediator.tickets.reconcile.input import LinkedCase, TicketInput
from remediator.tickets.render.markdown import code, moment

FAULTS = 40
UNPROVEN = frozenset({Reason.HEALTH_UNKNOWN, Reason.VERIFY_TIMEOUT})  # why a case is escalated whose fault has gone
KEPT = "an alert asks to keep this open: close it by hand"


def headline(given: TicketInput) -> str:
    """What the issue is about, and how severe it is."""
    if given.active:
        state = given.severity.value
    else:
        state = "a case is still open" if given.case_open else "no cause is left"
        state += f"; {KEPT}" if given.kept_open and not given.case_open else ""
    return f"**{_subject(given)}** · {state}"


def faults(given: TicketInput) -> str:
    """One line for each cause: what, since when, and what its detector says."""
    lines = [_fault(linked) for linked in given.cases if linked.wanted]
    firing = [alert for alert in given.alerts if alert.firing]
    lines += [_alert(alert, given) for alert in firing]
    if given.backlog:
        lines.append(
            f"- {given.backlog.per_hour} issues are opened within an hour at most; these come later, by themselves"
        )
    more = [f"- … and {len(lines) - FAULTS} more"] if len(lines) > FAULTS else []
    return "\n".join([*lines[:FAULTS], *more])


def _alert(alert: Alert, given: TicketInput) -> str:
    if given.subject.about is About.OWNER:
        return f"- {code(object_of(alert), 330)}: {code(alert.summary, 400)}. Told at {moment(alert.starts)}"
    return f"- alert {code(alert.name)} fires since {moment(alert.starts)}{_of_many(alert, given)}"


def _on_nodes(given: TicketInput) -> str:
    if given.spread is None:
        return ""
    return " on one node" if given.spread.nodes == 1 else f" on {given.spread.nodes} nodes"


def _of_many(alert: Alert, given: TicketInput) -> str:
    return "" if given.tells(alert) else f" on many nodes: see the issue of Ticket {code(shared_subject(alert).name)}"


def _subject(given: TicketInput) -> str:
    subject = given.subject
    match subject.about:
        case About.NODE:
            return f"Node {code(subject.node)}"
        case About.CAUSE:
            return f"Many nodes report {code(subject.condition)}: {code(subject.message)}"
        case About.OWNER:
            return f"Work of {code(subject.owner)}"
        case About.OVERFLOW:
            count = given.backlog.count if given.backlog else "No"
            return f"{count} issues are not opened yet"
    where = f" in cluster {code(subject.cluster)}" if subject.cluster else ""
    return f"Alert {code(subject.alert)}{where}" + _on_nodes(given)


def _fault(linked: LinkedCase) -> str:
    case = linked.case
    if case.manual and case.keep_out:
        return f"- {code(case.node)}: taken out {code(terms(case), 400)}"
    if case.manual:
        return f"- {code(case.node)}: {code(case.manual.template)} was asked for by {code(case.manual.requested_by)}"
    if case.trigger is None:
        return f"- {code(case.node)}: opened by hand under policy {code(case.policy)} at {moment(case.created)}"
    trigger = case.trigger
    reason = f" ({code(trigger.reason)}: {code(trigger.message, 400)})" if trigger.reason or trigger.message else ""
    unproven = case.phase is Phase.ESCALATED and case.reason in UNPROVEN  # the case says what it has shown since
    verb = "was" if unproven or case.healthy_since else "is"
    seen = f"{code(trigger.condition)} {verb} {code(trigger.status)} since {moment(trigger.since)}"
    return f"- {code(case.node)}: {seen}{reason}"
