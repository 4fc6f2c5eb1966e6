"""Write the alert rules from their tables, each as a plain file of rules and as a PrometheusRule: `make alerts`."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from deploy.generated import write

HERE = Path(__file__).resolve().parent
DOCS = "https://runbooks.invalid/docs"  # leads nowhere: where your copy of docs/ can be read, only you know
HEAD = """# Written by deploy/monitoring/generate.py from {table}: `make alerts`.
# Each runbook_url leads nowhere until you say where docs/ can be read: docs/alerts.md.
# In the chart it is the value monitoring.runbooks.
"""
AlertRow = Mapping[str, str]


class Table(NamedTuple):
    """One table: its file, the name of what is made from it, and what the names of these files begin with."""

    file: str
    name: str
    prefix: str = ""

    def rows(self) -> dict[str, AlertRow]:
        """By name of the alert."""
        return tomllib.loads((HERE / self.file).read_text())


OURS, NODES = Table("alerts.toml", "remediator"), Table("nodes.toml", "remediator-nodes", "node-")
TABLES = (OURS, NODES)


def rule(name: str, row: AlertRow) -> dict[str, Any]:
    """One alert as Prometheus reads it; its page is the one of its name where the row has none."""
    return {
        "alert": name,
        "expr": row["expr"],
        "for": row["for"],
        "labels": {"severity": row["severity"]},
        "annotations": {"summary": row["summary"], "runbook_url": f"{DOCS}/{row.get('page', f'alerts/{name}.md')}"},
    }


def rules(table: Table) -> dict[str, Any]:
    """A file of rules for `rule_files`."""
    return {"groups": [{"name": table.name, "rules": [rule(name, row) for name, row in table.rows().items()]}]}


def prometheus_rule(table: Table) -> dict[str, Any]:
    """The same for the Prometheus Operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": table.name,
            "namespace": "remediator-system",
            "labels": {"app.kubernetes.io/name": "remediator"},
        },
        "spec": rules(table),
    }


def files() -> dict[Path, str]:
    """What stands in each file."""
    return {path: text for table in TABLES for path, text in _of(table).items()}


def _of(table: Table) -> dict[Path, str]:
    made = {"rules.yaml": rules(table), "prometheusrule.yaml": prometheus_rule(table)}
    head = HEAD.format(table=table.file)
    return {
        HERE / f"{table.prefix}{name}": head + yaml.safe_dump(content, sort_keys=False, width=1000)
        for name, content in made.items()
    }


if __name__ == "__main__":
    write(files())
