"""Prometheus' own promtool: whether each alert of a table fires where it should, alone, and says what it should."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cluster.prometheus import program
from tests.contract.alerts import generator
from tests.kubelet.programs import Missing

HOURS = 7  # each series lasts for so long, a sample a minute
RANGE = 126  # minutes, even as rules are evaluated: the longest that an expression looks back, and a little more
Alert = Mapping[str, str]


class Fires(NamedTuple):
    """Series as promtool takes them, and the alert that they raise: its labels, and its first line."""

    series: Mapping[str, str]
    labels: Mapping[str, str]
    summary: str


def always(value: float) -> str:
    """The same sample each minute."""
    return f"{value:g}x{HOURS * 60}"


def growing(by: float) -> str:
    """A counter."""
    return f"0+{by:g}x{HOURS * 60}"


def minutes(duration: str) -> int:
    """Of a duration as Prometheus has it.

    >>> minutes("4h"), minutes("15m")
    (240, 15)
    """
    return int(duration[:-1]) * {"m": 1, "h": 60}[duration[-1]]


def promtool(*arguments: str | Path) -> str:
    """What it prints; it has to end well. This machine's Prometheus brings it. Skips where there is none."""
    try:
        path = program().with_name("promtool")
    except Missing as missing:
        pytest.skip(str(missing))
    run = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def tried(table: Any, healthy: Mapping[str, str], fires: Mapping[str, Fires], folder: Path) -> None:
    """Nothing fires under the healthy series; with those of each alert over them that one fires, and no other."""
    rules = generator()["rules"](table)
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert set(fires) == {rule["alert"] for rule in alerts}
    raised = [
        _case(minutes(rule["for"]) + RANGE, {**healthy, **fires[rule["alert"]].series}, alerts, fires, rule["alert"])
        for rule in alerts
    ]
    cases = [_case(HOURS * 60, healthy, alerts, fires), *raised]
    (folder / "rules.yaml").write_text(json.dumps(rules))
    tests = {"rule_files": [str(folder / "rules.yaml")], "evaluation_interval": "2m", "tests": cases}
    (folder / "tests.yaml").write_text(json.dumps(tests))
    promtool("test", "rules", folder / "tests.yaml")


def _case(
    after: int, series: Mapping[str, str], alerts: Iterable[Alert], fires: Mapping[str, Fires], expected: str = ""
) -> dict[str, object]:
    """After so many minutes of these series the expected alert fires, and no other."""
    asked = [
        {
            "eval_time": f"{after}m",
            "alertname": rule["alert"],
            "exp_alerts": [_expected(rule, fires[expected])] if rule["alert"] == expected else [],
        }
        for rule in alerts
    ]
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": given, "alert_rule_test": asked}


def _expected(rule: Mapping[str, Any], fires: Fires) -> dict[str, object]:
    annotations = {"summary": fires.summary, "runbook_url": rule["annotations"]["runbook_url"]}
    return {"exp_labels": {**rule["labels"], **fires.labels}, "exp_annotations": annotations}
