"""The table of alerts (deploy/monitoring/alerts.toml), and what their pages (docs/alerts/) show of it."""

import runpy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/alerts"
Row = Mapping[str, str]
SEVERITIES = {"critical": "wake somebody", "warning": "look today", "info": "look this week"}


@cache
def generator() -> Mapping[str, Any]:
    """What deploy/monitoring/generate.py defines."""
    return runpy.run_path(str(ROOT / "deploy/monitoring/generate.py"))


def rows() -> Mapping[str, Row]:
    """The alerts about Remediator by name."""
    made: Mapping[str, Row] = generator()["OURS"].rows()
    return made


def of_nodes() -> Mapping[str, Row]:
    """The alerts about nodes by name."""
    made: Mapping[str, Row] = generator()["NODES"].rows()
    return made


def drawings() -> dict[str, str]:
    """What the pages show that is data, by the name of the drawing."""
    rules = {f"alert {name}": _rule(row) for name, row in rows().items()}
    return {"alerts": _index(rows()), "alerts about nodes": _index(of_nodes()), **rules}


def _rule(row: Row) -> str:
    return "\n".join(
        [
            f"**{row['severity']}** ({SEVERITIES[row['severity']]}), once this has been true for {row['for']}:",
            "",
            f"```text\n{row['expr']}\n```",
        ]
    )


def _index(table: Mapping[str, Row]) -> str:
    pages = {name: row.get("page", f"alerts/{name}.md") for name, row in table.items()}
    lines = [f"| [{name}]({pages[name]}) | {row['severity']} | {row['for']} |" for name, row in table.items()]
    return "\n".join(["| alert | severity | true for |", "|---|---|---|", *lines])
