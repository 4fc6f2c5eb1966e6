"""Types that Grafana publishes read the dashboards strictly; Grafana itself runs in no test."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.images.programs import binary

pytestmark = pytest.mark.cluster

FOLDER = Path(__file__).parents[2] / "deploy/monitoring/dashboards"
Edit = Callable[[dict[str, Any]], object]


def refused(*paths: Path) -> str:
    """What is wrong with these files."""
    command = [binary("grafana-dashboards"), *paths]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode != 0, done.stderr) == (bool(done.stdout), "")
    return done.stdout


def test_grafanas_types_know_each_field_of_each_dashboard() -> None:
    paths = sorted(FOLDER.glob("*.json"))
    assert len(paths) == 7
    assert refused(*paths) == ""


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda board: board.update(colour="red"), "unexpected field 'colour'"),
        (lambda board: board.update(refresh=60), "refresh: json: cannot unmarshal number"),
        (lambda board: board["panels"][0].update(type="timeserie"), 'panels[0].type: "timeserie" is none'),
        (lambda board: board["panels"][0].update(tittle="x"), "unexpected field 'tittle'"),
        (lambda board: board.update(fiscalYearStartMonth=12), "fiscalYearStartMonth: must be < 12"),
        (lambda board: board["panels"][0]["options"]["legend"].update(show=True), "unexpected field 'show'"),
        (lambda board: board["panels"][0]["fieldConfig"]["defaults"]["custom"].update(fill=1), "field 'fill'"),
        (lambda board: board["panels"][0]["targets"][0].update(query="up"), "unexpected field 'query'"),
        (lambda board: board["panels"][0]["targets"][0].pop("expr"), "expr: required field is missing from input"),
    ],
)
def test_a_field_that_grafana_would_not_read_is_named(edit: Edit, said: str, tmp_path: Path) -> None:
    board = json.loads((FOLDER / "fleet.json").read_text())
    edit(board)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(board))
    assert said in refused(path)
