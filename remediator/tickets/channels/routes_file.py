"""The routes file as it is written, and how it is read."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.policy import Severity
from remediator.core.ticket_route import NAME, OWNER
from remediator.kube import api
from remediator.kube.manifests import yamlfile
from remediator.tickets.channels import matching, oncall
from remediator.tickets.channels.boards import ProjectBoard
from remediator.tickets.channels.routes import Route, Routes, Team
from remediator.tickets.render.links import Link, parse_link
from remediator.tickets.render.template import BadTemplate, TextTemplate, broken, template
from remediator.tickets.render.titles import parse_title

LONGEST = 60_000  # characters of a template: an issue has no more


# owner/name, or owner/* for all repositories of an owner.
Listed = Annotated[str, Meta(pattern=f"^{OWNER}/([*]|{NAME})$")]


class WireBoard(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A project board as written: `project` is OWNER/NUMBER, the rest are names on the board."""

    project: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{1,39}/[1-9][0-9]{0,8}$")]
    field: str = "Status"
    waiting: str = "Todo"
    repairing: str = "In Progress"
    person: str = "In Progress"
    done: str = "Done"

    def board(self) -> ProjectBoard:
        """The same as a noun."""
        owner, _, number = self.project.partition("/")
        return ProjectBoard(owner, int(number), self.field, self.waiting, self.repairing, self.person, self.done)


class WireRoute(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """One route as written."""

    repository: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    public: bool = False
    commands: bool = False
    template: str = ""
    links: dict[str, str] = msgspec.field(default_factory=dict)
    on_call: str = ""
    quiet: tuple[api.Window, ...] = ()
    board: WireBoard | None = None
    milestone: str = ""
    title: str = ""


class WireTeam(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What is left to the TicketRoutes of one namespace."""

    repositories: Annotated[tuple[Listed, ...], Meta(min_length=1)]
    severity: tuple[Severity, ...] = ()
    labels: dict[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)


class WireRoutes(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """The file as written."""

    default: WireRoute
    routes: dict[str, WireRoute] = msgspec.field(default_factory=dict)
    cluster: Annotated[str, Meta(max_length=64)] = ""
    links: dict[str, str] = msgspec.field(default_factory=dict)
    match: tuple[matching.WireMatch, ...] = ()
    schedules: str = ""
    digest: str = ""
    url_repositories: tuple[Listed, ...] = ()
    label_repositories: tuple[Listed, ...] = ()
    teams: dict[str, WireTeam] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.digest not in ("", "default", *self.routes):
            raise ValueError(f"digest names route {self.digest!r}, which is not there")


def load(path: Path, problem: Callable[[Route], str]) -> Routes:
    """Read the routes file; `problem` gives the field of a route that the channel refuses and why, "" for none.

    Raises ValueError that names the file, the field and the remedy.
    """
    try:
        written = yamlfile.one(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}; write a routes file as docs/tickets.md shows, or correct it") from None
    with _naming(path):
        wire = msgspec.convert(written, WireRoutes)
    parsing = _Parsing(path.parent, oncall.load(path.parent / wire.schedules) if wire.schedules else {}, problem)
    with _naming(path):
        return Routes(
            parsing.route(wire.default, "default"),
            MappingProxyType({name: parsing.route(route, f"routes.{name}") for name, route in wire.routes.items()}),
            wire.cluster,
            _links(wire.links, "links"),
            tuple(matching.parse(row, f"match[{index}]", wire.routes) for index, row in enumerate(wire.match)),
            wire.digest,
            url=wire.url_repositories,
            labelled=wire.label_repositories,
            teams=MappingProxyType({name: _team(team, f"teams.{name}") for name, team in wire.teams.items()}),
            problem=problem,
        )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """What is wrong names the file."""
    try:
        yield
    except ValueError as error:  # msgspec.ValidationError is one; it names the field as $.default.repository
        raise ValueError(f"{path}: {str(error).replace('`$', '`')}; correct that field") from None


@dataclass(frozen=True, slots=True)
class _Parsing:
    """What routes are read with: the folder of templates, the schedules, what the channel refuses."""

    folder: Path
    schedules: Mapping[str, oncall.OncallSchedule]
    problem: Callable[[Route], str]

    def route(self, wire: WireRoute, where: str) -> Route:
        """Raises ValueError with the field."""
        links = _links(wire.links, f"{where}.links")
        made_by = _template(self.folder, wire.template) if wire.template else None
        quiet = oncall.windows_of(wire.quiet, f"{where}.quiet")
        schedule = self._schedule(wire.on_call, where) if wire.on_call else None
        plain = (wire.repository, wire.labels, wire.assignees, wire.public, wire.commands)
        board = wire.board.board() if wire.board else None
        titled = _title(wire.title, f"{where}.title") if wire.title else None
        route = Route(*plain, made_by, links, schedule, quiet, board, wire.milestone, titled)
        for person in ("", *sorted(schedule.people if schedule else ())):
            asked = replace(route, assignees=(*route.assignees, person)) if person else route
            if refused := self.problem(asked):
                raise ValueError(f"{where}.{refused}{f', with {person} who is on call' if person else ''}")
        return route

    def _schedule(self, name: str, where: str) -> oncall.OncallSchedule:
        if name not in self.schedules:
            raise ValueError(f"{where}.onCall: there is no schedule {name!r} in the file that `schedules` names")
        return self.schedules[name]


def _team(wire: WireTeam, where: str) -> Team:
    """Raises ValueError with the field."""
    if not wire.severity and not wire.labels:
        raise ValueError(f"{where} has neither severity nor labels: its TicketRoutes could take every issue")
    return Team(wire.repositories, matching.RouteMatch("", frozenset(wire.severity), matching.pairs(wire.labels)))


def _links(written: Mapping[str, str], where: str) -> tuple[Link, ...]:
    try:
        return tuple(parse_link(name, address) for name, address in written.items())
    except BadTemplate as bad:
        raise ValueError(f"{where}: {bad}") from None


def _title(written: str, where: str) -> TextTemplate:
    try:
        return parse_title(where, written)
    except BadTemplate as bad:
        raise ValueError(str(bad).removeprefix("template ")) from None


def _template(folder: Path, name: str) -> TextTemplate:
    """A file beside the routes file."""
    if Path(name).name != name:
        return broken(name, "it is not the name of a file beside the routes file")
    return read_template(folder / name)


def read_template(file: Path) -> TextTemplate:
    """A template; one that cannot be read or does not compile says so where it is used."""
    name = file.name
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return broken(name, str(error))
    return template(name, text) if len(text) <= LONGEST else broken(name, f"it has more than {LONGEST} characters")
