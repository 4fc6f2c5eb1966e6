"""The digest as Markdown. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from remediator.core.ticket import EARLIEST
from remediator.tickets.digest.facts import (
    BY_HAND,
    LEMON_CASES,
    LOOKBACK,
    DigestFacts,
    DigestLemon,
    condition,
    held_since,
)
from remediator.tickets.render.markdown import code, span, table

MOST = 10  # rows of a table


def title(facts: DigestFacts, cluster: str) -> str:
    """Such as "[prod-a] Week 2026-W47: 12 cases"."""
    prefix = f"[{cluster}] " if cluster else ""
    return f"{prefix}Week {facts.week.name}: {facts.begun} {'case' if facts.begun == 1 else 'cases'}"


def text(facts: DigestFacts) -> str:
    """All of it; a part of which there is nothing to say says so in one line."""
    last = facts.week.end - timedelta(days=1)
    parts = (
        f"From {facts.week.start:%Y-%m-%d} to {last:%Y-%m-%d}, UTC. {facts.begun} cases began.",
        _recovery(facts.recovery),
        _hours(facts),
        *_section("Top causes", ("condition", "cases", "nodes", "recovered", "to a person"), _causes(facts)),
        *_section("Repaired without a person", ("condition", "cured by", "times"), _silent(facts)),
        *_section(_candidates(), ("condition", "operation", "times", "nodes"), _by_hand(facts)),
        *_section("Held longest", ("case", "node", "condition", "for", "why"), _held(facts, facts.week.end)),
        *_section(f"Nodes with {_often()}", ("node", "cases", "conditions"), _lemons(facts.nodes)),
        *_section(f"Boards with {_often()}", ("serial", "cases", "conditions"), _lemons(facts.boards)),
    )
    return "\n\n".join(parts)


def percentile(lengths: Sequence[timedelta], percent: int) -> timedelta:
    """The smallest of the sorted lengths that so many percent do not exceed."""
    return lengths[max(0, -(-len(lengths) * percent // 100) - 1)]


def _recovery(lengths: Sequence[timedelta]) -> str:
    if not lengths:
        return "**Time to recover:** nothing recovered without a person."
    half, most, longest = (_long(percentile(lengths, percent)) for percent in (50, 90, 100))
    return f"**Time to recover:** median {half}, 90 % within {most}, longest {longest} ({len(lengths)} cases)."


def _hours(facts: DigestFacts) -> str:
    unknown = f", and {facts.unknown_hours:.1f} node-hours of nodes without known GPUs" if facts.unknown_hours else ""
    return f"**Out of service for repair:** {facts.gpu_hours:.1f} GPU-hours{unknown}."


def _often() -> str:
    return f"{LEMON_CASES} or more repairs in {LOOKBACK.days} days"


def _section(name: str, head: Sequence[str], rows: list[tuple[str, ...]]) -> tuple[str, str]:
    return f"### {name}", table(head, rows, MOST) if rows else "None."


def _causes(facts: DigestFacts) -> list[tuple[str, ...]]:
    return [
        (_what(cause.condition), *map(str, (cause.cases, cause.nodes, cause.recovered, cause.escalated)))
        for cause in facts.causes
    ]


def _silent(facts: DigestFacts) -> list[tuple[str, ...]]:
    return [
        (_what(name), code(operation) if operation else "nothing tried", str(count))
        for name, operation, count in facts.silent
    ]


def _candidates() -> str:
    return f"Done by hand {BY_HAND} or more times in {LOOKBACK.days} days: candidates for a policy"


def _by_hand(facts: DigestFacts) -> list[tuple[str, ...]]:
    return [
        (code(row.condition) if row.condition else "no case stood on the node", code(row.operation), *counts)
        for row in facts.by_hand
        for counts in [(str(row.times), str(row.nodes))]
    ]


def _held(facts: DigestFacts, end: datetime) -> list[tuple[str, ...]]:
    return [
        (
            code(case.name),
            code(case.node),
            _what(condition(case)),
            _long(end - held_since(case)),
            ", ".join(block.reason.value for block in case.blocks),
        )
        for case in facts.held
    ]


def _lemons(lemons: Iterable[DigestLemon]) -> list[tuple[str, ...]]:
    return [(code(lemon.name), str(lemon.cases), ", ".join(map(_what, lemon.conditions))) for lemon in lemons]


def _what(name: str) -> str:
    return code(name) if name else "asked for by hand"


def _long(length: timedelta) -> str:
    return span(EARLIEST, EARLIEST + length)
