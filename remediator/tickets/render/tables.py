"""The tables of an issue: cases, attempts, alerts. "" if there is nothing to show."""

from collections.abc import Iterable

from remediator.core.case import Phase
from remediator.core.ticket import Alert
from remediator.tickets.reconcile.input import LinkedCase
from remediator.tickets.render.markdown import code, moment, span, table

CASES, ATTEMPTS, ALERTS = 40, 30, 64


def cases(cases: Iterable[LinkedCase]) -> str:
    """Every case, the open ones first."""
    rows = [_case_row(linked) for linked in cases]
    head = ("case", "node", "policy", "phase", "rung", "since", "why")
    return "### Cases\n\n" + table(head, rows, CASES) if rows else ""


def _case_row(linked: LinkedCase) -> tuple[str, ...]:
    case = linked.case
    blocks = [f"{block.reason.value}: {code(block.message, 160)}" for block in case.blocks]
    why = "; ".join(blocks) or f"{case.reason.value if case.reason else ''} {code(case.message, 160)}".strip()
    phase = case.phase.value or "New"
    return code(case.name), code(case.node), code(case.policy), phase, _rung(linked), moment(case.created), why


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


def alerts(received: Iterable[Alert]) -> str:
    """Every alert, those that fire first."""
    rows = [
        (
            code(alert.name, 80),
            alert.severity.value,
            moment(alert.starts),
            "fires" if alert.firing else moment(alert.ended),
            code(", ".join(f"{name}={value}" for name, value in alert.labels), 120),
            code(alert.summary, 160),
        )
        for alert in sorted(received, key=lambda alert: (not alert.firing, alert.severity.rank, alert.starts))
    ]
    head = ("alert", "severity", "since", "until", "labels", "summary")
    return "### Alerts\n\n" + table(head, rows, ALERTS) if rows else ""
