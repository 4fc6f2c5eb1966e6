"""Which route an issue takes where no policy and no alert names one: by severity, and by labels of node and alerts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from remediator.core.policy import Severity


class WireMatch(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One row as written."""

    route: str
    severity: tuple[Severity, ...] = ()
    labels: dict[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Traits:
    """What rows are compared with. `labels`: all values that the node and the alerts give to a label."""

    severity: Severity = Severity.INFO
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """One row: fits where the severity is one of these, and each of these labels has one of these values."""

    route: str
    severities: frozenset[Severity]
    labels: tuple[tuple[str, frozenset[str]], ...]

    def fits(self, traits: Traits) -> bool:
        """Whether an issue takes this route."""
        severe = not self.severities or traits.severity in self.severities
        return severe and all(not values.isdisjoint(traits.labels.get(name, ())) for name, values in self.labels)


def traits(severity: Severity, labels: Iterable[tuple[str, str]]) -> Traits:
    """Of a severity, and of the labels of a node and of alerts, a label of which may be given more than once."""
    values: dict[str, set[str]] = {}
    for name, value in labels:
        values.setdefault(name, set()).add(value)
    return Traits(severity, {name: frozenset(given) for name, given in values.items()})


def parse(wire: WireMatch, where: str, routes: Iterable[str]) -> RouteMatch:
    """Raises ValueError with the field."""
    if wire.route not in set(routes):
        raise ValueError(f"{where}.route: there is no route {wire.route!r} under routes")
    if not wire.severity and not wire.labels:
        raise ValueError(f"{where} has neither severity nor labels, and would take every issue: change default instead")
    return RouteMatch(wire.route, frozenset(wire.severity), pairs(wire.labels))


def pairs(written: Mapping[str, str | tuple[str, ...]]) -> tuple[tuple[str, frozenset[str]], ...]:
    """Labels with the values that fit, of which one may be written without a list."""
    every = ((name, (given,) if isinstance(given, str) else given) for name, given in written.items())
    return tuple((name, frozenset(values)) for name, values in every)
