"""The comments of an issue: each event is reported in one comment, once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from remediator.core.case import Case, Phase
from remediator.core.ticket import About, CauseState, ReportedCause
from remediator.tickets.reconcile.causes import SHARED, by_key
from remediator.tickets.reconcile.input import TicketInput
from remediator.tickets.render.hints import remedy
from remediator.tickets.render.markdown import code, moment, span

Causes = dict[str, ReportedCause]
GONE: Mapping[About, str] = {
    About.ALERT: "the alert fires on no node any more, or each has an issue of its own",
    About.OWNER: "the janitor has taken each notice back, or the work is gone",
    About.OVERFLOW: "each issue that waited was opened, or is not needed any more",
}


@dataclass(frozen=True, slots=True)
class EventComment:
    """One event to tell: of which cause, and the line."""

    key: str
    line: str


def comments(reported: Iterable[ReportedCause], given: TicketInput) -> tuple[EventComment, ...]:
    """What was not reported yet: a new cause, an escalation, the end of a case. The text tells of alerts that end."""
    before, now = by_key(reported), by_key(given.causes)
    return (*_begun(before, now, given), *_ended(before, now, given))


def _begun(before: Causes, now: Causes, given: TicketInput) -> Iterator[EventComment]:
    for key, cause in now.items():
        old = before.get(key)
        over = old is not None and old.state is CauseState.OVER and not key.startswith("alert:")
        if cause.state is CauseState.ESCALATED and (old is None or old.state is not CauseState.ESCALATED):
            yield EventComment(key, _escalated(key, given))
        elif old is None or over:
            yield EventComment(key, f"**New:** {_named(key, given)}")


def _ended(before: Causes, now: Causes, given: TicketInput) -> Iterator[EventComment]:
    for key, old in before.items():
        if key not in now and old.state is not CauseState.OVER and not key.startswith("alert:"):
            yield EventComment(key, _over(key, given))


def _case_of(key: str, given: TicketInput) -> Case | None:
    return next((linked.case for linked in given.cases if f"case:{linked.case.name}" == key), None)


def _named(key: str, given: TicketInput) -> str:
    kind, _, name = key.partition(":")
    case = _case_of(key, given)
    if kind == "alert":
        return f"{code(name)}." if given.subject.about is About.OWNER else f"alert {code(name)} fires too."
    if key == SHARED and given.spread:
        return f"it fires on {given.spread.nodes} nodes."
    if key == SHARED and given.backlog:
        return f"{given.backlog.count} issues are not opened yet."
    if key == SHARED or case is None:
        return "the nodes of this issue have it again." if key == SHARED else f"case {code(name)}."
    trigger = f" {code(case.trigger.condition)}: {code(case.trigger.message, 400)}" if case.trigger else ""
    return f"case {code(case.name)} on {code(case.node)},{trigger or ' opened by hand.'}"


def _escalated(key: str, given: TicketInput) -> str:
    case = _case_of(key, given) or next((linked.case for linked in given.cases if linked.escalated), None)
    if case is None:
        return "**A person is needed.**"
    return f"**A person is needed** on {code(case.node)}: {code(case.message, 400)}. To do: {remedy(case.reason)}."


def _over(key: str, given: TicketInput) -> str:
    case = _case_of(key, given)
    if case is not None:
        return f"**{_end_word(case)}:** {ending(case)}"
    name = "what the nodes had in common" if key == SHARED else f"case {code(key.partition(':')[2])}"
    return f"**Over:** {name} is no cause of this issue any more."


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


def comment(events: Iterable[EventComment]) -> str:
    """One comment of all that is new."""
    return "\n".join(f"- {event.line}" for event in events)


def closing_comment(given: TicketInput) -> str:
    """The comment before closing: how everything ended."""
    ended = [linked for linked in given.cases if not linked.case.open]
    lines = [f"- {ending(linked.case)}" for linked in ended[:20]]
    lines += [f"- … and {len(ended) - 20} more cases" for _ in ended[20:21]]
    noun = "notice" if given.subject.about is About.OWNER else "alert"
    lines += [
        f"- {noun} {code(alert.name)} ended at {moment(alert.ended)}, after {span(alert.starts, alert.ended)}."
        for alert in given.alerts[:20]
        if not alert.firing
    ]
    nothing = GONE.get(given.subject.about, "its case was deleted or moved, or its policy asks for no ticket now")
    return "\n".join(
        ["No cause of this issue is left; closing it.", "", *(lines or [f"- Its cause is gone: {nothing}."])]
    )
