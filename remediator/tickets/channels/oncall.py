"""Who is on call: rotations with layers and overrides, as paging services have them. Pure but `load`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from remediator import windows
from remediator.core.policy import Severity
from remediator.core.window import Window
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.api.decode.times import duration
from remediator.kube.manifests import yamlfile

LOCAL = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}$"
Local = Annotated[str, Meta(pattern=LOCAL)]
Person = Annotated[str, Meta(min_length=1, max_length=64)]


class WireLayer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """People who take turns."""

    people: Annotated[tuple[Person, ...], Meta(min_length=1, max_length=64)]
    start: Local
    every: Annotated[str, Meta(pattern=r"^([0-9]+[dhm])+$")]
    windows: tuple[api.Window, ...] = ()


class WireOverride(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Somebody stands in."""

    person: Person
    start: Local
    end: Local


class WireSchedule(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """One schedule as written."""

    layers: Annotated[tuple[WireLayer, ...], Meta(min_length=1, max_length=16)]
    time_zone: str = "UTC"
    overrides: tuple[WireOverride, ...] = ()


@dataclass(frozen=True, slots=True)
class Layer:
    """People who take turns of `every` from `start` on, by the clocks of the schedule's zone; only in its windows."""

    people: tuple[str, ...]
    start: datetime  # naive: what the clocks show
    every: timedelta
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True)
class Override:
    """Who is on call from `start` until `end`, whatever the layers say."""

    person: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class OncallSchedule:
    """One schedule. Later layers stand before earlier ones, and overrides before all of them, later before earlier."""

    layers: tuple[Layer, ...]
    zone: str = "UTC"
    overrides: tuple[Override, ...] = ()

    @property
    def people(self) -> frozenset[str]:
        """All who are ever on call."""
        return frozenset([person for layer in self.layers for person in layer.people]) | {
            override.person for override in self.overrides
        }


def on_call(schedule: OncallSchedule, now: datetime) -> str:
    """Who is on call now, "" for nobody."""
    local = now.astimezone(windows.zone(schedule.zone)).replace(tzinfo=None)
    standing_in = [override.person for override in schedule.overrides if override.start <= local < override.end]
    turns = [_turn(layer, local) for layer in schedule.layers if layer.start <= local and _open(layer.windows, now)]
    return [*turns, *standing_in][-1] if turns or standing_in else ""


def _turn(layer: Layer, local: datetime) -> str:
    return layer.people[(local - layer.start) // layer.every % len(layer.people)]


def _open(given: tuple[Window, ...], now: datetime) -> bool:
    return windows.shut(given, now) is None


def left_alone(quiet: tuple[Window, ...], severity: Severity, now: datetime) -> bool:
    """Whether nobody is to be called for an issue of this severity now."""
    return bool(quiet) and severity is not Severity.CRITICAL and _open(quiet, now)


def assignees(
    fixed: Iterable[str], schedule: OncallSchedule | None, quiet: tuple[Window, ...], severity: Severity, now: datetime
) -> tuple[str, ...]:
    """Whom a new issue is assigned to. In quiet hours who is on call is left alone, but for what is Critical."""
    person = on_call(schedule, now) if schedule and not left_alone(quiet, severity, now) else ""
    return tuple(dict.fromkeys([*fixed, *([person] if person else [])]))


def load(path: Path) -> Mapping[str, OncallSchedule]:
    """Read schedules by name. Raises ValueError that names the file, the field and the remedy."""
    try:
        written = yamlfile.one(path.read_text("utf-8"))
        wire = msgspec.convert(written, dict[str, WireSchedule])
        return {name: _schedule(name, schedule) for name, schedule in wire.items()}
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {str(error).replace('`$', '`')}; correct that field") from None


def _schedule(name: str, wire: WireSchedule) -> OncallSchedule:
    windows.zone(wire.time_zone)
    overrides = tuple(Override(over.person, _time(over.start), _time(over.end)) for over in wire.overrides)
    layers = tuple(_layer(layer, f"{name}.layers[{index}]") for index, layer in enumerate(wire.layers))
    return OncallSchedule(layers, wire.time_zone, overrides)


def _layer(wire: WireLayer, where: str) -> Layer:
    every = duration(wire.every)
    if every <= timedelta(0):
        raise ValueError(f"{where}.every is {wire.every!r}; write such as 7d or 12h")
    return Layer(wire.people, _time(wire.start), every, windows_of(wire.windows, f"{where}.windows"))


def windows_of(wire: Iterable[api.Window], where: str) -> tuple[Window, ...]:
    """Windows as policies have them, in the field `where`. Raises ValueError with the field."""
    made = tuple(decode.window(window) for window in wire)
    for problem in windows.problems(made):
        raise ValueError(f"{where}{problem.field.removeprefix('windows')}: {problem.why}")
    return made


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
