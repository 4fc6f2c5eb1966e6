"""Leases of nodes: histories that keep to them are counted, those that begin beside another holder are reported."""

from remediator_sim.invariants.contract import CASES, LEASE_SPACE, LEASES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried

OTHER, OURS = "node-maintenance", "remediator/a"


def held_by(recording: Recording, holder: str, seconds: int = 600) -> None:
    """From now on, for so many seconds."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": recording.now.isoformat()}
    recording.write(LEASES, "node-n1", LEASE_SPACE, spec=spec)


def a_case(recording: Recording) -> None:
    recording.node("n1")
    recording.budget()
    recording.case("a", "n1", "Held")
    recording.claims(a="n1")


def claimed_under(*holders: str, later: float = 5, length: int = 600) -> History:
    """These have had the Lease, one after the other, when the case takes its node."""

    def write(recording: Recording) -> None:
        a_case(recording)
        for holder in holders:
            held_by(recording, holder, length)
            recording.later(later)
        recording.taint("n1", "a")

    return write


def drained_after_a_theft(recording: Recording) -> None:
    """Another system takes the Lease from a case that has its node; its drain begins later."""
    claimed_under(OURS)(recording)
    held_by(recording, OTHER)
    recording.later(5)
    recording.case("a", phase="Draining", startedAt=True, attempts=tried("reset-1", outcome=""))
    recording.operation("reset-1", "a")
    recording.pod("drain-1", "reset-1", "drain")


def over(*, given_back: bool, seconds: float = 12) -> History:
    """The case has ended so long ago."""

    def write(recording: Recording) -> None:
        claimed_under(OURS)(recording)
        recording.write(CASES, "a", status={"phase": "Recovered", "endedAt": recording.now.isoformat()})
        recording.let_go("a")
        if given_back:
            recording.remove(LEASES, "node-n1")
        recording.later(seconds)

    return write


def taken_over(after: float) -> History:
    """The case takes the Lease of another, which had it for ten seconds, so long after that was written."""

    def write(recording: Recording) -> None:
        a_case(recording)
        held_by(recording, OTHER, 10)
        recording.later(after)
        held_by(recording, OURS)

    return write


@histories(
    "checks", [(claimed_under(OURS), 1), (claimed_under(OTHER, OURS, length=2), 1), (claimed_under(OTHER, later=0), 1)]
)
def test_what_begins_under_our_lease_or_in_the_moment_of_a_theft_is_counted(history, checks):
    recording, without = Recording(), Recording()
    history(recording)
    a_case(without)
    without.taint("n1", "a")
    assert recording.found("I4").broken == without.found("I4").broken == ()
    assert recording.found("I4").checks - without.found("I4").checks == checks


@histories(
    "text",
    [
        (claimed_under(OTHER), "n1 was taken at 12:00:0"),
        (claimed_under(OURS, OTHER), "though node-maintenance holds the Lease of n1 since"),
        (claimed_under(OTHER, length=2), "without the Lease of n1"),
        (drained_after_a_theft, "drain-1 was made at"),
    ],
)
def test_what_begins_beside_another_holder_or_without_our_lease_is_reported(history, text):
    breaks("I4", history, text)


def test_a_lease_that_a_case_keeps_once_it_is_over_is_reported():
    breaks("I5", over(given_back=False), "case a is over since")
    recording = Recording()
    over(given_back=True)(recording)
    assert not any("Lease" in sentence for sentence in recording.found("I5").broken)


def test_a_lease_is_taken_from_another_system_only_once_it_has_expired():
    breaks("I6", taken_over(5), "the Lease of n1 was taken from node-maintenance")
    holds("I6", taken_over(11), 1)
