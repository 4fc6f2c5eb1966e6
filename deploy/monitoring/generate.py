#!/usr/bin/env python3
"""Write the alert rules from alerts.toml, once as a plain file of rules, once as a PrometheusRule: `make alerts`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
RUNBOOKS = "https://runbooks.invalid/docs/alerts"  # where your copy of docs/alerts can be read
HEAD = """# Written by deploy/monitoring/generate.py from alerts.toml: `make alerts`.
# Replace the host in each runbook_url by that of your copy of docs/.
"""
AlertRow = Mapping[str, str]


def rows() -> dict[str, AlertRow]:
    """The table by name of the alert."""
    return tomllib.loads((HERE / "alerts.toml").read_text())


def rule(name: str, row: AlertRow) -> dict[str, Any]:
    """One alert as Prometheus reads it."""
    return {
        "alert": name,
        "expr": row["expr"],
        "for": row["for"],
        "labels": {"severity": row["severity"]},
        "annotations": {"summary": row["summary"], "runbook_url": f"{RUNBOOKS}/{name}.md"},
    }


def rules() -> dict[str, Any]:
    """A file of rules for `rule_files`."""
    return {"groups": [{"name": "remediator", "rules": [rule(name, row) for name, row in rows().items()]}]}


def prometheus_rule() -> dict[str, Any]:
    """The same for the Prometheus Operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "remediator",
            "namespace": "remediator-system",
            "labels": {"app.kubernetes.io/name": "remediator"},
        },
        "spec": rules(),
    }


def files() -> dict[Path, str]:
    """What stands in each file."""
    made = {HERE / "rules.yaml": rules(), HERE / "prometheusrule.yaml": prometheus_rule()}
    return {path: HEAD + yaml.safe_dump(content, sort_keys=False, width=1000) for path, content in made.items()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
