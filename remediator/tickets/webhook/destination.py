"""The parameters in the URL of a post: where its issues should go. Pure.

Whoever has the token of the webhook may give them, so they name only what `urlRepositories` of the routes file lists.
"""

from collections.abc import Callable, Sequence

from remediator.core.text import one_line
from remediator.core.ticket import NOWHERE, Destination
from remediator.tickets.channels.routes import Route, permits

SETTING = "urlRepositories of the routes file"
ONE, MANY = ("owner", "repo", "milestone", "board"), ("labels", "assignees")
REMEDY = "or take the parameters out of the URL and let a route of the file say it"


class BadParameter(ValueError):
    """A parameter that nobody can follow."""


class NotAllowed(ValueError):
    """A parameter that the routes file does not allow."""


def destination(
    given: Sequence[tuple[str, str]], allowed: Sequence[str], problem: Callable[[Route], str]
) -> Destination:
    """What the parameters ask for. `problem`: which field of a route the channel refuses, and why.

    Raises BadParameter and NotAllowed, which name the parameter, the setting and the remedy.
    """
    if not given:
        return NOWHERE
    values = _values(given)
    owner, name = values.get("owner", ""), values.get("repo", "")
    if not owner or not name:
        missing = "owner" if not owner else "repo"
        raise BadParameter(f"{missing} is missing: parameters of the URL need owner and repo, {REMEDY}")
    asked = Destination(
        f"{owner}/{name}",
        _items(values.get("labels", "")),
        _items(values.get("assignees", "")),
        values.get("milestone", ""),
        values.get("board", ""),
    )
    if refused := problem(Route(asked.repository, asked.labels, asked.assignees, milestone=asked.milestone)):
        raise BadParameter(refused.replace("repository is", "owner and repo are", 1))
    if asked.board and asked.board_number is None:
        raise BadParameter(f"board is {one_line(asked.board, 80)!r}, not ORGANIZATION/NUMBER")
    _check(asked, allowed)
    return asked


def _values(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """By name; lists may be given more than once."""
    values: dict[str, str] = {}
    for name, text in given:
        if name not in ONE + MANY:
            raise BadParameter(f"{one_line(name, 80)!r} is no parameter of this webhook: {', '.join(ONE + MANY)} are")
        if name in values and name in ONE:
            raise BadParameter(f"{name} is given twice")
        values[name] = f"{values[name]},{text}" if name in values else one_line(text, 8192)
    return values


def _items(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))


def _check(asked: Destination, allowed: Sequence[str]) -> None:
    """A project belongs to the whole organization, and not to one repository of it."""
    if not permits(allowed, asked.repository):
        owner = asked.repository.partition("/")[0]
        every = f"add {asked.repository} or {owner}/* there, {REMEDY}"
        raise NotAllowed(f"owner and repo are {asked.repository}, which {SETTING} does not list: {every}")
    owner = asked.board.partition("/")[0]
    if asked.board and not permits(allowed, f"{owner}/*"):
        raise NotAllowed(f"board is {asked.board}, and {SETTING} does not list {owner}/*: add it there, {REMEDY}")
