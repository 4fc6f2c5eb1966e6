"""I6: marks of people: a clean history is counted and not broken, its twin is named."""

from tests.remediator_sim.invariants.recording import Recording
from tests.remediator_sim.invariants.stories import Story, breaks, holds, stories

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


def loses(**parts: dict) -> Story:
    """The marks of a person, of which some write loses one."""

    def story(recording: Recording) -> None:
        marks_that_stay(recording)
        recording.write("nodes", "n1", **parts)

    return story


HOLDS = [
    (marks_that_stay, 12),
]
BROKEN = [
    (loses(spec={"taints": []}), "n1 lost the taint maintenance=alice:NoSchedule, which a person had set"),
    (loses(spec={"unschedulable": None}), "n1 lost its cordon"),
    (loses(metadata={"labels": {"team": "red"}}), "n1 lost the label team=blue"),
    (loses(metadata={"annotations": None}), "n1 lost the annotation note=rack 7"),
]


@stories("checks", HOLDS)
def test_what_holds_is_counted_and_not_broken(story: Story, checks: int) -> None:
    holds("I6", story, checks)


@stories("said", BROKEN)
def test_what_is_broken_is_named(story: Story, said: str) -> None:
    breaks("I6", story, said)
