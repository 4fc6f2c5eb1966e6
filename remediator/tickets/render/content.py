"""What the text of an issue is made of, and what templates and links may name of it. Pure."""

from dataclasses import dataclass, fields
from typing import Any

from remediator.core.case import Case
from remediator.core.runbooks import runbook
from remediator.core.ticket import Alert
from remediator.tickets.reconcile.input import TicketInput
from remediator.tickets.render.facts import NONE, GpuFact, IssueFacts
from remediator.tickets.render.links import Link
from remediator.tickets.render.markdown import moment
from remediator.tickets.render.template import TextTemplate


@dataclass(frozen=True, slots=True)
class Content:
    """All that the text of an issue is made of: the same content is the same text."""

    given: TicketInput
    previous: str = ""  # the address of the issue before
    notice: str = ""  # what users should correct
    facts: IssueFacts = NONE  # about the machine
    template: TextTemplate | None = None  # None: the shipped one
    links: tuple[Link, ...] = ()
    cluster: str = ""  # the name before every title
    title: TextTemplate | None = None  # None: the usual title


def began_by(case: Case) -> str:
    """What a case began with: its condition, else its policy, else what a user asked for."""
    asked = "taken out" if case.keep_out else case.manual.template if case.manual else ""
    return case.trigger.condition if case.trigger else case.policy or asked


def plain(content: Content) -> dict[str, object]:
    """What a template may use beside the paragraphs: plain values, which are printed as code spans."""
    given = content.given
    return {
        "subject": _fields(given.subject),
        "severity": given.severity.value,
        "cluster": content.cluster,
        "node": dict(content.facts.node),
        "gpus": [_fields(gpu) for gpu in content.facts.gpus],
        "open_cases": [_plain_case(linked.case) for linked in given.cases if linked.case.open],
        "firing": [_plain_alert(alert) for alert in given.alerts if alert.firing],
    }


def _fields(noun: Any) -> dict[str, str]:
    return {field.name: str(getattr(noun, field.name)) for field in fields(noun)}


def _plain_alert(alert: Alert) -> dict[str, object]:
    shown = {"name": alert.name, "severity": alert.severity.value, "summary": alert.summary}
    return {**shown, "since": moment(alert.starts), "labels": dict(alert.labels)}


def _plain_case(case: Case) -> dict[str, str]:
    reason = case.reason.value if case.reason else ""
    shown = {"name": case.name, "node": case.node, "policy": case.policy, "phase": case.phase.value}
    shown |= {"condition": began_by(case), "reason": reason, "message": case.message}
    return shown | {"since": moment(case.created)}


def names(content: Content) -> dict[str, str]:
    """What stands for the names in links; "" for what is not known."""
    given, node = content.given, dict(content.facts.node)
    wanted = [linked.case for linked in given.cases if linked.wanted] or [linked.case for linked in given.cases]
    case = wanted[0] if wanted else None
    gpu = content.facts.gpus[0] if content.facts.gpus else GpuFact()
    alert = next((alert.name for alert in given.alerts if alert.firing), given.subject.alert)
    condition = began_by(case) if case else given.subject.condition
    return {
        "alert": alert,
        "case": case.name if case else "",
        "cluster": given.subject.cluster or content.cluster,
        "condition": condition,
        "gpu": gpu.uuid,
        "node": given.subject.node,
        "policy": case.policy if case else given.subject.policy,
        "rack": node.get("rack", ""),
        "runbook": condition if runbook(condition) else "",
        "serial": gpu.serial,
        "severity": given.severity.value,
        "zone": node.get("zone", ""),
    }
