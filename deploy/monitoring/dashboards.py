"""Write Grafana's dashboards from dashboards.toml, each as a file and all as ConfigMaps: `make alerts`.

They are made by Grafana's own builders (grafana-foundation-sdk), less what its newest schema has no more.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from grafana_foundation_sdk.builders import common, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import GraphDrawStyle, LegendDisplayMode, LegendPlacement, StackingMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef

from deploy.generated import write

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "dashboards"
PROMETHEUS = DataSourceRef(type_val="prometheus", uid="${datasource}")  # the variable by which a user says which one
SPAN, HEIGHT = 12, 8  # two panels a row
Row = Mapping[str, Any]


def rows() -> dict[str, Row]:
    """The table by name of the dashboard."""
    return tomllib.loads((HERE / "dashboards.toml").read_text())


def _lines(panel: Row) -> timeseries.Panel:
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.TABLE).placement(LegendPlacement.BOTTOM)
    return timeseries.Panel().title(panel["title"]).unit(panel["unit"]).legend(legend.show_legend(True).calcs(["last"]))


def _bars(panel: Row) -> timeseries.Panel:
    stacked = common.StackingConfig().mode(StackingMode.NORMAL)
    return _lines(panel).draw_style(GraphDrawStyle.BARS).fill_opacity(60).stacking(stacked)


def _numbers(panel: Row) -> stat.Panel:
    return stat.Panel().title(panel["title"]).unit(panel["unit"])


DRAWS: Mapping[str, Callable[[Row], Any]] = {"lines": _lines, "bars": _bars, "numbers": _numbers}


def panel(row: Row) -> Any:
    """One panel with its queries."""
    made = DRAWS[row["draws"]](row).datasource(PROMETHEUS).span(SPAN).height(HEIGHT)
    for letter, (legend, expr) in zip("ABCDEFGH", row["queries"], strict=False):
        made.with_target(prometheus.Dataquery().ref_id(letter).expr(expr).legend_format(legend).datasource(PROMETHEUS))
    return made


def dashboard(name: str, row: Row) -> str:
    """One dashboard as Grafana imports it."""
    made = Dashboard(row["title"]).uid(f"remediator-{name}").tags(["remediator"]).refresh("1m").time("now-24h", "now")
    made.timezone("browser").readonly().with_variable(DatasourceVariable("datasource").type("prometheus"))
    for each in row["panels"]:
        made.with_panel(panel(each))
    return json.dumps(_of_today(json.loads(JSONEncoder().encode(made.build()))), sort_keys=True, indent=1) + "\n"


def _of_today(built: dict[str, Any]) -> dict[str, Any]:
    """Without the fields of older versions of Grafana, which the builders write still."""
    variables = [{key: value for key, value in each.items() if key != "id"} for each in built["templating"]["list"]]
    kept = {key: value for key, value in built.items() if key != "style"}
    return kept | {"templating": {"list": variables}}


def config_map(name: str, text: str) -> dict[str, Any]:
    """For Grafana's sidecar, which looks for the label."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"remediator-dashboard-{name}",
            "namespace": "remediator-system",
            "labels": {"app.kubernetes.io/name": "remediator", "grafana_dashboard": "1"},
        },
        "data": {f"remediator-{name}.json": text},
    }


def files() -> dict[Path, str]:
    """What stands in each file."""
    made = {name: dashboard(name, row) for name, row in rows().items()}
    maps = [config_map(name, text) for name, text in made.items()]
    head = "# Written by deploy/monitoring/dashboards.py from dashboards.toml: `make alerts`.\n"
    return {
        **{FOLDER / f"{name}.json": text for name, text in made.items()},
        HERE / "dashboards.yaml": head + yaml.safe_dump_all(maps, sort_keys=False),
    }


if __name__ == "__main__":
    write(files())
