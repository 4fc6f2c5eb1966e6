"""What came of it: for a person as tables, for a program as one JSON object."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from remediator_sim.invariants import Checked
from remediator_sim.scenarios.packing import Packing
from remediator_sim.scenarios.placement import Placement
from remediator_sim.scenarios.tui import FaultRow, faults, invariants, table

SHOWN = 3  # placements; the JSON object has all of them


class FaultOutcome(NamedTuple):
    """How one fault ended; `text` says what happens in its scenario, `wrong` what was not as expected."""

    name: str
    nodes: tuple[str, ...]
    outcome: str
    seconds: float
    wrong: tuple[str, ...]
    text: str


class ReportedIssue(NamedTuple):
    """One issue at the end; `link` leads to its page for as long as the demo runs."""

    title: str
    open: bool
    link: str


@dataclass(frozen=True, slots=True)
class Summary:
    """One run. Seconds count from the first fault; `advised` counts the pods about which the extender was asked."""

    faults: Sequence[FaultOutcome]
    seconds: float
    reboots: int
    evictions: int
    issues: Sequence[ReportedIssue]
    invariants: Mapping[str, Checked]
    advised: int
    placements: Sequence[Placement]
    violations: Sequence[str]
    packing: Packing
    whole: bool  # all scenarios, which put every invariant to the test

    def wrong(self) -> list[str]:
        """Everything that is not as it should be, a sentence each; empty is success."""
        ends = [f"{fault.name}: {sentence}" for fault in self.faults for sentence in fault.wrong]
        broken = [f"{check.name}: {sentence}" for check in self.invariants.values() for sentence in check.broken]
        untested = [check.name for check in self.invariants.values() if self.whole and not check.checks]
        broken += [f"{name}: nothing put it to the test" for name in untested]
        github = (f"GitHub: {sentence}" for sentence in self.violations)
        return [*ends, *broken, *github, *(f"packing: {sentence}" for sentence in self.packing.wrong())]

    def json(self) -> str:
        """One line."""
        closed = sum(not issue.open for issue in self.issues)
        return json.dumps(
            {
                "ok": not self.wrong(),
                "seconds": round(self.seconds, 1),
                "faults": [_fault(outcome) for outcome in self.faults],
                "reboots": self.reboots,
                "evictions": self.evictions,
                "tickets": {"opened": len(self.issues), "closed": closed},
                "issues": [issue._asdict() for issue in self.issues],
                "advised": self.advised,
                "packing": self.packing._asdict(),
                "placements": [placement._asdict() for placement in self.placements],
                "invariants": {name: _invariant(check) for name, check in self.invariants.items()},
                "wrong": self.wrong(),
            }
        )

    def print_to(self, console: Console) -> None:
        """Tables, and one sentence at the end."""
        shown = {name: check for name, check in self.invariants.items() if self.whole or check.checks}
        checked = {name: (check.text, check.checks, check.broken) for name, check in shown.items()}
        tables = [faults([_row(outcome) for outcome in self.faults]), self._issues(), self._placements()]
        for drawn in (*tables, invariants(checked)):
            if drawn.row_count:
                console.print()
                console.print(drawn)
        console.print()
        if not self.packing.wrong():
            console.print(str(self.packing), soft_wrap=True)
        console.print(self._counts(), soft_wrap=True)
        for sentence in self.wrong():
            console.print(f"[red]not as expected:[/red] {sentence}", highlight=False)
        if not self.wrong():
            console.print("[green]Everything went as expected.[/green]")

    def _counts(self) -> str:
        closed = sum(not issue.open for issue in self.issues)
        kept_off = sum(bool(placement.fault) for placement in self.placements)
        counts = (
            _count(self.reboots, "reboot"),
            _count(self.evictions, "eviction"),
            f"{_count(len(self.issues), 'issue')} opened, {closed} closed",
            f"{_count(self.advised, 'pod')} placed with the extender's advice, "
            f"{kept_off} of them kept off an unhealthy node",
        )
        return f"{', '.join(counts)}, in {self.seconds:.0f} s"

    def _issues(self) -> Table:
        drawn = table("issue", "state", "page (while the demo runs)")
        for issue in self.issues:
            drawn.add_row(issue.title, "open" if issue.open else "closed", issue.link)
        return drawn

    def _placements(self) -> Table:
        drawn = table("pod", "is placed on", "without Remediator")
        for placement in [placement for placement in self.placements if placement.fault][:SHOWN]:
            drawn.add_row(placement.pod, placement.node, f"{placement.without}, which is unhealthy: {placement.fault}")
        return drawn


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _fault(outcome: FaultOutcome) -> dict[str, Any]:
    seconds = round(outcome.seconds, 1)
    fault = {"name": outcome.name, "node": ",".join(outcome.nodes), "outcome": outcome.outcome, "seconds": seconds}
    return {**fault, **({"wrong": list(outcome.wrong)} if outcome.wrong else {})}


def _invariant(check: Checked) -> dict[str, Any]:
    return {"checks": check.checks, **({"broken": list(check.broken)} if check.broken else {})}


def _row(outcome: FaultOutcome) -> FaultRow:
    nodes = outcome.nodes
    place = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes" if nodes else "controller"
    return FaultRow(outcome.name, place, outcome.outcome, "; ".join(outcome.wrong) or outcome.text, outcome.seconds)
