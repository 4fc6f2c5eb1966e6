"""What each panel of a dashboard shows: its queries asked of a Prometheus, legends and units as Grafana writes them."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import aiohttp

POINTS = 60  # of a curve
LEGEND = re.compile(r"\{\{(\w+)\}\}")
# Grafana's name of a unit → from how much on, and what is written behind the number.
UNITS: Mapping[str, tuple[tuple[float, str], ...]] = {
    "short": ((1, ""), (1e3, " K"), (1e6, " Mil")),
    "s": (
        (1e-6, " µs"),
        (1e-3, " ms"),
        (1, " s"),
        (60, " min"),
        (3600, " hours"),
        (86_400, " days"),
        (604_800, " weeks"),
    ),
    "reqps": ((1, " req/s"), (1e3, "K req/s")),
    "wps": ((1, " wr/s"), (1e3, "K wr/s")),
    "percent": ((1, "%"),),
}


class Window(NamedTuple):
    """From when to when, in seconds since 1970."""

    start: float
    end: float

    @property
    def step(self) -> float:
        """Seconds between two points."""
        return max(1.0, (self.end - self.start) / POINTS)


class Series(NamedTuple):
    """One curve, or the one number of a panel of numbers."""

    name: str
    points: Sequence[tuple[float, float]]

    @property
    def last(self) -> float:
        """The newest value."""
        return self.points[-1][1]


class Shown(NamedTuple):
    """A panel with what there is to see; `played`: whether it asks for what no program of ours says."""

    title: str
    draws: str
    unit: str
    series: Sequence[Series]
    played: bool = False


def _scaled(value: float, unit: str) -> tuple[float, str]:
    fitting = [(factor, word) for factor, word in UNITS[unit] if factor <= abs(value)]
    return fitting[-1] if fitting else next(each for each in UNITS[unit] if each[0] == 1)


def factor_of(value: float, unit: str) -> float:
    """By what a number is divided where it is written."""
    return _scaled(value, unit)[0]


def written(value: float, unit: str) -> str:
    """A number with its unit: 0.004 of "s" is 4 ms."""
    factor, word = _scaled(value, unit)
    return f"{value / factor:.3g}{word}"


def legend(form: str, labels: Mapping[str, str]) -> str:
    """The labels put in; one that a series does not have is empty."""
    return LEGEND.sub(lambda found: labels.get(found[1], ""), form).strip()


def series(form: str, result: Iterable[Mapping[str, Any]]) -> list[Series]:
    """Those of an answer that have a number: a quantile of nothing is NaN, and has none."""
    found = []
    for one in result:
        pairs = one["values"] if "values" in one else [one["value"]]
        points = [(float(at), float(value)) for at, value in pairs if math.isfinite(float(value))]
        if points:
            found.append(Series(legend(form, one["metric"]), points))
    return found


async def answers(session: aiohttp.ClientSession, url: str, expr: str, window: Window, at_end: bool) -> Any:
    """What Prometheus says to one query, over the window or at its end."""
    span = {"start": f"{window.start}", "end": f"{window.end}", "step": f"{window.step}"}
    path, asked = ("query", {"time": f"{window.end}"}) if at_end else ("query_range", span)
    async with session.get(f"{url}/api/v1/{path}", params={"query": expr} | asked) as answer:
        told = await answer.json()
    assert told["status"] == "success", (expr, told)
    return told["data"]["result"]


async def shown(url: str, panel: Mapping[str, Any], window: Window, played: re.Pattern[str]) -> Shown:
    """One panel of the table, asked of the Prometheus at this URL."""
    found: list[Series] = []
    async with aiohttp.ClientSession() as session:
        for form, expr in panel["queries"]:
            result = await answers(session, url, expr, window, panel["draws"] == "numbers")
            found += sorted(series(form, result))
    asks = any(played.search(expr) for _, expr in panel["queries"])
    return Shown(panel["title"], panel["draws"], panel["unit"], found, asks)
