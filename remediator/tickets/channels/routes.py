"""Where issues go: the routes file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.kube.manifests import yamlfile


class WireRoute(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One route as written."""

    repository: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    public: bool = False
    commands: bool = False


class WireRoutes(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The file as written."""

    default: WireRoute
    routes: dict[str, WireRoute] = msgspec.field(default_factory=dict)
    cluster: Annotated[str, Meta(max_length=64)] = ""


@dataclass(frozen=True, slots=True)
class Route:
    """Where an issue goes: owner/name, the labels that it gets, who is asked; `public`: everybody may read it.

    `commands`: comments of people with write access to the repository are obeyed.
    """

    repository: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    public: bool = False
    commands: bool = False


@dataclass(frozen=True, slots=True)
class Routes:
    """All routes by name. `cluster` stands before every title, for repositories that several clusters share."""

    default: Route
    named: Mapping[str, Route] = field(default_factory=lambda: MappingProxyType({}))
    cluster: str = ""

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
            _route(wire.default, "default", problem),
            MappingProxyType({name: _route(route, f"routes.{name}", problem) for name, route in wire.routes.items()}),
            wire.cluster,
        )
    except ValueError as error:  # msgspec.ValidationError is one; it names the field as $.default.repository
        raise ValueError(f"{path}: {str(error).replace('`$', '`')}; correct that field") from None


def _route(wire: WireRoute, where: str, problem: Callable[[Route], str]) -> Route:
    route = Route(wire.repository, wire.labels, wire.assignees, wire.public, wire.commands)
    if refused := problem(route):
        raise ValueError(f"{where}.{refused}")
    return route
