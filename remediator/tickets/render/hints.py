"""What a person should do now, with the commands to copy."""

import re
from collections.abc import Iterable, Iterator

from remediator.core.case import Case
from remediator.core.reasons import REMEDY, Reason
from remediator.core.ticket import Alert
from remediator.tickets.reconcile.situation import LinkedCase, Situation
from remediator.tickets.reconcile.subject import CALLS_A_PERSON
from remediator.tickets.render.markdown import block, link

COMMANDS = 5


def advice(situation: Situation) -> str:
    """What a person should do now; nothing where the case goes on by itself."""
    calling = [linked for linked in situation.cases if linked.wanted and (linked.escalated or _calls(linked.case))]
    lines = [f"1. {text}" for text in dict.fromkeys(_remedy(linked) for linked in calling)]
    lines += [f"1. {link(url)}" for url in dict.fromkeys(_runbooks(situation.alerts))]
    if not lines and any(linked.case.open for linked in situation.cases):
        lines = ["Nothing: the repair is under way. This issue says when a person is needed."]
    elif not lines and situation.stands:
        lines = ["1. Look at the alerts below; nothing is being repaired."]
    commands = list(_commands(situation, calling))
    if not lines and not commands:
        return ""
    return "\n".join(["### What to do", "", *lines, "", *([block("\n".join(commands), "sh")] if commands else [])])


def _runbooks(alerts: Iterable[Alert]) -> Iterator[str]:
    return (alert.runbook for alert in alerts if alert.firing and alert.runbook)


def _calls(case: Case) -> bool:
    return any(found.reason in CALLS_A_PERSON for found in case.blocks)


def _remedy(linked: LinkedCase) -> str:
    """The remedy of the reason that called a person, and that reason."""
    case = linked.case
    calling = (found.reason for found in case.blocks if found.reason in CALLS_A_PERSON)
    reason = case.reason if linked.escalated else next(calling, None)
    words = remedy(reason)
    return f"{words[0].upper()}{words[1:]}. (`{reason.value if reason else case.phase.value}`)"


def remedy(reason: Reason | None) -> str:
    """What to do about a reason; at the least, look."""
    return REMEDY.get(reason, "look at the case") if reason else "look at the case"


def _commands(situation: Situation, calling: list[LinkedCase]) -> Iterator[str]:
    """Commands to copy; names that could mean something to a shell are left out: Kubernetes has none like that."""
    for linked in [linked for linked in situation.cases if linked.case.open][:COMMANDS]:
        if _harmless(linked.case.node):
            yield f"remediator explain {linked.case.node}"
        yield f"kubectl describe noderemediation {linked.case.name}"
    released = [linked.case.name for linked in calling if linked.escalated][:COMMANDS]
    if released:
        yield "# once it is repaired, give it back:"
    for name in released:
        yield f"""kubectl patch noderemediation {name} --type=merge -p '{{"spec":{{"release":true}}}}'"""
    if not situation.cases and _harmless(situation.subject.node):
        yield f"remediator explain {situation.subject.node}"
        yield f"kubectl describe node {situation.subject.node}"


def _harmless(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) is not None
