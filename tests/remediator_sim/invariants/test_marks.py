"""I6: marks of people: a history that keeps it is counted as checked, one that breaks it is reported."""

from remediator_sim.invariants.event import ISSUES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording

MINE = {"key": "maintenance", "value": "alice", "effect": "NoSchedule"}


def marks_that_stay(recording: Recording) -> None:
    recording.node("n1")
    meta = {"labels": {"team": "blue"}, "annotations": {"note": "rack 7"}}
    recording.write("nodes", "n1", metadata={"name": "n1", "uid": "uid-n1", **meta}, spec={"unschedulable": True})
    recording.taint("n1", "", MINE)
    recording.person("n1", labels={"team": "blue"}, annotations={"note": "rack 7"}, taints=[MINE], cordon=True)
    recording.taint("n1", "a", MINE)
    recording.taint("n1", "", MINE)
    recording.end()


def loses(**parts: dict) -> History:
    """The marks of a person, of which some write loses one."""

    def write(recording: Recording) -> None:
        marks_that_stay(recording)
        recording.write("nodes", "n1", **parts)

    return write


def an_issue_to_which_users_did_things(kept: tuple[str, ...], lost: tuple[str, ...]) -> History:
    """An issue as it is now, with what still stands and what does not."""

    def write(recording: Recording) -> None:
        issue = {"repository": "o/r", "number": 1, "open": True, "subject": "n1", "kept": kept, "lost": lost}
        recording.hear(ISSUES, {"issues": [issue]})

    return write


def marks_that_went_with_their_node(recording: Recording) -> None:
    marks_that_stay(recording)
    recording.remove("nodes", "n1")
    recording.node("n1")
    recording.taint("n1", "a")
    recording.end()


HOLDS = [
    (an_issue_to_which_users_did_things(("its label", "its words"), ()), 2),
    (marks_that_stay, 12),
    (marks_that_went_with_their_node, 12),
]
BROKEN = [
    (an_issue_to_which_users_did_things((), ("its label",)), "o/r#1 has lost what a user did: its label"),
    (loses(spec={"taints": []}), "n1 lost the taint maintenance=alice:NoSchedule, which a person had set"),
    (loses(spec={"unschedulable": None}), "n1 lost its cordon"),
    (loses(metadata={"labels": {"team": "red"}}), "n1 lost the label team=blue"),
    (loses(metadata={"annotations": None}), "n1 lost the annotation note=rack 7"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I6", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I6", history, text)
