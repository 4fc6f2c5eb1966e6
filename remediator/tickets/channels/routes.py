"""Where issues go: routes, and which of them an issue takes. Pure; routes_file.py reads them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from remediator.core.ticket import NOWHERE, Destination
from remediator.core.window import Window
from remediator.tickets.channels import matching, oncall
from remediator.tickets.channels.boards import ProjectBoard
from remediator.tickets.render.links import Link
from remediator.tickets.render.template import TextTemplate


@dataclass(frozen=True, slots=True)
class Route:
    """Where an issue goes: owner/name, the labels that it gets, who is asked; `public`: everybody may read it.

    `commands`: comments of people with write access to the repository are obeyed.
    `milestone` is the title of one, "" for none. `title` makes the title of an issue, None for the usual one.
    `template`: what its text is made by, None for the shipped one. `links` stand in it after those of all routes.
    `on_call`: who is asked besides, but in the `quiet` windows only where the issue is Critical.
    """

    repository: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    public: bool = False
    commands: bool = False
    template: TextTemplate | None = None
    links: tuple[Link, ...] = ()
    on_call: oncall.OncallSchedule | None = None
    quiet: tuple[Window, ...] = ()
    board: ProjectBoard | None = None
    milestone: str = ""
    title: TextTemplate | None = None


@dataclass(frozen=True, slots=True)
class Team:
    """What the TicketRoutes of one namespace may do: into which repositories, and with issues that `match`."""

    repositories: tuple[str, ...]
    match: matching.RouteMatch


@dataclass(frozen=True, slots=True)
class TeamRow:
    """One TicketRoute that is used, by namespace/name: where it leads, and what must all fit."""

    key: str
    route: Route
    match: tuple[matching.RouteMatch, ...]

    def fits(self, traits: matching.Traits) -> bool:
        """Whether an issue takes it."""
        return all(match.fits(traits) for match in self.match)


@dataclass(frozen=True, slots=True)
class Routes:
    """All routes by name. `cluster` stands before every title, for repositories that several clusters share.

    `links` stand in the text of every issue. Of `match` the first row that fits gives the route, where none is named.
    `outdated`: why the file as it is now is not used, "" where it is.
    `digest` names the route of the weekly digest, "" for none. `url`: which repositories the URL of a post may name,
    owner/name or owner/*. `problem` gives the field of a route that the channel refuses, and why.
    `labelled`: the same for labels of alerts. `teams`: what is left to the TicketRoutes of a namespace; `rows`: those
    that are used.
    """

    default: Route
    named: Mapping[str, Route] = field(default_factory=lambda: MappingProxyType({}))
    cluster: str = ""
    links: tuple[Link, ...] = ()
    match: tuple[matching.RouteMatch, ...] = ()
    digest: str = ""
    outdated: str = ""
    url: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()
    teams: Mapping[str, Team] = field(default_factory=lambda: MappingProxyType({}))
    rows: tuple[TeamRow, ...] = ()
    problem: Callable[[Route], str] = field(default=lambda route: "", compare=False)

    @property
    def newest(self) -> "Routes":
        """These: only a file may change."""
        return self

    def current(self, now: datetime) -> "Routes":
        """These, too."""
        return self

    def choose(self, asked: str, traits: matching.Traits, to: Destination = NOWHERE) -> tuple[Route, bool]:
        """The route that is asked for, or that leads `to` there, or that the traits of an issue lead to.

        Rows of the file come before TicketRoutes. False where there is none of that name, or where parameters may not
        lead there any more; then the default.
        """
        if "/" in asked and asked not in self.named:
            return (self._led_by_label(asked), True) if self.heeds(asked) else (self.choose("", traits, to)[0], False)
        if not asked and to.repository:
            allowed = permits(self.url, to.repository)
            return (self._asked_by_url(to), True) if allowed else (self.default, False)
        named = asked or next((row.route for row in self.match if row.fits(traits)), "")
        row = None if named else self.row(traits)
        return (row.route, True) if row else self.find(named)

    def row(self, traits: matching.Traits) -> TeamRow | None:
        """The TicketRoute that an issue takes where nothing else says where it goes."""
        return next((row for row in self.rows if row.fits(traits)), None)

    def find(self, name: str) -> tuple[Route, bool]:
        """The route of this name, and whether there is one; else the default, as for ""."""
        if not name:
            return self.default, True
        route = self.named.get(name)
        return (route, True) if route else (self.default, False)

    def heeds(self, asked: str) -> bool:
        """Whether something says where an issue goes: not labels that name a repository which they may not name."""
        if "/" not in asked or asked in self.named:
            return bool(asked)
        return permits(self.labelled, asked) and not self.problem(Route(asked))

    def _led_by_label(self, repository: str) -> Route:
        """What labels do not give, a route that leads to the same repository gives."""
        return next(iter(self.to(repository).values()), Route(repository))

    def _asked_by_url(self, to: Destination) -> Route:
        """What the parameters do not name, a route that leads to the same repository gives."""
        route = next(iter(self.to(to.repository).values()), Route(to.repository))
        return replace(
            route,
            repository=to.repository,
            labels=to.labels or route.labels,
            assignees=to.assignees or route.assignees,
            on_call=None if to.assignees else route.on_call,
            milestone=to.milestone or route.milestone,
            board=self.url_board(to) or route.board,
        )

    def url_board(self, to: Destination) -> ProjectBoard | None:
        """The board that parameters name, where they may."""
        owner, number = to.board.partition("/")[0], to.board_number
        return ProjectBoard(owner, number) if number and permits(self.url, f"{owner}/*") else None

    def to(self, repository: str) -> Mapping[str, Route]:
        """The routes that lead there, by the names that a user knows them under."""
        every = {"default": self.default, **self.named}
        return {name: route for name, route in every.items() if route.repository.lower() == repository.lower()}

    @property
    def commanded(self) -> tuple[str, ...]:
        """The repositories from whose comments commands are taken."""
        every = (self.default, *self.named.values())
        return tuple(dict.fromkeys(route.repository for route in every if route.commands))

    @property
    def boards(self) -> bool:
        """Whether some route has a board, or parameters may name one."""
        named = any(route.board for route in (self.default, *self.named.values()))
        return named or any(pattern.endswith("/*") for pattern in self.url)


def permits(patterns: Sequence[str], repository: str) -> bool:
    """Whether a list of owner/name and owner/* has this repository; names are the same in any case of letters.

    >>> permits(["org/*", "lab/gpu"], "Org/ops"), permits(["org/*", "lab/gpu"], "lab/ops")
    (True, False)
    """
    owner = repository.partition("/")[0]
    return bool({repository.lower(), f"{owner}/*".lower()} & {pattern.lower() for pattern in patterns})
