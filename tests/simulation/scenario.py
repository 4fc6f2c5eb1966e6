"""Plans of seven nodes with shipped policies, what happens to them, and what a test reads from the outcome."""

import re
from typing import Any

from remediator_sim.simulation.plan import Plan, Step, Words
from remediator_sim.simulation.world import SeedOutcome

NODES = tuple(f"gpu-0{number}" for number in range(1, 8))
FLEET: dict[str, Any] = {"nodes": NODES, "budgets": (("fleet", (("maxUnavailable", 2),)),)}


def a_plan(*steps: Step, policies: tuple[str, ...], mode: str = "Enforce", until: float = 3000.0, **more: Any) -> Plan:
    """Seven nodes with up to two Pods each, of which two may be out of service unless `more` has other budgets."""
    return Plan(7, steps=steps, until=until, policies=tuple((name, mode) for name in policies), **FLEET | more)


def fault(condition: str, *cures: str, node: str = "gpu-01", at: float = 60.0, **more: Any) -> Step:
    words: Words = (("condition", condition), ("cures", cures), ("tries", 1), *more.items())
    return Step(at, "fault", node, words)


def heal(node: str, at: float) -> Step:
    return Step(at, "heal", node)


def killed(phase: str = "", at: float = 60.0, node: str = "gpu-01") -> Step:
    """The leader dies while the case of the node is in `phase`, or at a time."""
    words = (("how", "now"), ("part", ""), ("back", 20))
    return Step(at, "crash", "leader", (("case", (node, phase)), *words) if phase else words)


def during(phase: str, kind: str, target: str = "gpu-01", node: str = "gpu-01", at: float = 60.0, **words: Any) -> Step:
    """What happens while the case of the node is in `phase`."""
    return Step(at, kind, target, (("case", (node, phase)), *words.items()))


def touched(outcome: SeedOutcome) -> set[str]:
    """Nodes that were cordoned, drained or operated on, and those whose Pods were evicted."""
    acts = re.findall(
        r"^\S+ \S+ +(\S+) +(?:is cordoned|goes down|operation \S+ is made)", outcome.journal, re.MULTILINE
    )
    return set(acts) & set(NODES)


def moments_of(outcome: SeedOutcome, words: str) -> list[int]:
    """The numbers of the lines of the story that have these words."""
    return [number for number, line in enumerate(outcome.journal.splitlines()) if words in line]


def boots_of(outcome: SeedOutcome, node: str = "gpu-01") -> int:
    """How often a node went down."""
    return len(re.findall(rf"^\S+ \S+ +{node} +goes down", outcome.journal, re.MULTILINE))


def the_case(outcome: SeedOutcome, node: str = "gpu-01") -> tuple[str, tuple[tuple[str, str], ...]]:
    (case,) = outcome.ending.nodes[node].cases
    return case.phase, case.attempts
