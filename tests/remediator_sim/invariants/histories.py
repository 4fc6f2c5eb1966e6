"""Beginnings that several histories share, and how a table of histories becomes tests."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.remediator_sim.invariants.recording import Recording, tried

History = Callable[[Recording], None]
BOOT = {"bootID": "boot-1", "at": "2026-01-01T12:00:00Z"}


def histories(what: str, rows: Sequence[tuple[History, Any]]) -> pytest.MarkDecorator:
    """A test for each row: a history, and `what` is expected of it."""
    return pytest.mark.parametrize(("history", what), rows, ids=[row[0].__qualname__.split(".")[0] for row in rows])


def holds(name: str, history: History, checks: int) -> None:
    """The invariant is kept, and was checked so many times."""
    recording = Recording()
    history(recording)
    found = recording.found(name)
    assert (found.broken, found.checks) == ((), checks)


def breaks(name: str, history: History, text: str) -> None:
    """The invariant is broken, and the report says this of it."""
    recording = Recording()
    history(recording)
    found = recording.found(name)
    assert any(text in sentence for sentence in found.broken), found.broken
    assert found.checks >= len(found.broken)


def three_nodes(recording: Recording, most: int | str = 1, **spec: object) -> None:
    for name in ("n1", "n2", "n3"):
        recording.node(name)
    recording.budget("b", most, **spec)
    for case, node in (("a", "n1"), ("c", "n2")):
        recording.case(case, node, "Held")
    recording.later(5)


def everything_on_a_fault(recording: Recording, **said: object) -> None:
    recording.node("n1", **said)
    recording.budget()
    recording.case("a", "n1", "Held")
    recording.later(5)
    recording.claims(a="n1")
    recording.taint("n1", "a")
    recording.case("a", phase="Draining", startedAt=True, attempts=tried("reset-1", outcome=""))
    recording.operation("reset-1", "a")
    recording.pod("drain-1", "reset-1", "drain")
    recording.operation("reset-1", "a", intent=BOOT)
    recording.pod("pod-1", "reset-1")
