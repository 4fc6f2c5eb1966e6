"""I9: answers of the extender: a history that keeps it is counted as checked, one that breaks it is reported."""

from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording


def five_nodes(recording: Recording) -> None:
    """n1 is held by a case, n2 not ready, n3 sick, n4 sick but waiting, n5 well."""
    for name, said in {"n1": {}, "n2": {"ready": "False"}, "n3": {}, "n4": {}, "n5": {"fault": "False"}}.items():
        recording.node(name, **said)
    recording.case("a", "n1", "Operating", startedAt=True)
    recording.taint("n1", "a")
    recording.case("c", "n4", "Held")
    recording.later(5)


def answering(kept: str, failed: str) -> History:
    """The extender is asked about all five."""

    def write(recording: Recording) -> None:
        five_nodes(recording)
        names = ("n1", "n2", "n3", "n4", "n5")
        recording.answers(names, kept.split(), failed.split())

    return write


def a_fault_that_is_not_in_the_node(recording: Recording) -> None:
    recording.policy(urgency={"mode": "Never"})
    answering("n3 n4 n5", "n1 n2")(recording)


def a_policy_that_only_says_what_it_would_do(recording: Recording) -> None:
    recording.policy("DryRun")
    answering("n3 n4 n5", "n1 n2")(recording)


def everything_paused(recording: Recording) -> None:
    recording.paused(True)
    answering("n2 n3 n4 n5", "n1")(recording)


def half_of_eight_nodes_sick(recording: Recording) -> None:
    names = tuple(f"n{number}" for number in range(8))
    for number, name in enumerate(names):
        recording.node(name, fault="True" if number < 4 else "False")
    recording.later(5)
    recording.answers(names, names, ())


def three_of_eight_nodes_sick_and_a_fourth_waits(reason: str) -> History:
    """The health of n3 cannot be told, and its case waits for this reason."""

    def write(recording: Recording) -> None:
        names = tuple(f"n{number}" for number in range(8))
        for number, name in enumerate(names):
            recording.node(name, fault="True" if number < 3 else "Unknown" if number == 3 else "False")
        recording.case("a", "n3", "Held", blockedBy=[{"reason": reason}])
        recording.later(5)
        recording.answers(names, names, ())

    return write


def refusing_to_answer(recording: Recording) -> None:
    five_nodes(recording)
    recording.hear("probe", {"asked": ["n1"], "refused": "500 Internal Server Error"})


HOLDS = [
    (a_fault_that_is_not_in_the_node, 3),
    (a_policy_that_only_says_what_it_would_do, 3),
    (everything_paused, 2),
    (half_of_eight_nodes_sick, 1),
    (three_of_eight_nodes_sick_and_a_fourth_waits("HealthUnknown"), 1),
    (answering("n4 n5", "n1 n2 n3"), 4),
    (answering("n5", "n1 n2 n3 n4"), 4),
]
BROKEN = [
    (refusing_to_answer, "the extender answered 500 Internal Server Error at 12:00:06"),
    (answering("n5", "n1 n2 n3"), "the extender has left out n4"),
    (answering("n4 n5 n5", "n1 n2 n3"), "named more than once n5"),
    (answering("n3 n4 n5", "n1 n2 n3"), "named more than once n3"),
    (answering("n4 n5 n6", "n1 n2 n3"), "named unasked n6"),
    (answering("n1 n4 n5", "n2 n3"), "gives work to n1 at 12:00:06, which a case holds"),
    (answering("n2 n4 n5", "n1 n3"), "which is not ready"),
    (answering("n3 n4 n5", "n1 n2"), "which is unhealthy as policy p says"),
    (three_of_eight_nodes_sick_and_a_fourth_waits("BudgetSpent"), "gives work to n0 at 12:00:06, which is unhealthy"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I9", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I9", history, text)
