"""Draws the decision tables for docs/cases.md, operations.md and tickets.md, the fields in docs/api.md,
the command line in docs/cli.md, and the reasons in docs/reasons.md.

And what the pages of Conditions (docs/conditions/) and alerts (docs/alerts/) say that is data, so that pages and code
cannot differ.
`python -m tests.contract.drawing` writes the pages' drawings anew.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, get_type_hints

from deploy.generated import write
from nodelib.k8s.eviction_answers import ANSWERS
from remediator.core.case import Phase
from remediator.core.case_table import CASE_TABLE, CaseObservation, CaseStep, Tried, case_step
from remediator.core.hosts import DETECTORS, HOSTS, ON_NODE, HostRow
from remediator.core.maintenance import SIGNS
from remediator.core.offer import OFFER_TABLE
from remediator.core.operation_table import OPERATION_TABLE, OperationObservation
from remediator.core.outcome import OUTCOME_TABLE
from remediator.core.outside_request import OUTSIDE_TABLE
from remediator.core.request_table import REQUEST_TABLE
from remediator.core.rma_readme import readme
from remediator.core.table import Row, Table
from remediator.tickets.chat import decide as chat
from remediator.tickets.reconcile import states
from tests.contract import alerts, command_line, conditions, fields, reasons
from tests.remediator.core.rma_example import CLAIM, NOW

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    *(
        DOCS / page
        for page in (
            "alerts.md",
            "api.md",
            "cases.md",
            "chat.md",
            "cli.md",
            "conditions.md",
            "hosts.md",
            "operations.md",
            "reasons.md",
            "requests.md",
            "rma.md",
            "safety.md",
            "tickets.md",
        )
    ),
    *sorted((DOCS / "alerts").glob("*.md")),
    *sorted((DOCS / "conditions").glob("*.md")),
]

# the phase that a step shows once it is done
SHOWN: Mapping[CaseStep, Phase] = {
    CaseStep.CLAIM: Phase.HELD,
    CaseStep.DIAGNOSE: Phase.DRAINING,
    CaseStep.START: Phase.DRAINING,
    CaseStep.WATCH: Phase.DRAINING,
    CaseStep.FOLLOW: Phase.DRAINING,
    CaseStep.VERIFY: Phase.VERIFYING,
    CaseStep.PROBE: Phase.VERIFYING,
    CaseStep.CLEAR: Phase.RECOVERED,
    CaseStep.RECOVER: Phase.RECOVERED,
    CaseStep.ESCALATE: Phase.ESCALATED,
    CaseStep.TAKE_OUT: Phase.ESCALATED,
    CaseStep.END: Phase.CANCELLED,
    CaseStep.GIVE_WAY: Phase.CANCELLED,
}


def every(seen: type[CaseObservation] | type[OperationObservation]) -> Iterator[CaseObservation | OperationObservation]:
    """Every combination of what can be observed."""
    kinds = get_type_hints(seen).values()
    values = [list(kind) if issubclass(kind, Enum) else [False, True] for kind in kinds]
    return (seen(*chosen) for chosen in product(*values))


def phase(seen: CaseObservation) -> str:
    """The phase column that a case with these observations shows."""
    if seen.ended:
        return "Ended"
    if seen.escalated:
        return "Escalated"
    if not seen.claimed:
        return "Held"
    return "Verifying" if seen.tried in (Tried.SUCCEEDED, Tried.FAILED) else "Draining"


def edges() -> set[tuple[str, str, str]]:
    """Which step leads from which phase to which."""
    found = set()
    for seen in every(CaseObservation):
        step = case_step(seen)
        tried_blindly = not seen.diagnosed and seen.tried is not Tried.NONE  # LOOK comes before the first attempt
        if step in SHOWN and phase(seen) not in ("Ended", "Escalated") and not tried_blindly:
            found.add((phase(seen), SHOWN[step].value, step.name))
        if step is CaseStep.RECORD and seen.claimed and not seen.escalated:
            found.add(("Operating", "Verifying", step.name))
    found.add(("Held", "Draining", CaseStep.CLAIM.name))  # granted by the admission pass
    found.add(("Draining", "Operating", CaseStep.WATCH.name))
    found.add(("Draining", "Verifying", CaseStep.RECORD.name))
    return {edge for edge in found if edge[0] != edge[1]}


def diagram() -> str:
    """A mermaid state diagram of the phases of a case."""
    lines = [f"    {source} --> {target}: {step}" for source, target, step in sorted(edges())]
    ends = ["    Cancelled --> [*]", f"    Escalated --> [*]: {CaseStep.END.name}", "    Recovered --> [*]"]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> Held", *lines, *ends, "```"])


def table(rows: Sequence[Row[Any]]) -> str:
    """The rows as Markdown, in the order in which they are tried."""
    lines = [f"| {number} | {_asks(row.asks)} | {row.result.name} | {row.why} |" for number, row in enumerate(rows, 1)]
    return "\n".join(["| row | where | does | why it stands here |", "|---|---|---|---|", *lines])


def _asks(asks: Mapping[str, object]) -> str:
    questions = (
        f"{name} = {value.name if isinstance(value, Enum) else str(value).lower()}" for name, value in asks.items()
    )
    return ", ".join(questions) or "otherwise"


def outcomes() -> str:
    """The ends of operations in vain, as Markdown."""
    lines = [
        f"| {number} | {_asks(row.asks)} | {row.result.phase.value} | `{row.result.reason.value}` | {row.result.then} "
        f"| {row.why} |"
        for number, row in enumerate(OUTCOME_TABLE.rows, 1)
    ]
    return "\n".join(["| row | where | phase | reason | then | why |", "|---|---|---|---|---|---|", *lines])


def evictions() -> str:
    """What the API server answers to an eviction, as Markdown."""
    lines = [
        f"| {row.status}{'xx' if row.status < 10 else ''} | {row.words or 'any'} | {row.name} "
        f"| {'yes' if row.keeps else 'no'} | {row.remedy or '-'} |"
        for row in ANSWERS
    ]
    return "\n".join(["| HTTP | says | means | is the Pod in the way | remedy |", "|---|---|---|---|---|", *lines])


def signs() -> str:
    """The signs of other systems on a node, as Markdown."""
    lines = [
        f"| {sign.who} | {sign.does} a node | {sign.where.value} `{sign.key}` "
        f"| {', '.join(f'`{value}`' for value in sorted(sign.values)) or 'any'} |"
        for sign in SIGNS
    ]
    return "\n".join(["| who | does | sign | values |", "|---|---|---|---|", *lines])


def host_table() -> str:
    """What differs on which host, as Markdown: operations with the same answer share a row."""
    lines = ["| nodes run | `--platform` | operation | there |", "|---|---|---|---|"]
    for kind, row in HOSTS.items():
        there: dict[str, list[str]] = {}
        for name in (*ON_NODE, DETECTORS):
            there.setdefault(_on_host(row, name), []).append(f"`{name}`" if name != DETECTORS else name)
        same = there.pop("works", [])
        told = [(", ".join(names), text) for text, names in there.items()]
        rest = "all others" if told else "all"
        for names, text in [*told, (rest, "works")] if same else told:
            lines.append(f"| {row.title} | `{kind}` | {names} | {text} |")
    return "\n".join(lines)


def _on_host(row: HostRow, name: str) -> str:
    refused, note = row.refused.get(name), row.notes.get(name)
    return f"**refused**: {refused}" if refused else f"works; {note}" if note else "works"


def host_needs() -> str:
    """What has to be added for some hosts, as Markdown."""
    needs = [f"| {row.title} | {row.needs} |" for row in HOSTS.values() if row.needs]
    return "\n".join(["| nodes run | add |", "|---|---|", *needs])


def by_state(tables: Mapping[Any, Table[Any]]) -> str:
    """The tables of a ticket, or of a thread, one for each of its states."""
    return "\n\n".join(f"**{state.name}**\n\n{table(decisions.rows)}" for state, decisions in tables.items())


DRAWINGS: Mapping[str, Callable[[], str]] = {
    "diagram": diagram,
    "cases": lambda: table(CASE_TABLE.rows),
    "operations": lambda: table(OPERATION_TABLE.rows),
    "outcomes": outcomes,
    "evictions": evictions,
    "offers": lambda: table(OFFER_TABLE.rows),
    "requests of other controllers": lambda: table(OUTSIDE_TABLE.rows),
    "requests": lambda: table(REQUEST_TABLE.rows),
    "threads": lambda: by_state(chat.TABLES),
    "tickets": lambda: by_state(states.TABLES),
    "signs": signs,
    "hosts": host_table,
    "host needs": host_needs,
    "rma": lambda: f"```text\n{readme(CLAIM, NOW).rstrip()}\n```",
}


@cache
def tables() -> Mapping[str, str]:
    """The tables of fields, Conditions, alerts and commands, by their names."""
    parts = (fields, conditions, alerts, command_line, reasons)
    return {name: drawing for part in parts for name, drawing in part.drawings().items()}


def drawn(page: str) -> str:
    """The page with its drawings replaced by those of the code."""

    def new(place: re.Match[str]) -> str:
        name = place[2]
        if name not in tables() and name not in DRAWINGS:
            return place[0]
        drawing = tables()[name] if name in tables() else DRAWINGS[name]()
        return f"{place[1]}{drawing}\n{place[3]}"

    return re.sub(r"(<!-- drawn: ([^\n]+?) -->\n).*?(<!-- end -->)", new, page, flags=re.DOTALL)


if __name__ == "__main__":
    write({path: drawn(path.read_text()) for path in PAGES})
