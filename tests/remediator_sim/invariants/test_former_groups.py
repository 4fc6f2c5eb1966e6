"""I4: what stays sick of a group whose common cause has gone is taken one by one."""

from remediator_sim.invariants.contract import CASES
from tests.remediator_sim.invariants.histories import breaks, holds
from tests.remediator_sim.invariants.recording import Recording

TRIGGER = {"condition": "GpuLost", "message": "gone", "cause": "kernelVersion 6.8"}


def _group(recording: Recording, *cases: str, **trigger: str) -> None:
    """A case for each of the nodes n1, n2, ...: all were held for one cause; `trigger` is that of the last one."""
    recording.budget(most=5)
    at = recording.now.isoformat()
    for number, name in enumerate(cases, 1):
        recording.node(f"n{number}")
        recording.case(name, f"n{number}", "Held", timeline=[{"at": at, "reason": "SharedCause"}])
        shown = TRIGGER | (trigger if name == cases[-1] else {})
        recording.write(CASES, name, spec={"trigger": shown})
    recording.later(5)


def _held(recording: Recording, case: str, node: str, **status: object) -> None:
    recording.claims(**{case: node})
    recording.taint(node, case)
    recording.case(case, phase="Draining", startedAt=True, **status)
    recording.later(5)


def both_in_one_write(recording: Recording) -> None:
    _group(recording, "a", "c")
    recording.claims(a="n1", c="n2")


def beside_one_that_goes_on(recording: Recording) -> None:
    _group(recording, "a", "c")
    _held(recording, "a", "n1")
    recording.claims(a="n1", c="n2")


def beside_one_that_is_held(recording: Recording) -> None:
    _group(recording, "a", "c")
    _held(recording, "a", "n1", blockedBy=[{"reason": "HeldByUser"}])
    recording.claims(a="n1", c="n2")


def after_one_that_a_person_has(recording: Recording) -> None:
    _group(recording, "a", "c")
    _held(recording, "a", "n1")
    recording.case("a", phase="Escalated")
    recording.claims(a="n1", c="n2")


def of_another_version(recording: Recording) -> None:
    _group(recording, "a", "c", cause="kernelVersion 6.9")
    recording.claims(a="n1", c="n2")


def test_two_of_a_group_at_once_are_reported():
    breaks("I4", both_in_one_write, "beside c: all had one cause in common")
    breaks("I4", beside_one_that_goes_on, "case c was entered at")


def test_one_after_the_other_is_counted():
    for history in (beside_one_that_is_held, after_one_that_a_person_has, of_another_version):
        recording = Recording()
        history(recording)
        assert recording.found("I4").broken == ()
        assert recording.found("I4").checks >= 2


def test_cases_that_were_never_held_together_are_not_counted():
    def alone(recording: Recording) -> None:
        recording.budget(most=5)
        for name, node in (("a", "n1"), ("c", "n2")):
            recording.node(node)
            recording.case(name, node, "Held")
        recording.claims(a="n1", c="n2")

    holds("I4", alone, 0)
