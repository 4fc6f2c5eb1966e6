"""Where issues go: the routes file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.kube.manifests import yamlfile
from remediator.tickets.render.links import Link, parse_link
from remediator.tickets.render.template import BadTemplate, Template, broken, template

LONGEST = 60_000  # characters of a template: an issue has no more


class WireRoute(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One route as written."""

    repository: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    public: bool = False
    commands: bool = False
    template: str = ""
    links: dict[str, str] = msgspec.field(default_factory=dict)


class WireRoutes(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The file as written."""

    default: WireRoute
    routes: dict[str, WireRoute] = msgspec.field(default_factory=dict)
    cluster: Annotated[str, Meta(max_length=64)] = ""
    links: dict[str, str] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """Where an issue goes: owner/name, the labels that it gets, who is asked; `public`: everybody may read it.

    `commands`: comments of people with write access to the repository are obeyed.
    `template`: what its text is made by, None for the shipped one. `links` stand in it after those of all routes.
    """

    repository: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    public: bool = False
    commands: bool = False
    template: Template | None = None
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Routes:
    """All routes by name. `cluster` stands before every title, for repositories that several clusters share.

    `links` stand in the text of every issue.
    """

    default: Route
    named: Mapping[str, Route] = field(default_factory=lambda: MappingProxyType({}))
    cluster: str = ""
    links: tuple[Link, ...] = ()

    def find(self, name: str) -> tuple[Route, bool]:
        """The route of this name, and whether there is one; else the default, as for ""."""
        if not name:
            return self.default, True
        route = self.named.get(name)
        return (route, True) if route else (self.default, False)

    def to(self, repository: str) -> Mapping[str, Route]:
        """The routes that lead there, by the names that a user knows them under."""
        every = {"default": self.default, **self.named}
        return {name: route for name, route in every.items() if route.repository.lower() == repository.lower()}

    @property
    def commanded(self) -> tuple[str, ...]:
        """The repositories from whose comments commands are taken."""
        every = (self.default, *self.named.values())
        return tuple(dict.fromkeys(route.repository for route in every if route.commands))


def load(path: Path, problem: Callable[[Route], str]) -> Routes:
    """Read the routes file; `problem` gives the field of a route that the channel refuses and why, "" for none.

    Raises ValueError that names the file, the field and the remedy.
    """
    try:
        written = yamlfile.one(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}; write a routes file as docs/tickets.md shows, or correct it") from None
    try:
        wire = msgspec.convert(written, WireRoutes)
        return Routes(
            _route(wire.default, "default", problem, path.parent),
            MappingProxyType(
                {name: _route(route, f"routes.{name}", problem, path.parent) for name, route in wire.routes.items()}
            ),
            wire.cluster,
            _links(wire.links, "links"),
        )
    except ValueError as error:  # msgspec.ValidationError is one; it names the field as $.default.repository
        raise ValueError(f"{path}: {str(error).replace('`$', '`')}; correct that field") from None


def _route(wire: WireRoute, where: str, problem: Callable[[Route], str], folder: Path) -> Route:
    links = _links(wire.links, f"{where}.links")
    made_by = _template(folder, wire.template) if wire.template else None
    route = Route(wire.repository, wire.labels, wire.assignees, wire.public, wire.commands, made_by, links)
    if refused := problem(route):
        raise ValueError(f"{where}.{refused}")
    return route


def _links(written: Mapping[str, str], where: str) -> tuple[Link, ...]:
    try:
        return tuple(parse_link(name, address) for name, address in written.items())
    except BadTemplate as bad:
        raise ValueError(f"{where}: {bad}") from None


def _template(folder: Path, name: str) -> Template:
    """A file beside the routes file."""
    if Path(name).name != name:
        return broken(name, "it is not the name of a file beside the routes file")
    return read_template(folder / name)


def read_template(file: Path) -> Template:
    """A template; one that cannot be read or does not compile says so where it is used."""
    name = file.name
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return broken(name, str(error))
    return template(name, text) if len(text) <= LONGEST else broken(name, f"it has more than {LONGEST} characters")
