"""The title of an issue: short, in one line, and never written again. Pure."""

import re
from functools import cache

import jinja2
from jinja2 import meta

from remediator.core.text import printable
from remediator.core.ticket import About
from remediator.tickets.reconcile.input import TicketInput
from remediator.tickets.render.content import Content, began_by, names
from remediator.tickets.render.links import NAMES
from remediator.tickets.render.template import BadTemplate, TextTemplate, environment, template

LONGEST = 120  # characters
KNOWN = (*NAMES, "first")  # what a template of a title may name; `first` is what began first


def title(given: TicketInput, cluster: str) -> str:
    """What it is about and what began first."""
    return _plain(f"{_prefix(cluster)}{_about(given)}: {_first(given)}")


def titled(content: Content) -> tuple[str, str]:
    """The title by the template of the route, and what is wrong with that: then the usual one."""
    usual = title(content.given, content.cluster)
    if content.title is None:
        return usual, ""
    try:
        made = _one_line(content.title.render({**names(content), "first": _first(content.given)}))
    except BadTemplate as bad:
        return usual, f"{bad}; the usual title was used; correct that field"
    if not made:
        return usual, f"template {content.title.name}: it gives no text; the usual title was used; correct that field"
    return _plain(f"{_prefix(content.cluster)}{made}"), ""


@cache
def _titles() -> jinja2.Environment:
    return environment(lambda value: _one_line(str(value)))


def parse_title(where: str, text: str) -> TextTemplate:
    """A template of titles. Raises BadTemplate where it does not compile, or names what nobody knows."""
    parsed = template(where, text, _titles())
    if isinstance(parsed.compiled, BadTemplate):
        raise parsed.compiled
    if unknown := sorted(meta.find_undeclared_variables(_titles().parse(text)) - set(KNOWN)):
        raise BadTemplate(where, 0, f"{unknown[0]!r} is not known; known are {', '.join(KNOWN)}")
    return parsed


def _prefix(cluster: str) -> str:
    return f"[{cluster}] " if cluster else ""


def _about(given: TicketInput) -> str:
    subject = given.subject
    match subject.about:
        case About.NODE:
            return subject.node
        case About.CAUSE:
            return "many nodes"
        case About.OWNER:
            return subject.owner
        case About.OVERFLOW:
            return "many issues"
    return "many nodes" if given.spread else subject.cluster or "alert"


def _first(given: TicketInput) -> str:
    begun = [(linked.case.created, began_by(linked.case)) for linked in given.cases if linked.wanted]
    if given.backlog:
        return "opened later, since so many were opened within an hour"
    begun += [(alert.starts, alert.name) for alert in given.alerts if alert.firing and given.tells(alert)]
    begun += [(shown.alert.starts, shown.alert.name) for shown in given.spread.shown] if given.spread else []
    return min(begun)[1] if begun else "recovered"


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _plain(text: str) -> str:
    """Titles know no markdown, and @ and # must not do anything there either."""
    quiet = re.sub(r"([@#])(?=\w)", "\\1\N{ZERO WIDTH SPACE}", text.replace("`", "'"))
    return quiet if len(quiet) <= LONGEST else quiet[: LONGEST - 1] + "…"
