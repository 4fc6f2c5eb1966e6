"""What is handed over: a history that keeps it is counted as checked, one that breaks it is reported."""

from collections.abc import Callable
from datetime import timedelta

from remediator_sim.invariants.contract import CASES, NODES, OPERATIONS
from tests.remediator_sim.invariants.histories import BOOT, History, breaks, everything_on_a_fault, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried

PROBED = {"settle": "5s", "fresh": "5s", "timeout": "60s", "probe": "gpu-check"}
WHEN_HEALTHY = {"release": "WhenHealthy"}


def asked(recording: Recording, uid: str = "uid-by-hand", template: str = "reboot") -> None:
    """A user's operation on n1, and its case."""
    spec = {"nodeName": "n1", "nodeUID": "uid-n1", "templateName": template}
    recording.write(OPERATIONS, "by-hand", spec=spec)
    manual = {"operation": "by-hand", "uid": uid, "templateName": "reboot"}
    recording.write(CASES, "m", spec={"nodeName": "n1", "manual": manual}, status={"phase": ""})


def what_a_user_asks_for_has_one_case_and_one_try(recording: Recording) -> None:
    recording.node("n1", "False")
    asked(recording)
    recording.case("m", phase="Operating", attempts=tried("reboot-1", outcome=""))
    recording.operation("reboot-1", "m")
    recording.operation("reboot-1", "m", intent=BOOT)


def what_a_user_asks_for_has_two_cases(recording: Recording) -> None:
    what_a_user_asks_for_has_one_case_and_one_try(recording)
    manual = {"operation": "by-hand", "uid": "uid-by-hand", "templateName": "reboot"}
    recording.write(CASES, "again", spec={"nodeName": "n1", "manual": manual})


def a_case_is_opened_for_what_nobody_has_asked_for(recording: Recording) -> None:
    recording.node("n1", "False")
    asked(recording, template="cordon")


def what_a_user_asks_for_once_is_tried_twice(recording: Recording) -> None:
    what_a_user_asks_for_has_one_case_and_one_try(recording)
    recording.operation("reboot-2", "m", 2)
    recording.operation("reboot-2", "m", 2, intent=BOOT)


def what_a_user_lets_try_again_is_begun_once_more(recording: Recording) -> None:
    what_a_user_asks_for_has_one_case_and_one_try(recording)
    recording.operation("reboot-1", "m", phase="Failed")
    recording.case("m", phase="Operating", attempts=tried("reboot-1", outcome="Failed"), retriedAfter=1)
    recording.operation("reboot-2", "m", 2)
    recording.operation("reboot-2", "m", 2, intent=BOOT)


def the_first_try_of_what_a_user_asks_for_is_stopped_before_its_pod(recording: Recording) -> None:
    what_a_user_asks_for_has_one_case_and_one_try(recording)
    stopped_and_tried_again(recording)


def the_first_try_of_what_a_user_asks_for_is_stopped_after_its_pod(recording: Recording) -> None:
    what_a_user_asks_for_has_one_case_and_one_try(recording)
    recording.pod("pod-1", "reboot-1", case="m")
    stopped_and_tried_again(recording)


def stopped_and_tried_again(recording: Recording) -> None:
    recording.operation("reboot-1", "m", phase="Cancelled")
    recording.operation("reboot-2", "m", 2)
    recording.operation("reboot-2", "m", 2, intent=BOOT)


def a_user_is_never_answered(recording: Recording) -> None:
    what_a_user_asks_for_has_one_case_and_one_try(recording)
    recording.case("m", phase="Recovered", endedAt=True, attempts=tried("reboot-1", outcome="Succeeded"))
    recording.later(15)


def a_probe(outcome: str) -> list[dict]:
    return [
        *tried("reset-1", outcome="Succeeded"),
        {"operation": "op-2", "template": "gpu-check", "probe": True, "rung": 1, "outcome": outcome},
    ]


def recovers_after(outcome: str, **verify: str) -> History:
    """A case that recovers, its last probe with this outcome."""

    def write(recording: Recording) -> None:
        recording.policy(verify=PROBED | verify)
        recording.node("n1", "False")
        recording.case("a", "n1", "Verifying", startedAt=True, attempts=a_probe(outcome)[:1])
        recording.case("a", phase="Recovered", endedAt=True, attempts=a_probe(outcome) if outcome else a_probe("")[:1])

    return write


def recovers_after_a_start(pod: bool) -> History:
    """A case that recovers without a probe after a try that was cancelled, before its Pod was made or after."""

    def write(recording: Recording) -> None:
        recording.policy(verify=PROBED)
        recording.node("n1", "False")
        recording.case("a", "n1", "Verifying", startedAt=True, attempts=tried("reset-1", outcome="Cancelled"))
        recording.operation("reset-1", "a", intent=BOOT)
        if pod:
            recording.pod("pod-1", "reset-1", case="a")
        recording.operation("reset-1", "a", phase="Cancelled")
        recording.case("a", phase="Recovered", endedAt=True)

    return write


