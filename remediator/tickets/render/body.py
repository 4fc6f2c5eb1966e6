"""A situation → title, body and labels of its issue. Pure: no clock, so the same situation is the same text."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from remediator.core.case import Case
from remediator.core.policy import Severity
from remediator.core.ticket import About, Subject
from remediator.tickets.reconcile.situation import LinkedCase, Situation
from remediator.tickets.render.hints import advice
from remediator.tickets.render.markdown import BEGIN, END, code, document, moment
from remediator.tickets.render.tables import alerts, attempts, cases

LABEL = "remediator"
SEVERITY_LABELS: Mapping[Severity, str] = {severity: f"severity: {severity.value.lower()}" for severity in Severity}
MOST = 65_536  # characters that GitHub takes
ROOM = 64_000
EVIDENCE = 12_000
FAULTS, DOCUMENTS = 40, 2
NOTICE = "_Remediator keeps everything above this line up to date. Write below it, or in comments: that stays._"


@dataclass(frozen=True, slots=True)
class Marker:
    """What tells our issues apart: `key` one subject of one cluster, `opened` one of its issues."""

    key: str
    opened: datetime

    @property
    def searched(self) -> str:
        """What every issue of the subject holds: plain words, since a search knows no others."""
        return f"remediator ticket {self.key}"

    @property
    def whole(self) -> str:
        """What only this issue holds."""
        return f"{self.searched} {self.opened:%Y%m%dT%H%M%SZ}"


def key(cluster_uid: str, ticket: str) -> str:
    """The same subject in two clusters that share a repository has two keys."""
    return hashlib.sha256(f"{cluster_uid}\0{ticket}".encode()).hexdigest()[:16]


def title(situation: Situation, cluster: str) -> str:
    """Short, and never rewritten: what it is about and what came first."""
    prefix = f"[{cluster}] " if cluster else ""
    return _plain(f"{prefix}{_about(situation.subject)}: {_first(situation)}")


def _about(subject: Subject) -> str:
    match subject.about:
        case About.NODE:
            return subject.node
        case About.CAUSE:
            return "many nodes"
    return subject.cluster or "alert"


def _first(situation: Situation) -> str:
    begun = [(linked.case.created, _name(linked.case)) for linked in situation.cases if linked.wanted]
    begun += [(alert.starts, alert.name) for alert in situation.alerts if alert.firing]
    return min(begun)[1] if begun else "recovered"


def _name(case: Case) -> str:
    return case.trigger.condition if case.trigger else case.policy


def _plain(text: str) -> str:
    """Titles know no markdown, and @ and # must not do anything there either."""
    quiet = re.sub(r"([@#])(?=\w)", "\\1\N{ZERO WIDTH SPACE}", text.replace("`", "'"))
    return quiet if len(quiet) <= 120 else quiet[:119] + "…"


def section(
    situation: Situation, marker: Marker, previous: str = "", notices: Iterable[str] = (), room: int = ROOM
) -> str:
    """Our part of the body, at most `room` characters; what is least needed is left out first."""
    parts = [(need, text) for need, text in _parts(situation, previous, notices) if text]
    text = _joined([text for _, text in parts], marker, cut=False)
    for least in sorted({need for need, _ in parts}, reverse=True):
        if len(text) <= room:
            break
        parts = [(need, text) for need, text in parts if need < least]
        text = _joined([text for _, text in parts], marker, cut=True)
    return text


def _joined(parts: list[str], marker: Marker, cut: bool) -> str:
    more = ["_More did not fit: look with kubectl and `remediator explain`._"] if cut else []
    return "\n\n".join([f"{BEGIN}\n<!-- {marker.whole} -->", *parts, *more, f"{NOTICE}\n{END}"])


def digest(text: str) -> str:
    """What tells whether a text was written already."""
    return hashlib.sha256(text.encode()).hexdigest()


def _parts(situation: Situation, previous: str, notices: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The paragraphs in the order of reading, each with its place in the order of need."""
    yield 0, _headline(situation)
    yield 3, _faults(situation)
    yield 2, "\n".join(f"- ⚠ {code(notice, 400)}" for notice in notices)
    yield 1, advice(situation)
    yield 4, cases(situation.cases)
    yield 5, attempts(situation.cases)
    yield 6, alerts(situation.alerts)
    yield 7, f"Before this: {previous}" if previous else ""
    for number, found in enumerate(_evidence(situation.cases)):
        yield 8 + number, found


def _headline(situation: Situation) -> str:
    if situation.stands:
        state = situation.severity.value
    else:
        state = "a case is still open" if situation.kept else "nothing stands behind this issue any more"
    return f"**{_subject(situation.subject)}** · {state}"


def _faults(situation: Situation) -> str:
    lines = [_wrong(linked) for linked in situation.cases if linked.wanted]
    firing = [alert for alert in situation.alerts if alert.firing]
    lines += [f"- alert {code(alert.name)} fires since {moment(alert.starts)}" for alert in firing]
    more = [f"- … and {len(lines) - FAULTS} more"] if len(lines) > FAULTS else []
    return "\n".join([*lines[:FAULTS], *more])


def _subject(subject: Subject) -> str:
    match subject.about:
        case About.NODE:
            return f"Node {code(subject.node)}"
        case About.CAUSE:
            return f"Many nodes say {code(subject.condition)}: {code(subject.message)}"
    return f"Alert {code(subject.alert)}" + (f" in cluster {code(subject.cluster)}" if subject.cluster else "")


def _wrong(linked: LinkedCase) -> str:
    case = linked.case
    if case.trigger is None:
        return f"- {code(case.node)}: opened by hand under policy {code(case.policy)} at {moment(case.created)}"
    trigger = case.trigger
    said = f" ({code(trigger.reason)}: {code(trigger.message, 400)})" if trigger.reason or trigger.message else ""
    return f"- {code(case.node)}: {code(trigger.condition)} is {trigger.status} since {moment(trigger.since)}{said}"


def _evidence(cases: Iterable[LinkedCase]) -> Iterator[str]:
    found = [linked.case for linked in cases if linked.case.evidence]
    for case in found[:DOCUMENTS]:
        text = document(case.evidence, EVIDENCE)
        yield f"<details><summary>Evidence of {case.name}</summary>\n\n{text}\n\n</details>"
