"""I3 under a policy with a second source: a history that keeps it is counted, one that breaks it is reported."""

from remediator_sim.invariants.event import CONFIRMED
from tests.remediator_sim.invariants.histories import History, breaks, everything_on_a_fault, histories, holds
from tests.remediator_sim.invariants.recording import FAULT, Recording

QUERY = {"promQL": 'X{node="{{node}}"}', "within": "20s"}


def agrees(recording: Recording, node: str = "n1", condition: str = FAULT) -> None:
    recording.hear(CONFIRMED, {"node": node, "condition": condition})


def when_it_agreed_a_moment_ago(recording: Recording) -> None:
    recording.policy(confirm=QUERY)
    agrees(recording)
    everything_on_a_fault(recording)


def when_it_never_agreed(recording: Recording) -> None:
    recording.policy(confirm=QUERY)
    everything_on_a_fault(recording)


def when_it_agreed_about_another_node(recording: Recording) -> None:
    recording.policy(confirm=QUERY)
    agrees(recording, "n2")
    everything_on_a_fault(recording)


def when_it_agreed_long_ago(recording: Recording) -> None:
    recording.policy(confirm=QUERY)
    agrees(recording)
    recording.later(30)
    everything_on_a_fault(recording)


BROKEN = [
    (when_it_never_agreed, "n1 was taken at 12:00:08, and the second source agreed never"),
    (when_it_agreed_about_another_node, "reset-1 was begun at 12:00:08, and the second source agreed never"),
    (when_it_agreed_long_ago, "Pod remediator-operations/pod-1 was made"),
    (when_it_never_agreed, "Pod remediator-operations/drain-1 was made"),
    (when_it_never_agreed, "the intent of reset-1 was written"),
]


@histories("checks", [(everything_on_a_fault, 5), (when_it_agreed_a_moment_ago, 10)])
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I3", history, checks)


@histories("sentence", BROKEN)
def test_a_broken_invariant_is_reported_in_a_sentence(history: History, sentence: str) -> None:
    breaks("I3", history, sentence)
