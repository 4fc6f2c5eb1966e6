"""The tables of an issue: cases, attempts, alerts. "" if there is nothing to show."""

from collections.abc import Iterable

from remediator.core.case import Block, Case, PastCase, Phase
from remediator.core.history import held_since
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.ticket import About, Alert, Subject
from remediator.tickets.floods.fold import Spread
from remediator.tickets.floods.turns import Backlog
from remediator.tickets.reconcile.input import LinkedCase
from remediator.tickets.render.markdown import code, moment, span, table

CASES, ATTEMPTS, ALERTS, HISTORY, AT_STAKE = 40, 30, 64, 20, 40


def cases(cases: Iterable[LinkedCase]) -> str:
    """Every case, the open ones first."""
    rows = [_case_row(linked) for linked in cases]
    head = ("case", "node", "policy", "phase", "rung", "since", "why")
    return "### Cases\n\n" + table(head, rows, CASES) if rows else ""


def _case_row(linked: LinkedCase) -> tuple[str, ...]:
    case = linked.case
    why = "; ".join(_hold(case, block) for block in case.blocks) or _newest(case)
    phase = case.phase.value or "New"
    return code(case.name), code(case.node), code(case.policy), phase, _rung(linked), moment(case.created), why


def _newest(case: Case) -> str:
    return f"{case.reason.value if case.reason else ''} {code(case.message, 160)}".strip()


def _hold(case: Case, block: Block) -> str:
    """What holds a case, and since when: a length of time would be another text in each minute."""
    return f"{block.reason.value} since {moment(held_since(case, block.reason))}: {code(block.message, 160)}"


def _rung(linked: LinkedCase) -> str:
    rungs = len(linked.policy.ladder) if linked.policy else 0
    if linked.case.phase in (Phase.NEW, Phase.HELD) and not linked.case.attempts:
        return "-"
    return f"{linked.case.rung + 1} of {rungs}" if rungs else str(linked.case.rung + 1)


def attempts(cases: Iterable[LinkedCase]) -> str:
    """Every operation that was tried."""
    rows = [
        (
            code(attempt.operation),
            str(attempt.rung + 1),
            moment(attempt.started),
            span(attempt.started, attempt.finished),
            attempt.outcome.value or "running",
            code(attempt.message),
        )
        for linked in cases
        for attempt in linked.case.attempts
    ]
    head = ("operation", "rung", "started", "took", "outcome", "message")
    return "### Attempts\n\n" + table(head, rows, ATTEMPTS) if rows else ""


def at_stake(cases: Iterable[LinkedCase]) -> str:
    """The jobs that a start would end, or has ended, the largest of each case."""
    looks = [(linked.case, linked.case.blast) for linked in cases if linked.case.blast is not None]
    rows = [row for case, blast in looks for row in _at_stake_rows(case, blast)]
    head = ("case", "job", "GPUs on the node", "GPUs of the job", "works since", "GPU-hours")
    return "### Work at stake\n\n" + table(head, rows, AT_STAKE) if rows else ""


def _at_stake_rows(case: Case, blast: BlastRadius) -> list[tuple[str, ...]]:
    """A row for each job that is named, and one for all of the case."""
    name = code(case.name)
    if blast.unknown:
        return [(name, f"unknown: {code(blast.unknown, 160)}", "-", "-", "-", "-")]
    rows = [(code(str(job)), job.here, job.gpus, moment(job.since), job.gpu_hours) for job in blast.jobs]
    jobs = "job" if blast.count == 1 else "jobs"
    rows.append((f"{blast.count} {jobs} at {moment(blast.at)}", blast.here, blast.gpus, "-", blast.gpu_hours))
    return [(name, *map(str, row)) for row in rows]


def history(cases: Iterable[LinkedCase], past: Iterable[PastCase] = ()) -> str:
    """The earlier cases of node and board: `past`, and those because of which it was escalated."""
    known = {past.case: past for past in past} | {past.case: past for linked in cases for past in linked.case.history}
    rows = [
        (
            code(past.case),
            code(past.node),
            code(past.policy),
            moment(past.ended),
            code(", ".join(past.operations), 120),
            past.outcome.value,
        )
        for past in sorted(known.values(), key=lambda past: (past.ended, past.case))
    ]
    head = ("earlier case", "node", "policy", "ended", "operations", "outcome")
    return "### History\n\n" + table(head, rows, HISTORY) if rows else ""


def on_nodes(spread: Spread | None) -> str:
    """Where an alert fires that many nodes have."""
    if spread is None:
        return ""
    rows = [
        (
            code(node_alert.node),
            node_alert.alert.severity.value,
            moment(node_alert.alert.starts),
            code(", ".join(f"{name}={value}" for name, value in node_alert.alert.labels), 120),
            code(node_alert.alert.summary, 160),
        )
        for node_alert in spread.shown
    ]
    more = f"\n\n… and {spread.nodes - len(rows)} more: `kubectl get tickets`" if spread.nodes > len(rows) else ""
    return "### Nodes\n\n" + table(("node", "severity", "since", "labels", "summary"), rows, ALERTS) + more


def waiting(backlog: Backlog | None) -> str:
    """Issues that are not opened yet, in the order in which they will be."""
    if backlog is None:
        return ""
    rows = [
        (
            about(planned.place.subject),
            code(planned.place.subject.name),
            planned.place.severity.value,
            moment(planned.place.since),
            moment(planned.opens),
        )
        for planned in backlog.shown
    ]
    more = f"\n\n… and {backlog.count - len(rows)} more: `kubectl get tickets`" if backlog.count > len(rows) else ""
    head = ("about", "Ticket", "severity", "since", "opened about")
    return "### Opened later\n\n" + table(head, rows, len(rows)) + more


def about(subject: Subject) -> str:
    """What an issue will be about, in a few words."""
    match subject.about:
        case About.NODE:
            return code(subject.node)
        case About.CAUSE:
            return f"{code(subject.condition)} on many nodes"
        case About.OWNER:
            return f"work of {code(subject.owner)}"
    return f"alert {code(subject.alert)}"


def alerts(received: Iterable[Alert], noun: str = "alert") -> str:
    """Every alert, those that fire first; of the work of an owner each is a notice."""
    rows = [
        (
            code(alert.name, 80),
            alert.severity.value,
            moment(alert.starts),
            moment(alert.ended) if alert.ended else "now" if noun == "notice" else "fires",
            code(", ".join(f"{name}={value}" for name, value in alert.labels), 120),
            code(alert.summary, 160),
        )
        for alert in sorted(received, key=lambda alert: (not alert.firing, alert.severity.rank, alert.starts))
    ]
    head = (noun, "severity", "since", "until", "labels", "summary")
    return f"### {noun.capitalize()}s\n\n" + table(head, rows, ALERTS) if rows else ""
