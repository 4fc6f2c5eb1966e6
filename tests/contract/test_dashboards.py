"""Each panel of Grafana's dashboards asks for metrics and labels that there are; Grafana's types read the files."""

import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.contract.monitoring import grouped, known_labels, strangers

ROOT = Path(__file__).parents[2]
GENERATOR = runpy.run_path(str(ROOT / "deploy/monitoring/dashboards.py"))
ROWS = GENERATOR["rows"]()
QUERIES = [
    (f"{name}: {panel['title']}", legend, expr)
    for name, row in ROWS.items()
    for panel in row["panels"]
    for legend, expr in panel["queries"]
]
OF_PROMETHEUS = {"pod"}  # labels that the PodMonitor gives


def test_the_files_are_those_of_the_table() -> None:
    assert [path.name for path, text in GENERATOR["files"]().items() if path.read_text() != text] == [], "make alerts"


@pytest.mark.parametrize("name", sorted(ROWS))
def test_grafana_reads_a_dashboard_with_each_panel_in_a_place_of_its_own(name: str) -> None:
    read = Dashboard.from_json(json.loads((ROOT / f"deploy/monitoring/dashboards/{name}.json").read_text()))
    assert (read.uid, read.title) == (f"remediator-{name}", ROWS[name]["title"])
    places = [(panel.grid_pos.x, panel.grid_pos.y) for panel in read.panels]
    assert len(set(places)) == len(places) == len(ROWS[name]["panels"])
    queries = [len(panel["queries"]) for panel in ROWS[name]["panels"]]
    assert [len(panel.targets) for panel in read.panels] == queries


@pytest.mark.parametrize(("panel", "legend", "expr"), QUERIES, ids=[name for name, *_ in QUERIES])
def test_a_panel_asks_for_what_there_is(panel: str, legend: str, expr: str) -> None:
    assert strangers(expr) == {}, panel
    kept = grouped(expr) if " by (" in expr else known_labels(expr) | OF_PROMETHEUS
    assert grouped(expr) <= known_labels(expr)
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= kept


TABLES = ("alerts", "nodes")


def test_the_page_of_figures_counts_what_there_is() -> None:
    rows = dict(re.findall(r"^\| ([a-z R]+) \| (\d+) \| all", (ROOT / "docs/figures.md").read_text(), re.MULTILINE))
    ours, of_nodes = (tomllib.loads((ROOT / f"deploy/monitoring/{name}.toml").read_text()) for name in TABLES)
    assert {what: int(number) for what, number in rows.items()} == {
        "alerts about Remediator": len(ours),
        "alerts about nodes": len(of_nodes),
        "dashboards": len(ROWS),
        "panels": len({name for name, *_ in QUERIES}),
        "queries of panels": len(QUERIES),
    }
