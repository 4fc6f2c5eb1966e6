"""The input of a ticket → the text of its issue. Pure: no clock, so the same input is the same text."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from remediator.core.policy import Severity
from remediator.core.ticket import About
from remediator.tickets.reconcile.input import LinkedCase
from remediator.tickets.render.content import Content, names, plain
from remediator.tickets.render.faults import faults, headline
from remediator.tickets.render.hints import advice
from remediator.tickets.render.links import links
from remediator.tickets.render.machine import lost, machine
from remediator.tickets.render.markdown import code, document
from remediator.tickets.render.outlook import outlook
from remediator.tickets.render.tables import alerts, at_stake, attempts, cases, history, on_nodes, waiting
from remediator.tickets.render.template import BadTemplate, Markdown, TextTemplate, shipped
from remediator.tickets.render.titles import titled

LABEL = "remediator"
SEVERITY_LABELS: Mapping[Severity, str] = {severity: f"severity: {severity.value.lower()}" for severity in Severity}
EVIDENCE = 12_000
DOCUMENTS = 2
PARAGRAPHS = (
    *("headline", "faults", "notice", "outlook", "todo", "links", "machine", "lost", "cases", "at_stake", "attempts"),
    *("history", "alerts", "previous", "evidence"),
)
NOT_ALL = "_More did not fit: look with kubectl and `remediator explain`._"


class Paragraph(NamedTuple):
    """One paragraph: its place in the order of need, 0 the most needed; its name in templates; its text."""

    need: int
    name: str
    text: str


class IssueText(NamedTuple):
    """The text of an issue. `problem`: why it, or the title, was not made by the template of the route."""

    text: str
    problem: str = ""


def key(cluster_uid: str, ticket: str) -> str:
    """The same subject in two clusters that share a repository has two keys."""
    return hashlib.sha256(f"{cluster_uid}\0{ticket}".encode()).hexdigest()[:16]


def section(content: Content, room: int) -> str:
    """The text, at most `room` characters where that is possible; what is least needed is left out first."""
    return text(content, room).text


def text(content: Content, room: int) -> IssueText:
    """The same, and what is wrong with the templates of the route."""
    problem = titled(content)[1]
    if content.template is None:
        return IssueText(_fitted(shipped(), content, room), problem)
    try:
        made = _fitted(content.template, content, room)
        if not made:
            raise BadTemplate(content.template.name, 0, "it gives no text")
        return IssueText(made, problem)
    except BadTemplate as bad:
        return IssueText(_fitted(shipped(), content, room), f"{bad}; the shipped one was used; correct it")


def _fitted(template: TextTemplate, content: Content, room: int) -> str:
    parts = [part for part in _parts(content) if part.text]
    values = plain(content)
    whole = _rendered(template, parts, values)
    for least in sorted({part.need for part in parts}, reverse=True):
        if len(whole) <= room:
            break
        parts = [part for part in parts if part.need < least]
        whole = f"{_rendered(template, parts, values)}\n\n{NOT_ALL}"
    return whole


def _rendered(template: TextTemplate, parts: Iterable[Paragraph], values: Mapping[str, object]) -> str:
    """Paragraphs that are empty leave no gap: none of ours has two empty lines of its own."""
    paragraphs = dict.fromkeys(PARAGRAPHS, Markdown())
    for part in parts:
        before = paragraphs[part.name]
        paragraphs[part.name] = Markdown(f"{before}\n\n{part.text}" if before else part.text)
    return re.sub(r"\n{3,}", "\n\n", template.render({**values, **paragraphs})).strip()


def _parts(content: Content) -> Iterator[Paragraph]:
    given, known = content.given, content.facts
    yield Paragraph(0, "headline", headline(given))
    yield Paragraph(3, "faults", faults(given))
    yield Paragraph(2, "notice", f"- ⚠ {code(content.notice, 400)}" if content.notice else "")
    yield Paragraph(3, "outlook", outlook(given.cases))
    yield Paragraph(1, "todo", advice(given))
    yield Paragraph(2, "links", links(content.links, names(content)))
    yield Paragraph(4, "machine", machine(known))
    yield Paragraph(5, "lost", lost(given.cases, known))
    yield Paragraph(4, "cases", cases(given.cases))
    yield Paragraph(4, "cases", waiting(given.backlog))
    yield Paragraph(5, "at_stake", at_stake(given.cases))
    yield Paragraph(5, "attempts", attempts(given.cases))
    yield Paragraph(6, "history", history(given.cases, known.past))
    yield Paragraph(4, "alerts", on_nodes(given.spread))
    yield Paragraph(7, "alerts", alerts(given.alerts, "notice" if given.subject.about is About.OWNER else "alert"))
    yield Paragraph(8, "previous", f"Before this: {content.previous}" if content.previous else "")
    for number, evidence in enumerate(_evidence(given.cases)):
        yield Paragraph(9 + number, "evidence", evidence)


def _evidence(cases: Iterable[LinkedCase]) -> Iterator[str]:
    documented = [linked.case for linked in cases if linked.case.evidence]
    for case in documented[:DOCUMENTS]:
        text = document(case.evidence, EVIDENCE)
        yield f"<details><summary>Evidence of {case.name}</summary>\n\n{text}\n\n</details>"
