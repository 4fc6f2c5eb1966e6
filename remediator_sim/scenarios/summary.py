"""What came of it: for a person as tables, for a program as one JSON object."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import Console

from remediator_sim.invariants import Checked
from remediator_sim.scenarios.tui import Row, invariants, table


class Outcome(NamedTuple):
    """How one fault ended; `tells` is how the story goes, `wrong` what did not go so."""

    name: str
    nodes: tuple[str, ...]
    outcome: str
    seconds: float
    wrong: tuple[str, ...]
    tells: str


@dataclass(frozen=True, slots=True)
class Summary:
    """One performance. Seconds count from the first fault."""

    faults: Sequence[Outcome]
    seconds: float
    reboots: int
    evictions: int
    opened: int
    closed: int
    invariants: Mapping[str, Checked]
    scheduled: int
    violations: Sequence[str]
    whole: bool  # all of the story, which puts every invariant to the test

    def wrong(self) -> list[str]:
        """Everything that is not as it should be, a sentence each; empty is success."""
        ends = [f"{fault.name}: {said}" for fault in self.faults for said in fault.wrong]
        broken = [f"{one.name}: {said}" for one in self.invariants.values() for said in one.broken]
        untested = [one.name for one in self.invariants.values() if self.whole and not one.checks]
        broken += [f"{name}: nothing put it to the test" for name in untested]
        return [*ends, *broken, *(f"GitHub: {said}" for said in self.violations)]

    def json(self) -> str:
        """One line."""
        return json.dumps(
            {
                "ok": not self.wrong(),
                "seconds": round(self.seconds, 1),
                "faults": [_fault(one) for one in self.faults],
                "reboots": self.reboots,
                "evictions": self.evictions,
                "tickets": {"opened": self.opened, "closed": self.closed},
                "scheduled": self.scheduled,
                "invariants": {name: _invariant(one) for name, one in self.invariants.items()},
                "wrong": self.wrong(),
            }
        )

    def show(self, console: Console) -> None:
        """Tables, and one sentence at the end."""
        console.print()
        console.print(table([_row(one) for one in self.faults]))
        console.print()
        checked = {name: (one.text, one.checks, one.broken) for name, one in self.invariants.items()}
        console.print(invariants(checked))
        console.print()
        told = f"{self.reboots} reboots, {self.evictions} evictions, {self.opened} tickets opened, {self.closed} closed"
        console.print(f"{told}, {self.scheduled} pods placed with the extender's advice, in {self.seconds:.0f} s")
        for said in self.wrong():
            console.print(f"[red]not as told:[/red] {said}", highlight=False)
        if not self.wrong():
            console.print("[green]All as the story tells.[/green]")


def _fault(one: Outcome) -> dict[str, Any]:
    said = {"name": one.name, "node": ",".join(one.nodes), "outcome": one.outcome, "seconds": round(one.seconds, 1)}
    return {**said, **({"wrong": list(one.wrong)} if one.wrong else {})}


def _invariant(one: Checked) -> dict[str, Any]:
    return {"checks": one.checks, **({"broken": list(one.broken)} if one.broken else {})}


def _row(one: Outcome) -> Row:
    place = one.nodes[0] if len(one.nodes) == 1 else f"{len(one.nodes)} nodes" if one.nodes else "controller"
    return Row(one.name, place, one.outcome, "; ".join(one.wrong) or one.tells, one.seconds)
