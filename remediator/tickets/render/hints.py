"""What a user should do now, with the commands to copy."""

import re
from collections.abc import Iterable, Iterator

from remediator.core.case import Case
from remediator.core.failures import close_command
from remediator.core.reasons import REMEDY, Reason
from remediator.core.ticket import Alert
from remediator.tickets.reconcile.input import LinkedCase, TicketInput
from remediator.tickets.reconcile.wanted import needs_user
from remediator.tickets.render.markdown import block, link

COMMANDS = 5


def advice(given: TicketInput) -> str:
    """What a user should do now; nothing where the case goes on by itself."""
    waiting = [linked for linked in given.cases if linked.wanted and (linked.escalated or _waits(linked.case))]
    lines = [f"1. {text}" for text in dict.fromkeys(_remedy(linked) for linked in waiting)]
    lines += [f"1. {link(url)}" for url in dict.fromkeys(_runbooks(given.alerts))]
    if not lines and any(linked.case.open for linked in given.cases):
        lines = ["Nothing: the repair is under way. This issue says when a person is needed."]
    elif not lines and given.active:
        lines = ["1. Look at the alerts below; nothing is being repaired."]
    commands = list(_commands(given, waiting))
    if not lines and not commands:
        return ""
    return "\n".join(["### What to do", "", *lines, "", *([block("\n".join(commands), "sh")] if commands else [])])


def _runbooks(alerts: Iterable[Alert]) -> Iterator[str]:
    return (alert.runbook for alert in alerts if alert.firing and alert.runbook)


def _waits(case: Case) -> bool:
    return any(needs_user(block) for block in case.blocks)


def _remedy(linked: LinkedCase) -> str:
    """The remedy of the reason for which a user is needed, and that reason."""
    case = linked.case
    blocking = (block.reason for block in case.blocks if needs_user(block))
    reason = case.reason if linked.escalated else next(blocking, None)
    words = remedy(reason)
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
    failing = dict.fromkeys(linked.case.policy for linked in waiting if _failing(linked.case))
    if failing:
        yield "# once it is known why the attempts are in vain, let others start:"
    for policy in [policy for policy in failing if _harmless(policy)][:COMMANDS]:
        yield close_command(policy)
    released = [linked.case.name for linked in waiting if linked.escalated][:COMMANDS]
    if released:
        yield "# once it is repaired, give it back:"
    for name in released:
        yield f"""kubectl patch noderemediation {name} --type=merge -p '{{"spec":{{"release":true}}}}'"""
    if not given.cases and _harmless(given.subject.node):
        yield f"remediator explain {given.subject.node}"
        yield f"kubectl describe node {given.subject.node}"


def _failing(case: Case) -> bool:
    return any(block.reason is Reason.POLICY_FAILING for block in case.blocks)


def _harmless(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) is not None
