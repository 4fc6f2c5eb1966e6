"""What people should hear of at once: each thing is told in one comment, once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from remediator.core.case import Case, Phase
from remediator.core.ticket import CauseState, ReportedCause
from remediator.tickets.reconcile.situation import SHARED, Situation, known
from remediator.tickets.render.hints import remedy
from remediator.tickets.render.markdown import code, moment, span


@dataclass(frozen=True, slots=True)
class News:
    """One thing to tell: of which cause, and the line."""

    key: str
    line: str


def news(told: Iterable[ReportedCause], situation: Situation) -> tuple[News, ...]:
    """What was not told yet: a new cause, an escalation, the end of a case. Alerts that end are told by the text."""
    before, now = known(told), known(situation.causes)
    return (*_begun(before, now, situation), *_ended(before, now, situation))


def _begun(before: dict[str, ReportedCause], now: dict[str, ReportedCause], situation: Situation) -> Iterator[News]:
    for key, cause in now.items():
        old = before.get(key)
        over = old is not None and old.state is CauseState.OVER and not key.startswith("alert:")
        if cause.state is CauseState.ESCALATED and (old is None or old.state is not CauseState.ESCALATED):
            yield News(key, _escalated(key, situation))
        elif old is None or over:
            yield News(key, f"**New:** {_named(key, situation)}")


def _ended(before: dict[str, ReportedCause], now: dict[str, ReportedCause], situation: Situation) -> Iterator[News]:
    for key, old in before.items():
        if key not in now and old.state is not CauseState.OVER and not key.startswith("alert:"):
            yield News(key, _over(key, situation))


def _of(key: str, situation: Situation) -> Case | None:
    return next((linked.case for linked in situation.cases if f"case:{linked.case.name}" == key), None)


def _named(key: str, situation: Situation) -> str:
    kind, _, name = key.partition(":")
    case = _of(key, situation)
    if kind == "alert":
        return f"alert {code(name)} fires too."
    if key == SHARED or case is None:
        return "the nodes of this issue have it again." if key == SHARED else f"case {code(name)}."
    trigger = f" {code(case.trigger.condition)}: {code(case.trigger.message, 400)}" if case.trigger else ""
    return f"case {code(case.name)} on {code(case.node)},{trigger or ' opened by hand.'}"


def _escalated(key: str, situation: Situation) -> str:
    case = _of(key, situation) or next((found.case for found in situation.cases if found.escalated), None)
    if case is None:
        return "**A person is needed.**"
    return f"**A person is needed** on {code(case.node)}: {code(case.message, 400)}. To do: {remedy(case.reason)}."


def _over(key: str, situation: Situation) -> str:
    case = _of(key, situation)
    if case is not None:
        return f"**{_end_word(case)}:** {ending(case)}"
    name = "what the nodes had in common" if key == SHARED else f"case {code(key.partition(':')[2])}"
    return f"**Over:** {name} does not stand behind this issue any more."


def _end_word(case: Case) -> str:
    return "Goes on by itself" if case.open else case.phase.value or "Over"


def ending(case: Case) -> str:
    """How one case ended, or that it goes on."""
    if case.ended is None:
        return f"case {code(case.name)} does not need a person any more."
    tried = ", ".join(f"{attempt.template} {attempt.outcome.value}" for attempt in case.attempts)
    how = f"{case.reason.value if case.reason else case.phase.value}, {code(case.message, 400)}"
    after = f" after {span(case.created, case.ended)}" if case.phase is Phase.RECOVERED else f" at {moment(case.ended)}"
    return f"case {code(case.name)} on {code(case.node)} ended{after}: {how}." + (f" Tried: {tried}." if tried else "")


def comment(found: Iterable[News]) -> str:
    """One comment of all that is new."""
    return "\n".join(f"- {item.line}" for item in found)


def closing_comment(situation: Situation) -> str:
    """The comment before closing: how everything ended."""
    ended = [linked for linked in situation.cases if not linked.case.open]
    lines = [f"- {ending(linked.case)}" for linked in ended[:20]]
    lines += [f"- … and {len(ended) - 20} more cases" for _ in ended[20:21]]
    lines += [
        f"- alert {code(alert.name)} ended at {moment(alert.ended)}, after {span(alert.starts, alert.ended)}."
        for alert in situation.alerts[:20]
        if not alert.firing
    ]
    nothing = ["- What called for it is gone: its case was deleted or moved, or its policy asks for no ticket now."]
    return "\n".join(["Nothing stands behind this issue any more; closing it.", "", *(lines or nothing)])
