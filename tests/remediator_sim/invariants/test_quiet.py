"""I3 and I5: what is new in a release is shown for a while, believed on few nodes, and acted on in the end."""

from datetime import timedelta

from remediator.core.new_criteria import TABLE
from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import NODES, POLICIES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording

NEW, WEEK, HOUR = "NvmlHung", 7 * 24 * 3600, 3600
YEAR_AGO, NOW = "2025-01-01T00:00:00Z", "2026-01-01T11:59:00Z"
TRUSTS = {"remediator.dev/trusted-criteria": NEW}


def says(recording: Recording, count: int) -> None:
    """So many nodes, of ten, say that they have the new fault; the others say that they do not."""
    beat = recording.now.isoformat()
    for number in range(10):
        shown = {"Ready": "True", NEW: "True" if number < count else "False"}
        conditions = [{"type": key, "status": value, "lastHeartbeatTime": beat} for key, value in shown.items()]
        recording.write(NODES, f"n{number}", status={"conditions": conditions, "nodeInfo": {"bootID": "boot-1"}})


def learns(recording: Recording, made: str, *, told: bool = True, notes: dict[str, str] | None = None) -> None:
    """A policy that was made then asks for what is new, and, `told`, says since when it knows that."""
    recording.policy(when=[{"condition": NEW, "for": "0s"}])
    recording.write(POLICIES, "p", metadata={"creationTimestamp": made, "annotations": notes})
    row = {"criterion": NEW, "state": "Quiet", "since": recording.now.isoformat()}
    recording.write(POLICIES, "p", status={"criteria": [row]} if told else {})


def shown(recording: Recording, *phases: tuple[int, int]) -> None:
    """So many nodes show it for so many seconds; of a long time only the last five are played."""
    for nodes, seconds in phases:
        played = seconds if seconds <= 60 else 5
        recording.now += timedelta(seconds=seconds - played)
        says(recording, nodes)
        recording.later(played)


def taken(made: str, *phases: tuple[int, int], told: bool = True, notes: dict[str, str] | None = None) -> History:
    """Nodes show what is new, and then n0 is taken for it."""

    def write(recording: Recording) -> None:
        learns(recording, made, told=told, notes=notes)
        shown(recording, *phases)
        says(recording, 1)
        recording.case("a", "n0", "Held")
        recording.taint("n0", "a")

    return write


def held(seconds: int) -> History:
    """A case is held for what is new for so many seconds."""

    def write(recording: Recording) -> None:
        learns(recording, YEAR_AGO)
        says(recording, 1)
        recording.case("a", "n0", "Held", blockedBy=[{"reason": "NewCriterion", "since": "s"}])
        shown(recording, (1, seconds))

    return write


@histories(
    "checks",
    [
        (taken(NOW, (1, 30)), 2),
        (taken(YEAR_AGO, (1, WEEK)), 2),
        (taken(YEAR_AGO, (1, 30), notes=TRUSTS), 1),
        (taken(NOW, (2, 30)), 2),
        (taken(NOW, (3, 30), (1, HOUR)), 2),
        (taken(NOW, (1, WEEK), (5, 30)), 2),
    ],
)
def test_a_claim_for_what_is_old_enough_and_shown_by_few_is_counted(history: History, checks: int) -> None:
    holds("I3", history, checks)


@histories(
    "text",
    [
        (taken(YEAR_AGO, (1, 30)), "knows what it asks for, which is new, only since"),
        (taken(YEAR_AGO, (1, WEEK - 60)), "knows what it asks for, which is new, only since"),
        (taken(NOW, (1, 30), told=False), "does not say since when it knows"),
        (taken(NOW, (3, 30)), "many nodes showed it"),
        (taken(NOW, (3, 30), (1, HOUR // 2)), "many nodes showed it"),
    ],
)
def test_a_claim_for_what_is_too_new_or_shown_by_many_is_told_of(history: History, text: str) -> None:
    breaks("I3", history, text)


def test_a_case_that_is_held_for_what_is_new_within_the_period_is_not_told_of() -> None:
    holds("I5", held(WEEK - 60), 0)


def test_a_case_that_is_held_for_what_is_new_long_after_the_period_is_told_of() -> None:
    recording = Recording()
    held(WEEK + 60)(recording)
    assert any("is held for what is new" in sentence for sentence in recording.found("I5").broken)


def test_the_judge_knows_every_new_condition() -> None:
    assert {row.condition for row in TABLE if not (row.reason or row.says)} == contract.NEW
