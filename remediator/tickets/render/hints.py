"""What a user should do now, with the commands to copy."""

import re
from collections.abc import Iterable, Iterator

from remediator.core.case import Case
from remediator.core.failures import command_in
from remediator.core.keep_out import is_out
from remediator.core.owner_work import object_of
from remediator.core.reasons import REMEDY, Reason
from remediator.core.ticket import About, Alert
from remediator.tickets.reconcile.input import LinkedCase, TicketInput
from remediator.tickets.reconcile.wanted import needs_user
from remediator.tickets.render.drains import kept_pods
from remediator.tickets.render.markdown import block, link, moment

COMMANDS = 5
APPROVED = (Reason.APPROVAL_NEEDED, Reason.BLAST_RADIUS, Reason.BLAST_RADIUS_UNKNOWN)  # what an approval ends


def advice(given: TicketInput) -> str:
    """What a user should do now; nothing where the case goes on by itself."""
    waiting = [linked for linked in given.cases if linked.wanted and (linked.escalated or _waits(linked.case))]
    lines = [f"1. {text}" for linked in waiting if linked.escalated and (text := kept_pods(linked))]
    lines += [f"1. {text}" for text in dict.fromkeys(_remedy(linked) for linked in waiting)]
    lines += [f"1. {runbook}" for runbook in dict.fromkeys(_runbooks(given.alerts))]
    if not lines and any(linked.case.open for linked in given.cases):
        lines = ["Nothing: the repair is under way. This issue says when a person is needed."]
    elif given.backlog:
        lines = ["1. Look for what so much has in common; the most severe issue is opened first, and none is lost."]
    elif given.subject.about is About.OWNER and given.active:
        lines = ["1. Use it or end it; else it goes at the time above, where one is given. To keep it for 8 hours:"]
    elif not lines and given.active:
        lines = ["1. Look at the alerts below; nothing is being repaired."]
    commands = list(_commands(given, waiting))
    if not lines and not commands:
        return ""
    return "\n".join(["### What to do", "", *lines, "", *([block("\n".join(commands), "sh")] if commands else [])])


def _runbooks(alerts: Iterable[Alert]) -> Iterator[str]:
    """Links; a dash, which stands for no letters, would begin a list in the list."""
    shown = (link(alert.runbook) for alert in alerts if alert.firing)
    return (runbook for runbook in shown if runbook not in ("", "-"))


def _waits(case: Case) -> bool:
    return any(needs_user(block) for block in case.blocks)


def _remedy(linked: LinkedCase) -> str:
    """The remedy of the reason for which a user is needed, and that reason."""
    case = linked.case
    blocking = (block.reason for block in case.blocks if needs_user(block))
    reason = case.reason if linked.escalated else next(blocking, None)
    words = remedy(reason)
    if linked.escalated and case.healthy_since:
        words = f"the node looks healthy since {moment(case.healthy_since)}: where it is repaired, give it back"
    return f"{words[0].upper()}{words[1:]}. (`{reason.value if reason else case.phase.value}`)"


def remedy(reason: Reason | None) -> str:
    """What to do about a reason; at the least, look."""
    return REMEDY.get(reason, "look at the case") if reason else "look at the case"


def _commands(given: TicketInput, waiting: list[LinkedCase]) -> Iterator[str]:
    """Commands to copy; names that could mean something to a shell are left out: Kubernetes has none like that."""
    for linked in [linked for linked in given.cases if linked.case.open][:COMMANDS]:
        if _harmless(linked.case.node):
            yield f"remediator explain {linked.case.node}"
        yield f"kubectl describe noderemediation {linked.case.name}"
    closing = dict.fromkeys(command for linked in waiting for command in _closing(linked.case))
    if closing:
        yield "# once it is known why the attempts are in vain, let others start:"
    yield from list(closing)[:COMMANDS]
    approved = [linked.case.name for linked in waiting if _needs(linked.case, *APPROVED)][:COMMANDS]
    if approved:
        yield "# to let it start:"
    for name in approved:
        yield f"""kubectl patch noderemediation {name} --type=merge -p '{{"spec":{{"approved":true}}}}'"""
    taken_out = [linked.case for linked in waiting if is_out(linked.case)]
    yield from (f"remediator put-back {case.node}" for case in taken_out[:COMMANDS] if _harmless(case.node))
    escalated = [linked.case for linked in waiting if linked.escalated and linked.case not in taken_out]
    released = [case.name for case in escalated][:COMMANDS]
    if released:
        yield "# once it is repaired, give it back:"
    for name in released:
        yield f"""kubectl patch noderemediation {name} --type=merge -p '{{"spec":{{"release":true}}}}'"""
    retried = [case for case in escalated if case.tried][:COMMANDS]
    if retried:
        yield "# or, once what made its attempts fail is mended, let it try again:"
    for case in retried:
        number = max(case.retry, case.retries) + 1
        yield f"""kubectl patch noderemediation {case.name} --type=merge -p '{{"spec":{{"retry":{number}}}}}'"""
    yield from _keeping(given)
    if not given.cases and _harmless(given.subject.node):
        yield f"remediator explain {given.subject.node}"
        yield f"kubectl describe node {given.subject.node}"


def _keeping(given: TicketInput) -> Iterator[str]:
    """How an owner keeps what the janitor has told them of."""
    if given.subject.about is not About.OWNER:
        return
    for alert in [alert for alert in given.alerts if alert.firing][:COMMANDS]:
        plural, _, rest = object_of(alert).partition("/")
        namespace, _, name = rest.partition("/")
        if all(map(_harmless, (plural, namespace, name))):
            yield f"remediator keep {plural}/{name} 8h -n {namespace}"


def _closing(case: Case) -> list[str]:
    """The commands that the holds of a case name to close a breaker."""
    failing = (block for block in case.blocks if block.reason in (Reason.POLICY_FAILING, Reason.BUDGET_FAILING))
    return [command for block in failing if (command := command_in(block.message))]


def _needs(case: Case, *reasons: Reason) -> bool:
    return any(block.reason in reasons for block in case.blocks)


def _harmless(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) is not None
