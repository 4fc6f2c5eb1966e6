"""The verbs that docs/security.md tells of each account."""

import re
from pathlib import Path
from typing import NamedTuple

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
HEADER = "| account | where | verbs |\n|---|---|---|\n"


class Grant(NamedTuple):
    """One verb on one kind, of which only the object `name` where it has one."""

    verb: str
    resource: str  # with its group and its part: nodeoperations.remediator.dev/status
    name: str = ""


def verb_table() -> list[str]:
    """The rows of that table."""
    return PAGE.partition(HEADER)[2].partition("\n\n")[0].splitlines()


def told() -> dict[str, dict[str, set[Grant]]]:
    """Account → namespace, "" for everywhere → what it may."""
    tables: dict[str, dict[str, set[Grant]]] = {}
    for row in verb_table():
        who, where, words = (cell.strip() for cell in row.strip("|").split(" | "))
        account, space = who.split("`")[1], where.strip("`").replace("everywhere", "")
        held = tables.setdefault(account, {}).setdefault(space, set())
        for kind, name, verbs in re.findall(r"`(\S+)(?: (\S+))?` ([a-z, ]+)", words):
            held |= {Grant(verb, kind, name) for verb in verbs.split(", ")}
    return tables
