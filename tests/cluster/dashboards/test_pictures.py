"""What a real Prometheus answers stands in the picture of a dashboard; the pages have one of each."""

import asyncio
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.cluster.dashboards.drawing import PLAYED, draw
from tests.cluster.dashboards.panels import Series, Shown, Window, legend, series, written
from tests.cluster.dashboards.pictures import FIGURES, ROOT, ROWS, Picture, pictures
from tests.cluster.dashboards.scene import NODES
from tests.cluster.prometheus import Missing

SVG = "{http://www.w3.org/2000/svg}"
WINDOW = Window(1000.0, 1060.0)


def fleet() -> Picture:
    """That of the fleet, after some seconds."""
    return asyncio.run(pictures(["fleet"], 12.0))["fleet"]


def texts(picture: Path) -> list[str]:
    """All that is written in it."""
    return ["".join(text.itertext()) for text in ElementTree.parse(picture).iter(f"{SVG}text")]


def last(curves: Sequence[Series]) -> dict[str, float]:
    """The newest values, of those that there still are."""
    newest = max(each.points[-1][0] for each in curves)
    return {each.name: each.last for each in curves if each.points[-1][0] == newest}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "s", "0 s"),
        (0.004, "s", "4 ms"),
        (90, "s", "1.5 min"),
        (7200, "s", "2 hours"),
        (1500, "short", "1.5 K"),
        (0.25, "reqps", "0.25 req/s"),
        (93, "percent", "93%"),
    ],
)
def test_a_number_has_the_unit_that_is_read_with_fewest_digits(value: float, unit: str, text: str) -> None:
    assert written(value, unit) == text


def test_every_unit_of_the_table_can_be_written() -> None:
    for row in ROWS.values():
        assert all(written(1, panel["unit"]) for panel in row["panels"])


def test_a_legend_has_the_labels_of_its_series_and_a_quantile_of_nothing_is_no_series() -> None:
    assert legend("{{call}} {{result}}", {"call": "filter", "result": "ok"}) == "filter ok"
    assert legend("{{pod}}", {}) == ""
    result = [
        {"metric": {"phase": "Held"}, "values": [[1000, "2"], [1001, "NaN"]]},
        {"metric": {"phase": "New"}, "values": [[1000, "NaN"]]},
    ]
    assert series("{{phase}}", result) == [Series("Held", [(1000.0, 2.0)])]
    assert series("all", [{"metric": {}, "value": [1000, "7"]}]) == [Series("all", [(1000.0, 7.0)])]


@pytest.mark.slow
def test_a_picture_says_title_legend_last_value_and_where_there_is_no_data(tmp_path: Path) -> None:
    curve = [(1000.0 + second, float(second)) for second in range(0, 60, 2)]
    panels = [
        Shown("Open cases", "bars", "short", [Series("Held", curve), Series("New", curve)]),
        Shown("Time to recover", "lines", "s", [Series("a name that is far too long for two", curve)], played=True),
        Shown("Leaders", "numbers", "short", [Series("leaders", [(1060.0, 1.0)])]),
        Shown("Refused", "lines", "reqps", []),
        Shown("Breakers", "numbers", "short", [Series("fleet", [(1060.0, 0.0)]), Series("budgets", [(1060.0, 3.0)])]),
    ]
    draw("Fleet", panels, WINDOW, tmp_path / "one.svg")
    found = texts(tmp_path / "one.svg")
    assert {"Fleet", PLAYED, "Held: 58", "New: 58", "a name that is far too long for two: 58 s"} < {*found}
    assert [found.count(text) for text in ("No data", "1", "leaders", "fleet", "budgets")] == [1, 1, 0, 1, 1]
    assert {panel.title for panel in panels} < {*found}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_page_shows_a_picture_of_each_dashboard_with_every_panel(name: str) -> None:
    """Who changes a title draws the pictures again."""
    found = texts(FIGURES / f"dashboard-{name}.svg")
    assert [panel["title"] for panel in ROWS[name]["panels"] if panel["title"] not in found] == []
    assert ROWS[name]["title"] in found
    assert f"(figures/dashboard-{name}.svg)" in (ROOT / "docs" / "alerts.md").read_text()


@pytest.mark.cluster
@pytest.mark.timeout(600)
def test_what_a_replica_does_in_some_seconds_is_in_the_picture_of_the_fleet(tmp_path: Path) -> None:
    """In a process of its own: metrics belong to the process, and other tests have theirs."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        try:
            found = process.submit(fleet).result()
        except Missing as why:
            pytest.skip(str(why))
    draw(*found, tmp_path / "fleet.svg")
    shown = {panel.title: panel.series for panel in found.panels}
    held = last(shown["Open cases by phase"])["Held"]
    assert held >= 1  # the one that is excluded
    assert f"Held: {held:g}" in texts(tmp_path / "fleet.svg")
    assert sum(last(shown["Nodes by health"]).values()) == len(NODES) + 1  # and one for Pods with rights
    assert last(shown["What happened in cases, per hour"])["Claimed"] > 0
