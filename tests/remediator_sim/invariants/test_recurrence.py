"""I10: faults that come back: a history that keeps it is counted as checked, one that breaks it is reported."""

from typing import Any

from remediator_sim.invariants.contract import CASES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording

HOUR = 3600
BOARD = {"gpus": [{"address": "0000:3b:00.0", "uuid": "GPU-1", "serial": "1563521020414"}]}
LADDER = [{"operation": "reset"}, {"operation": "reboot", "attempts": 2}]


def attempt(name: str, rung: int, outcome: str = "Succeeded") -> dict[str, Any]:
    return {"operation": name, "rung": rung, "outcome": outcome}


def opened(recording: Recording, case: str, node: str, evidence: dict[str, Any] | None = None) -> None:
    """A case that was opened now and holds its node."""
    recording.case(case, node, "Draining", startedAt=True, evidence=evidence or {})
    meta = {"creationTimestamp": recording.now.isoformat()}
    trigger = {"message": "0000:3b:00.0 is lost"}
    recording.write(CASES, case, metadata=recording.stored[CASES, case]["metadata"] | meta, spec=spec_of(node, trigger))


def spec_of(node: str, trigger: dict[str, str]) -> dict[str, Any]:
    return {"nodeName": node, "policyName": "p", "trigger": trigger}


def begins(recording: Recording, case: str, rung: int) -> None:
    recording.case(case, phase="Draining", attempts=[attempt(f"{case}-1", rung, "")])


def over(recording: Recording, case: str, *rungs: int, node: str = "n1", phase: str = "Recovered", **more: Any) -> None:
    """A case that has tried these rungs, and is over."""
    opened(recording, case, node, more.pop("evidence", None))
    tried = [attempt(f"{case}-{number}", rung) for number, rung in enumerate(rungs)]
    recording.case(case, phase="Draining", attempts=tried)
    recording.case(case, phase=phase, endedAt=True, attempts=tried, **more)
    recording.later(10)


def relapse(rung: int, *before: tuple[int, ...], window: str = "72h", phase: str = "Recovered") -> History:
    """A new case that begins with this rung, after cases that tried those."""

    def write(recording: Recording) -> None:
        recording.policy(relapse={"window": window}, ladder=LADDER)
        recording.node("n1")
        for number, rungs in enumerate(before):
            over(recording, f"old-{number}", *rungs, phase=phase)
        opened(recording, "new", "n1")
        begins(recording, "new", rung)

    return write


def lemon(most: int, cases: int, *, nodes: tuple[str, ...] = ("n1",), window: str = "1h", **more: Any) -> History:
    """A new case on n1 that begins an operation, after so many cases of these nodes with the same board."""

    def write(recording: Recording) -> None:
        recording.policy(lemon={"cases": most, "window": window}, ladder=LADDER)
        recording.node("n1")
        for number in range(cases):
            over(recording, f"old-{number}", 1, node=nodes[number % len(nodes)], evidence=BOARD, **more)
        opened(recording, "new", "n1", BOARD)
        begins(recording, "new", 1)

    return write


def a_node_that_a_user_had_rebooted(asked: bool) -> History:
    """A new case under a policy that allows one earlier case; the operation of that one was, or was not, asked for."""

    def write(recording: Recording) -> None:
        recording.policy(lemon={"cases": 1, "window": "1h"}, ladder=LADDER)
        recording.node("n1")
        over(recording, "old", 1)
        by_hand = {"manual": {"operation": "by-hand", "requestedBy": "alice"}} if asked else {}
        recording.write(CASES, "old", spec=by_hand)
        opened(recording, "new", "n1")
        begins(recording, "new", 1)

    return write


def by_itself(most: int, cases: int) -> History:
    """A new case that begins an operation, after so many that had taken the node and did nothing to it."""

    def write(recording: Recording) -> None:
        recording.policy(most=most, ladder=LADDER)
        recording.node("n1")
        for number in range(cases):
            over(recording, f"old-{number}")
        opened(recording, "new", "n1")
        begins(recording, "new", 1)

    return write


HOLDS = [
    (relapse(2, (1,)), 3),
    (relapse(2, (1, 2)), 5),
    (relapse(1, (1,), window="5s"), 2),
    (relapse(1, (1,), phase="Cancelled"), 2),
    (lemon(3, 2), 9),
    (lemon(2, 2, nodes=("n2", "n3"), phase="Cancelled"), 9),
    (lemon(2, 2, nodes=("n2",)), 9),
    (lemon(2, 2, window="10s"), 9),
    (a_node_that_a_user_had_rebooted(asked=True), 6),
    (by_itself(3, 2), 2),
]
BROKEN = [
    (relapse(1, (1,)), "on rung 1, and old-0 before it came to rung 1"),
    (relapse(2, (1,), (2,)), "case new began an operation at 12:00:24, the second relapse after that of old-1"),
    (lemon(2, 2), "on n1 at 12:00:24 though the node had 2 cases, of 2 allowed"),
    (lemon(2, 2, nodes=("n2", "n3")), "though its board had 2 cases, of 2 allowed"),
    (a_node_that_a_user_had_rebooted(asked=False), "though the node had 1 cases, of 1 allowed"),
    (by_itself(2, 2), "after 2 cases in which none was, where 2 attempts are allowed"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I10", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I10", history, text)
