"""Links of an issue to pages of yours: dashboard, silence, runbook. What stands for a name is percent-encoded."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote

import jinja2
from jinja2 import meta

from remediator.tickets.render.markdown import link
from remediator.tickets.render.template import BadTemplate, TextTemplate, environment, template

NAMES = (
    *("alert", "case", "cluster", "condition", "gpu", "node"),
    *("policy", "rack", "runbook", "serial", "severity", "zone"),
)
CALLED = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 _-]{0,38}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Link:
    """One link: what it is called, its address as a template, and the names that the address needs."""

    name: str
    address: TextTemplate
    needs: frozenset[str]


@cache
def _addresses() -> jinja2.Environment:
    return environment(lambda value: quote(str(value), safe=""))


def parse_link(name: str, address: str) -> Link:
    """Raises BadTemplate."""
    if not CALLED.fullmatch(name):
        raise BadTemplate(name, 0, "a link is called by letters, digits, spaces, _ and -, at most 40")
    if not re.match(r"https?://", address):
        raise BadTemplate(name, 0, "its address does not begin with https:// or http://")
    parsed = template(name, address, _addresses())
    if isinstance(parsed.compiled, BadTemplate):
        raise parsed.compiled
    needs = meta.find_undeclared_variables(_addresses().parse(address))
    if unknown := sorted(needs - set(NAMES)):
        raise BadTemplate(name, 0, f"{unknown[0]!r} is not known; known are {', '.join(NAMES)}")
    return Link(name, parsed, frozenset(needs))


def links(given: Iterable[Link], values: Mapping[str, str]) -> str:
    """All links in one line; those are left out for which a value is missing, or that give no address."""
    shown = [text for each in given if (text := _link(each, values))]
    return f"Links: {' · '.join(shown)}" if shown else ""


def _link(given: Link, values: Mapping[str, str]) -> str:
    if not all(values.get(name) for name in given.needs):
        return ""
    try:
        return link(given.address.render(values), given.name)
    except BadTemplate:
        return ""  # such as a division by zero: nothing that others wrote can lead here
