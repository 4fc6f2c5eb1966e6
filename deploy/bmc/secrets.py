"""Print one Secret for each node of a list of BMCs: `python3 deploy/bmc/secrets.py LIST.csv | kubectl apply -f -`.

The list is CSV with a header: node, then keys of the Secret: address, username, password, ... (docs/operations.md). An
empty field is left out. Passwords go through files and pipes alone, never through a command line.
"""

import csv
import json
import sys
from pathlib import Path


def secret(row: dict[str, str]) -> dict[str, object]:
    """Return the Secret of one line."""
    meta = {"name": f"remediator-bmc-{row['node']}", "namespace": "remediator-operations"}
    keys = {name: value for name, value in row.items() if name != "node" and value}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "stringData": keys}


def main(path: Path) -> None:
    """Print the Secrets of a list. Exit 1 for a line that does not fit the header, before any is printed."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    for number, row in enumerate(rows, 1):
        if not row.get("node") or None in row or None in row.values():
            sys.exit(f"{path}: entry {number} has no node, or not as many fields as the header")
    json.dump({"apiVersion": "v1", "kind": "List", "items": [secret(row) for row in rows]}, sys.stdout, indent=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