def recovers_after_a_drain(recording: Recording) -> None:
    """Pods kept the node until the time of the drain was over; then its fault went."""
    recording.policy(verify=PROBED)
    recording.node("n1", "False")
    attempts = [attempt | {"reason": "DrainTimeout"} for attempt in tried("reset-1", outcome="Failed")]
    recording.case("a", "n1", "Verifying", startedAt=True, attempts=attempts)
    recording.operation("reset-1", "a", phase="Failed")
    recording.case("a", phase="Recovered", endedAt=True)


def recovers_with(gpus: str, missing: timedelta | None = None) -> History:
    """A case of a node that had 8 GPUs, which recovers with so many; before it, other devices were missing so long."""

    def write(recording: Recording) -> None:
        recording.node("n1", "False")
        status: dict[str, object] = {"capacity": {"nvidia.com/gpu": gpus}}
        if missing is not None:
            few = {
                "type": "DevicesMissing",
                "status": "True",
                "lastTransitionTime": (recording.now - missing).isoformat(),
            }
            status |= {"conditions": [*recording.stored[NODES, "n1"]["status"]["conditions"], few]}
        recording.write(NODES, "n1", status=status)
        recording.case("a", "n1", "Verifying")
        made = {"creationTimestamp": recording.now.isoformat()}
        recording.write(CASES, "a", spec={"trigger": {"devices": {"nvidia.com/gpu": 8}}}, metadata=made)
        recording.later(5)
        recording.case("a", phase="Recovered", endedAt=True, attempts=tried("reset-1", outcome="Succeeded"))

    return write


def given_back(
    before: Callable[[Recording], None] = lambda recording: None, settled: int = 30, **policy: object
) -> History:
    """A case that a person has, and that is released by itself."""

    def write(recording: Recording) -> None:
        recording.policy(**({"escalation": WHEN_HEALTHY} | policy))
        everything_on_a_fault(recording)
        recording.case("a", phase="Escalated", attempts=tried("reset-1"))
        recording.node("n1", "False")
        conditions = recording.stored[NODES, "n1"]["status"]["conditions"]
        since = recording.now.replace(second=0, minute=0) if settled else recording.now
        recording.write(
            NODES, "n1", status={"conditions": [one | {"lastTransitionTime": since.isoformat()} for one in conditions]}
        )
        before(recording)
        recording.later(5)
        recording.case("a", reason="ReleasedHealthy", endedAt=True)

    return write


def held(recording: Recording) -> None:
    recording.write(CASES, "a", spec={"hold": True})


def released_before(recording: Recording) -> None:
    recording.case("earlier", "n1", "Escalated", reason="ReleasedHealthy", endedAt=True)


def a_probe_on_a_node_that_shows_the_fault(recording: Recording) -> None:
    recording.policy(verify=PROBED)
    recording.node("n1")
    recording.case("a", "n1", "Verifying", startedAt=True, attempts=a_probe("")[:1])
    recording.later(5)
    recording.case("a", attempts=a_probe(""))


HOLDS = [
    ("I2", what_a_user_asks_for_has_one_case_and_one_try, 3),
    ("I2", the_first_try_of_what_a_user_asks_for_is_stopped_before_its_pod, 6),
    ("I2", what_a_user_lets_try_again_is_begun_once_more, 6),
]
BROKEN = [
    ("I3", a_probe_on_a_node_that_shows_the_fault, "the probe op-2 was begun"),
    ("I2", what_a_user_asks_for_has_two_cases, "for operation by-hand, and so was m before"),
    ("I2", a_case_is_opened_for_what_nobody_has_asked_for, "which asks for nothing like it"),
    ("I2", what_a_user_asks_for_once_is_tried_twice, "reboot-2 was begun"),
    ("I2", the_first_try_of_what_a_user_asks_for_is_stopped_after_its_pod, "reboot-2 was begun"),
    ("I5", a_user_is_never_answered, "operation by-hand is not answered, and case m is over"),
    ("I5", recovers_after(""), "without the probe gpu-check"),
    ("I5", recovers_after("Failed"), "without the probe gpu-check"),
    ("I5", recovers_after_a_start(pod=True), "without the probe gpu-check"),
    ("I5", recovers_with("7"), "and n1 lacks nvidia.com/gpu"),
    ("I5", recovers_with("8", timedelta(hours=1)), "and n1 lacks devices"),
    ("I5", given_back(escalation=None), "and its policy does not say so"),
    ("I5", given_back(held), "though a person holds case a"),
    ("I5", given_back(settled=0), "has not shown for long enough that it is well"),
    ("I5", given_back(released_before), "and another case of n1 was, too"),
]
QUIET = [
    recovers_after("Succeeded"),
    recovers_after_a_start(pod=False),
    recovers_after_a_drain,
    recovers_with("8"),
    recovers_with("8", timedelta(hours=48)),
    given_back(),
]


@histories("checks", [(history, (name, checks)) for name, history, checks in HOLDS])
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: tuple[str, int]) -> None:
    holds(checks[0], history, checks[1])


@histories("found", [(history, (name, text)) for name, history, text in BROKEN])
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, found: tuple[str, str]) -> None:
    breaks(found[0], history, found[1])


@histories("nothing", [(history, None) for history in QUIET])
def test_what_is_proven_is_not_reported(history: History, nothing: None) -> None:
    recording = Recording()
    history(recording)
    assert recording.found("I5").broken == ()
    assert recording.found("I5").checks > 0
