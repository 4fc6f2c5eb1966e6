"""The input of a ticket → title, text and labels of its issue. Pure: no clock, so the same input is the same text."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from remediator.core.case import Case
from remediator.core.policy import Severity
from remediator.core.ticket import About, Subject
from remediator.tickets.reconcile.input import LinkedCase, TicketInput
from remediator.tickets.render.hints import advice
from remediator.tickets.render.markdown import code, document, moment
from remediator.tickets.render.tables import alerts, at_stake, attempts, cases, history

LABEL = "remediator"
SEVERITY_LABELS: Mapping[Severity, str] = {severity: f"severity: {severity.value.lower()}" for severity in Severity}
EVIDENCE = 12_000
FAULTS, DOCUMENTS = 40, 2
NOT_ALL = "_More did not fit: look with kubectl and `remediator explain`._"


@dataclass(frozen=True, slots=True)
class Content:
    """All that the text of an issue is made of: the same content is the same text."""

    given: TicketInput
    previous: str = ""  # the address of the issue before
    notice: str = ""  # what users should correct


def key(cluster_uid: str, ticket: str) -> str:
    """The same subject in two clusters that share a repository has two keys."""
    return hashlib.sha256(f"{cluster_uid}\0{ticket}".encode()).hexdigest()[:16]


def title(given: TicketInput, cluster: str) -> str:
    """Short, and never rewritten: what it is about and what began first."""
    prefix = f"[{cluster}] " if cluster else ""
    return _plain(f"{prefix}{_about(given.subject)}: {_first(given)}")


def _about(subject: Subject) -> str:
    match subject.about:
        case About.NODE:
            return subject.node
        case About.CAUSE:
            return "many nodes"
    return subject.cluster or "alert"


def _first(given: TicketInput) -> str:
    begun = [(linked.case.created, _name(linked.case)) for linked in given.cases if linked.wanted]
    begun += [(alert.starts, alert.name) for alert in given.alerts if alert.firing]
    return min(begun)[1] if begun else "recovered"


def _name(case: Case) -> str:
    return case.trigger.condition if case.trigger else case.policy


def _plain(text: str) -> str:
    """Titles know no markdown, and @ and # must not do anything there either."""
    quiet = re.sub(r"([@#])(?=\w)", "\\1\N{ZERO WIDTH SPACE}", text.replace("`", "'"))
    return quiet if len(quiet) <= 120 else quiet[:119] + "…"


def section(content: Content, room: int) -> str:
    """The text, at most `room` characters where that is possible; what is least needed is left out first."""
    parts = [(need, text) for need, text in _parts(content) if text]
    text = _joined([text for _, text in parts], cut=False)
    for least in sorted({need for need, _ in parts}, reverse=True):
        if len(text) <= room:
            break
        parts = [(need, text) for need, text in parts if need < least]
        text = _joined([text for _, text in parts], cut=True)
    return text


def _joined(parts: list[str], cut: bool) -> str:
    return "\n\n".join([*parts, *([NOT_ALL] if cut else [])])


def _parts(content: Content) -> Iterator[tuple[int, str]]:
    """The paragraphs in the order of reading, each with its place in the order of need."""
    given = content.given
    yield 0, _headline(given)
    yield 3, _faults(given)
    yield 2, f"- ⚠ {code(content.notice, 400)}" if content.notice else ""
    yield 1, advice(given)
    yield 4, cases(given.cases)
    yield 5, at_stake(given.cases)
    yield 5, attempts(given.cases)
    yield 6, history(given.cases)
    yield 7, alerts(given.alerts)
    yield 8, f"Before this: {content.previous}" if content.previous else ""
    for number, evidence in enumerate(_evidence(given.cases)):
        yield 9 + number, evidence


def _headline(given: TicketInput) -> str:
    if given.active:
        state = given.severity.value
    else:
        state = "a case is still open" if given.case_open else "no cause is left"
    return f"**{_subject(given.subject)}** · {state}"


def _faults(given: TicketInput) -> str:
    lines = [_fault(linked) for linked in given.cases if linked.wanted]
    firing = [alert for alert in given.alerts if alert.firing]
    lines += [f"- alert {code(alert.name)} fires since {moment(alert.starts)}" for alert in firing]
    more = [f"- … and {len(lines) - FAULTS} more"] if len(lines) > FAULTS else []
    return "\n".join([*lines[:FAULTS], *more])


def _subject(subject: Subject) -> str:
    match subject.about:
        case About.NODE:
            return f"Node {code(subject.node)}"
        case About.CAUSE:
            return f"Many nodes report {code(subject.condition)}: {code(subject.message)}"
    return f"Alert {code(subject.alert)}" + (f" in cluster {code(subject.cluster)}" if subject.cluster else "")


def _fault(linked: LinkedCase) -> str:
    case = linked.case
    if case.manual:
        return f"- {code(case.node)}: {code(case.manual.template)} was asked for by {code(case.manual.requested_by)}"
    if case.trigger is None:
        return f"- {code(case.node)}: opened by hand under policy {code(case.policy)} at {moment(case.created)}"
    trigger = case.trigger
    reason = f" ({code(trigger.reason)}: {code(trigger.message, 400)})" if trigger.reason or trigger.message else ""
    seen = f"{code(trigger.condition)} is {code(trigger.status)} since {moment(trigger.since)}"
    return f"- {code(case.node)}: {seen}{reason}"


def _evidence(cases: Iterable[LinkedCase]) -> Iterator[str]:
    documented = [linked.case for linked in cases if linked.case.evidence]
    for case in documented[:DOCUMENTS]:
        text = document(case.evidence, EVIDENCE)
        yield f"<details><summary>Evidence of {case.name}</summary>\n\n{text}\n\n</details>"
