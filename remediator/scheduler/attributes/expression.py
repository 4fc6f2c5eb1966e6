"""Requirements as one line: `memory>=40Gi, ecc=true, model in (*A100*, *H100*), !clique`. A mistake has its place."""

import re

from remediator.scheduler.attributes.catalog import attribute
from remediator.scheduler.attributes.requirement import AttributeOperator, AttributeRequirement, requirement

LONGEST = 2048  # characters
MOST = 16  # requirements
_TERM = re.compile(
    r"\s*(?P<no>!)?\s*(?P<name>[A-Za-z][-A-Za-z0-9_./]*)"
    r"(?:\s*(?P<sign>>=|<=|==|!=|=|>|<)\s*(?P<value>[^\s(),<>=!]+)"
    r"|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?\s*",
    re.ASCII,
)
_SIGNS = {
    ">": AttributeOperator.GT,
    ">=": AttributeOperator.GE,
    "<": AttributeOperator.LT,
    "<=": AttributeOperator.LE,
    "=": AttributeOperator.IN,
    "==": AttributeOperator.IN,
    "!=": AttributeOperator.NOT_IN,
    "in": AttributeOperator.IN,
    "notin": AttributeOperator.NOT_IN,
}
FORM = "write requirements such as memory>=40Gi or model in (*A100* *H100*) or !clique with a comma between them"


def parse(text: str) -> tuple[AttributeRequirement, ...]:
    """Requirements that must all hold. Raises ValueError with the place of the mistake, counted from 1.

    >>> [str(row.operator) for row in parse("memory>=40Gi, ecc=true, clique")]
    ['Ge', 'In', 'Exists']
    """
    if len(text) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    rows: list[AttributeRequirement] = []
    start = 0
    while start <= len(text):
        term = _TERM.match(text, start)
        if term is None or (term.end() < len(text) and text[term.end()] != ","):
            raise _misplaced(start + _blank(text, start) if term is None else term.end(), FORM)
        rows.append(_requirement(term))
        if len(rows) > MOST:
            raise _misplaced(start, f"more than {MOST} requirements")
        start = term.end() + 1
    return tuple(rows)


def _requirement(term: re.Match[str]) -> AttributeRequirement:
    group = "name"
    try:
        wanted = attribute(term["name"])
    except ValueError as error:
        raise _misplaced(term.start(group), f"{term['name'][:40]!r} is {error}") from None
    word, group = (term["sign"], "value") if term["sign"] else (term["set"], "values")
    if word is None:
        return requirement(wanted, AttributeOperator.DOES_NOT_EXIST if term["no"] else AttributeOperator.EXISTS, ())
    if term["no"]:
        raise _misplaced(term.start("no"), "! takes an attribute alone; use != or notin")
    values = [term["value"]] if term["sign"] else [value.strip() for value in term["values"].split(",")]
    try:
        return requirement(wanted, _SIGNS[word], values)
    except ValueError as error:
        raise _misplaced(term.start(group), str(error)) from None


def _blank(text: str, start: int) -> int:
    """How many blanks there are from here."""
    return len(text[start:]) - len(text[start:].lstrip())


def _misplaced(place: int, why: str) -> ValueError:
    return ValueError(f"at character {place + 1}: {why}")
