"""Prometheus' own promtool: whether each alert of a table fires where it should, alone, and says what it should."""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cluster.broken_rules import broken
from tests.cluster.prometheus import program
from tests.contract.alerts import generator
from tests.kubelet.programs import Missing

HOURS = 7  # each series lasts for so long, a sample a minute
RANGE = 126  # minutes, even as rules are evaluated: the longest that an expression looks back, and a little more
Rule = Mapping[str, Any]


class Fires(NamedTuple):
    """Series as promtool takes them, and the alert that they raise: its labels, and its first line."""

    series: Mapping[str, str]
    labels: Mapping[str, str]
    summary: str


Branch = tuple[str, Fires]  # one more way to raise an alert


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
    run = _run(*arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    try:
        path = program().with_name("promtool")
    except Missing as missing:
        pytest.skip(str(missing))
    return subprocess.run([path, *arguments], capture_output=True, text=True, timeout=300, check=False)


def tried(
    table: Any, healthy: Mapping[str, str], fires: Mapping[str, Fires], folder: Path, more: Sequence[Branch] = ()
) -> None:
    """Nothing fires under the healthy series; with those of each alert over them that one fires, and no other.

    It fires as long after the start as its rule says, and not before. `more`: other series that raise an alert, too.
    """
    rules = generator()["rules"](table)
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert set(fires) == {rule["alert"] for rule in alerts}
    raised = [_raised(alerts, healthy, name, each) for name, each in [*fires.items(), *more]]
    run = evaluated(alerts, [_case(healthy, _all_at(HOURS * 60, alerts)), *raised], folder)
    assert run.returncode == 0, run.stdout + run.stderr


def _raised(alerts: Sequence[Rule], healthy: Mapping[str, str], name: str, fires: Fires) -> dict[str, object]:
    """After a long time that alert fires alone; it has begun to when its rule says."""
    (rule,) = (rule for rule in alerts if rule["alert"] == name)
    told = [_expected(rule, fires)]
    at_last = _all_at(minutes(rule["for"]) + RANGE, alerts, {name: told})
    return _case({**healthy, **fires.series}, [*at_last, *on_time(rule, told)])


def on_time(rule: Rule, told: list[object]) -> list[dict[str, object]]:
    """Nothing while it is pending, and the alert once its rule has had what it looks back on, and has waited.

    Where the rule asks for the time, its text is another one at each moment: none.
    """
    if "time()" in rule["expr"]:
        return []
    waits, name = minutes(rule["for"]), rule["alert"]
    early = [_asked(waits - 2, name, [])] if waits >= 4 else []
    return [*early, _asked(_fires_after(rule), name, told)]


def _fires_after(rule: Rule) -> int:
    """Minutes."""
    looks_back = max([minutes("".join(each)) for each in re.findall(r"\[(\d+)([mh])\]", rule["expr"])], default=0)
    return minutes(rule["for"]) + (RANGE if "time()" in rule["expr"] else looks_back + 4)


def evaluated(alerts: Sequence[Rule], cases: Sequence[object], folder: Path) -> subprocess.CompletedProcess[str]:
    """What promtool says of these cases under these rules. Skips where there is none."""
    (folder / "rules.yaml").write_text(json.dumps({"groups": [{"name": "tried", "rules": alerts}]}))
    tests = {"rule_files": [str(folder / "rules.yaml")], "evaluation_interval": "2m", "tests": cases}
    (folder / "tests.yaml").write_text(json.dumps(tests))
    return _run("test", "rules", folder / "tests.yaml")


def _case(series: Mapping[str, str], asked: list[dict[str, object]]) -> dict[str, object]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": given, "alert_rule_test": asked}


def _all_at(after: int, alerts: Iterable[Rule], told: Mapping[str, list[object]] = {}) -> list[dict[str, object]]:
    return [_asked(after, rule["alert"], told.get(rule["alert"], [])) for rule in alerts]


def _asked(after: int, name: str, told: list[object]) -> dict[str, object]:
    return {"eval_time": f"{after}m", "alertname": name, "exp_alerts": told}


def _expected(rule: Rule, fires: Fires) -> dict[str, object]:
    annotations = {"summary": fires.summary, "runbook_url": rule["annotations"]["runbook_url"]}
    return {"exp_labels": {**rule["labels"], **fires.labels}, "exp_annotations": annotations}


def unnoticed(
    table: Any, name: str, healthy: Mapping[str, str], fires: Sequence[Fires], folder: Path
) -> dict[str, str]:
    """Of the ways to break the rule of one alert, those that its series do not show: what was done, and the rule."""
    (rule,) = (row for group in generator()["rules"](table)["groups"] for row in group["rules"] if row["alert"] == name)
    made = {f"{name}_{number}": each for number, each in enumerate(sorted(broken(rule["expr"]).items()))}
    rules = [{**rule, "alert": alias, "expr": expr} for alias, (_, expr) in made.items()]
    after = _fires_after(rule)
    told = [(each.series, {alias: [_expected(rule, each)] for alias in made}) for each in fires]
    raised = [_case({**healthy, **series}, _all_at(after, rules, words)) for series, words in told]
    run = evaluated(rules, [_case(healthy, _all_at(after, rules)), *raised], folder)
    noticed = set(re.findall(r"alertname: (\w+)", run.stdout + run.stderr))
    return {what: expr for alias, (what, expr) in made.items() if alias not in noticed}
