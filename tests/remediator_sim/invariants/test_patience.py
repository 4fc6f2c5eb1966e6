"""I3, I4, I12: nothing is done too early, and cases that wait get budgets in their order."""

from datetime import timedelta

from remediator_sim.invariants.contract import CASES, POLICIES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import FAULT, Recording


def opened(age: float) -> History:
    """A case is opened for a fault that has shown for so many seconds, where the policy asks for a minute."""

    def write(recording: Recording) -> None:
        recording.policy(when=[{"condition": FAULT, "for": "1m"}])
        recording.node("n1")
        recording.later(10)
        since = (recording.now - timedelta(seconds=age)).isoformat()
        trigger = {"condition": FAULT, "since": since}
        recording.write(CASES, "a", spec={"nodeName": "n1", "policyName": "p", "trigger": trigger})

    return write


def again(after: float, taken: bool = True, cooldown: str = "1m", **of_other: object) -> History:
    """The node is taken again so many seconds after an earlier case of it has ended."""

    def write(recording: Recording) -> None:
        recording.policy(cooldown=cooldown)
        recording.later(10)
        recording.node("n1")
        recording.case("a", "n1", "Recovered", startedAt=taken or None, endedAt=True, **of_other)
        recording.later(after)
        recording.node("n1")
        recording.case("c", "n1", "Held")
        recording.taint("n1", "c")

    return write


def queue(
    first: str = "2026-01-01T11:00:00Z",
    waits: float = 8,
    reason: str = "BudgetSpent",
    beside: str = "",
    **other: object,
) -> History:
    """One case waits for the budget, and another one, opened at noon, is entered, and `beside` in the same write."""

    def write(recording: Recording) -> None:
        recording.policy(**other)
        recording.later(10)
        recording.budget(most=2)
        for node in ("n1", "n2"):
            recording.node(node)
        for name, node, made in (("a", "n1", first), ("c", "n2", "2026-01-01T12:00:00Z")):
            recording.case(name, node, "Held", blockedBy=[{"reason": reason, "since": "s"}] if name == "a" else [])
            recording.write(CASES, name, metadata={"creationTimestamp": made})
        recording.later(waits)
        recording.claims(c="n2", **({beside: "n1"} if beside else {}))

    return write


def twins(holder: str, *, earlier: bool = False) -> History:
    """Case a of n1 waits; case d of n1, for what its policy calls `holder`, and case c of n2 get entries, c the last.

    Policy p, of a and c, is about what is Warning; a is older than c. `earlier`: d had its entry before a waited.
    """

    def write(recording: Recording) -> None:
        recording.policy(severity="Warning")
        recording.write(POLICIES, "q", spec=recording.stored[POLICIES, "p"]["spec"] | {"severity": holder})
        recording.later(10)
        recording.budget(most=2)
        for number, (name, node) in enumerate((("a", "n1"), ("d", "n1"), ("c", "n2"))):
            recording.node(node)
            recording.case(name, node, "Held", blockedBy=[{"reason": "BudgetSpent", "since": "s"}] * (name == "a"))
            recording.write(CASES, name, metadata={"creationTimestamp": f"2026-01-01T12:00:0{number}Z"})
        recording.write(CASES, "d", spec={"policyName": "q"})
        recording.claims(**{"d": "n1"} if earlier else {})
        recording.later(10)
        recording.claims(d="n1", c="n2")

    return write


@histories("checks", [(opened(62), 1), (opened(600), 1)])
def test_a_case_for_a_fault_that_has_lasted_is_counted(history: History, checks: int) -> None:
    holds("I3", history, checks)


def test_a_case_for_a_fault_that_has_not_lasted_is_told_of() -> None:
    breaks("I3", opened(50), "s too early for the `for` of its policy")


@histories("checks", [(again(61), 2), (again(8, cooldown="0s"), 2), (again(8, taken=False), 0)])
def test_a_claim_of_a_node_that_has_rested_is_counted(history: History, checks: int) -> None:
    holds("I4", history, checks)


def test_a_claim_of_a_node_that_rests_is_told_of() -> None:
    breaks("I4", again(30), "it rests for 1m")


@histories(
    "checks",
    [
        (queue("2026-01-01T12:00:01Z"), 2),
        (queue(waits=1), 1),
        (queue(beside="a"), 1),
        (queue(reason="CordonedByUser"), 1),
        (queue(requireSpareGPUs=True), 1),
        (twins("Critical"), 1),
        (twins("Info", earlier=True), 1),
    ],
)
def test_an_entry_that_passes_nobody_is_counted(history: History, checks: int) -> None:
    holds("I12", history, checks)


def test_an_entry_of_a_case_that_passes_an_older_one_is_told_of() -> None:
    breaks("I12", queue(), "before a, which goes first")


def test_an_entry_of_a_case_that_passes_an_older_one_of_its_own_node_is_told_of() -> None:
    breaks("I12", twins("Info"), "case d was entered in budget b")
