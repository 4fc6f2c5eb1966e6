"""Write node-problem-detector's files, and the lists of them and their Conditions, from detectors.toml: `make npd`.

detector_stale has no row: it watches every other detector, and so its arguments follow from the rows.
"""

import json
import re
import textwrap
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deploy.generated import write

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parent
START = "/opt/remediator/nodelib/forks/start.py"  # is told the name of the detector, and its options
MOUNTED = "/etc/remediator/npd"
DetectorRow = Mapping[str, Any]
STALE = {
    "condition": "DetectorStale",
    "reason": "DetectorStale",
    "healthy": ["DetectorsRun", "every detector runs"],
    "interval": 60,
    "timeout": 20,
    "when": "told",
    "policy": "detector-stale",
}


def rows() -> dict[str, DetectorRow]:
    """The table by name of the detector, detector_stale among them."""
    table = tomllib.loads((HERE / "detectors.toml").read_text())
    watched = [f"--detector={name}={row['interval']}" for name, row in sorted(table.items())]
    return dict(sorted({**table, "detector_stale": {**STALE, "args": watched}}.items()))


def monitor(name: str, row: DetectorRow) -> dict[str, Any]:
    """One file of node-problem-detector: one rule, so that nothing else waits for a detector that hangs.

    The first thing it says is a result (skip_initial_status). A Condition whose text alone changes stays as it is,
    unless the row says that it speaks by its text.
    """
    reason, message = row["healthy"]
    return {
        "plugin": "custom",
        "pluginConfig": {
            "invoke_interval": f"{row['interval']}s",
            "timeout": f"{row['timeout']}s",
            "max_output_length": 512,
            "concurrency": 1,
            "enable_message_change_based_condition_update": row.get("speaks", False),
            "skip_initial_status": True,
        },
        "source": f"remediator-{name.replace('_', '-')}",
        "metricsReporting": True,
        "conditions": [{"type": row["condition"], "reason": reason, "message": message}],
        "rules": [
            {
                "type": "permanent",
                "condition": row["condition"],
                "reason": row["reason"],
                "path": START,
                "args": [name, *row["args"]],
                "timeout": f"{row['timeout']}s",
            }
        ],
    }


def file_name(name: str) -> str:
    """Where the monitor of a detector is kept."""
    return f"{name.replace('_', '-')}.json"


def files() -> dict[Path, str]:
    """Everything that follows from the table: each file with its whole text."""
    names = [file_name(name) for name in rows()]
    text = ",".join(f"{MOUNTED}/{name}" for name in names)
    types = f"{textwrap.indent(textwrap.fill(f'[{_quoted()}]', 110), '      ')}\n"
    listed = "".join(f"  - npd/{name}\n" for name in names)
    return {
        **{HERE / file_name(name): json.dumps(monitor(name, row), indent=2) + "\n" for name, row in rows().items()},
        **_changed("node-problem-detector.yaml", r"(?<=--config\.custom-plugin-monitor=)\S+", text),
        **_changed("kustomization.yaml", r"(?<=  files:\n)(  - npd/\S+\n)+", listed),
        **_changed("admission/detectors.yaml", r"(?<=  - name: types\n    expression: >-\n)(      .*\n)+", types),
    }


def _quoted() -> str:
    """The types of all Conditions, those of log monitors among them, as CEL writes a list."""
    types = {row["condition"] for row in rows().values()} | log_conditions()
    return ", ".join(f"'{condition}'" for condition in sorted(types))


def log_conditions() -> set[str]:
    """The Conditions of node-problem-detector's own log monitors, where somebody adds them (deploy/log-monitors)."""
    bodies = [json.loads(path.read_text()) for path in sorted(DEPLOY.glob("log-monitors/*/*.json"))]
    return {condition["type"] for body in bodies for condition in body["conditions"]}


def _changed(name: str, pattern: str, text: str) -> dict[Path, str]:
    before = (DEPLOY / name).read_text()
    after, count = re.subn(pattern, lambda _: text, before)
    if count != 1:
        raise SystemExit(f"{DEPLOY / name}: {count} places for the list of detectors, not one")
    return {DEPLOY / name: after}


if __name__ == "__main__":
    write(files())
    for path in set(HERE.glob("*.json")) - set(files()):
        path.unlink()
