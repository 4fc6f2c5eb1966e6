"""The table of alerts (deploy/monitoring/alerts.toml), and what their pages (docs/alerts/) show of it."""

import runpy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/alerts"
SEVERITIES = {"critical": "wake somebody", "warning": "look today", "info": "look this week"}


@cache
def generator() -> Mapping[str, Any]:
    """What deploy/monitoring/generate.py defines."""
    return runpy.run_path(str(ROOT / "deploy/monitoring/generate.py"))


def rows() -> Mapping[str, Mapping[str, str]]:
    """The alerts by name."""
    made: Mapping[str, Mapping[str, str]] = generator()["rows"]()
    return made


def drawings() -> dict[str, str]:
    """What the pages show that is data, by the name of the drawing."""
    return {"alerts": _index(), **{f"alert {name}": _rule(row) for name, row in rows().items()}}


def _rule(row: Mapping[str, str]) -> str:
    return "\n".join(
        [
            f"**{row['severity']}** ({SEVERITIES[row['severity']]}), once this has been true for {row['for']}:",
            "",
            f"```text\n{row['expr']}\n```",
        ]
    )


def _index() -> str:
    lines = [f"| [{name}](alerts/{name}.md) | {row['severity']} | {row['for']} |" for name, row in rows().items()]
    return "\n".join(["| alert | severity | true for |", "|---|---|---|", *lines])
