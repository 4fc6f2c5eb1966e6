"""How an operation ends in vain: each row of the table with the Pod that leads to it, as kubelets write it."""

from itertools import product

import msgspec
import pytest

from remediator.core.operation import OperationPhase
from remediator.core.outcome import OUTCOME_TABLE, EndObservation, PodEnd, outcome, pod_end
from remediator.core.reasons import NEVER_STARTED, STOPS, Reason
from remediator.kube.api import builtin, decode


def pod(phase="Running", node="gpu-1", deleting=False, conditions=(), reason="", message="", last=None, **state):
    """A Pod as the API server has it; `state` is that of its container, `last` the one before."""
    meta = {"name": "p", "namespace": "remediator-operations"}
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"phase": phase, "reason": reason, "message": message, "conditions": list(conditions)}
    if state:
        status["containerStatuses"] = [{"name": "main", "state": state, "lastState": last or {}}]
    wire = {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": status}
    return decode.operation_pod(msgspec.json.decode(msgspec.json.encode(wire), type=builtin.Pod))


def waits(reason, message="", **more):
    return pod("Pending", waiting={"reason": reason, "message": message}, **more)


def ends(code, reason="Error", **more):
    return pod("Failed", terminated={"exitCode": code, "reason": reason}, **more)


def expired(**state):
    """Its kubelet has ended it, since its activeDeadlineSeconds were over."""
    return pod("Failed", reason="DeadlineExceeded", message="Pod was active on the node longer", **state)


STARTED = "2026-01-01T00:00:00Z"
FORGOTTEN = {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}
DISRUPTED = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
UNPLACED = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]


@pytest.mark.parametrize(
    ("found", "end"),
    [
        (None, PodEnd.ABSENT),
        (pod("Pending", node="", conditions=UNPLACED), PodEnd.UNPLACED),
        (waits("ErrImagePull"), PodEnd.IMAGE),
        (waits("ImagePullBackOff", 'Back-off pulling image "registry.example/a:1"'), PodEnd.IMAGE),
        (waits("InvalidImageName"), PodEnd.IMAGE),
        (waits("CreateContainerConfigError", 'secret "a" not found'), PodEnd.CONFIG),
        (waits("ContainerCreating"), PodEnd.PENDING),
        (waits("CreateContainerError"), PodEnd.PENDING),
        (pod("Pending"), PodEnd.PENDING),
        (pod(running={}), PodEnd.RUNNING),
        (pod("Unknown", running={}), PodEnd.RUNNING),
        (pod(deleting=True, running={}), PodEnd.DELETED),
        (pod(deleting=True, conditions=DISRUPTED, running={}), PodEnd.EVICTED),
        (pod("Failed", reason="Evicted"), PodEnd.EVICTED),
        (pod("Failed", reason="Preempting"), PodEnd.EVICTED),
        (ends(143, deleting=True, conditions=DISRUPTED), PodEnd.EVICTED),
        (ends(143, deleting=True), PodEnd.DELETED),
        (ends(137, "OOMKilled"), PodEnd.LOST),
        (ends(128, "StartError"), PodEnd.LOST),
        (pod("Failed"), PodEnd.LOST),
        (expired(terminated={"exitCode": 143}), PodEnd.TOO_LONG),
        (expired(terminated={"exitCode": 1}), PodEnd.SAID),
        (expired(waiting={"reason": "ImagePullBackOff"}), PodEnd.IMAGE),
        (expired(waiting={"reason": "CreateContainerConfigError"}), PodEnd.CONFIG),
        (expired(waiting={"reason": "ContainerCreating"}), PodEnd.PENDING),
        (expired(terminated=FORGOTTEN), PodEnd.FORGOTTEN),
        (expired(terminated=FORGOTTEN, last={"terminated": FORGOTTEN}), PodEnd.TOO_LONG),
        (expired(terminated={"exitCode": 255, "reason": "Unknown", "startedAt": STARTED}), PodEnd.TOO_LONG),
        (ends(137, "ContainerStatusUnknown"), PodEnd.LOST),
        (ends(1), PodEnd.SAID),
        (ends(2, deleting=True), PodEnd.SAID),
        (pod("Succeeded", terminated={"exitCode": 0}), PodEnd.SAID),
    ],
    ids=lambda value: value.name if isinstance(value, PodEnd) else "",
)
def test_how_far_a_pod_has_come_is_read_from_what_its_kubelet_says(found, end):
    assert pod_end(found) is end


def test_what_a_container_waits_for_is_told_in_the_kubelets_words_those_of_an_init_container_too():
    said = waits("ErrImagePull", "registry.example: no such host").message
    assert said == "ErrImagePull: registry.example: no such host"
    init = {"name": "first", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    main = {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
    status = {"phase": "Pending", "initContainerStatuses": [init], "containerStatuses": [main]}
    wire = {"metadata": {"name": "p"}, "spec": {"nodeName": "gpu-1"}, "status": status}
    found = decode.operation_pod(msgspec.convert(wire, builtin.Pod))
    assert (pod_end(found), found.message) == (PodEnd.IMAGE, "ImagePullBackOff")


def test_a_pod_whose_time_is_over_says_what_it_has_waited_for_and_else_that_its_time_is_over():
    waiting = expired(waiting={"reason": "ErrImagePull", "message": "no such host"})
    assert waiting.message == "ErrImagePull: no such host"
    assert expired(terminated={"exitCode": 143}).message == "Pod was active on the node longer"


@pytest.mark.parametrize(
    ("words", "said"), [("no driver here", "no driver here"), ("", "exit code 1")], ids=["with words", "without"]
)
def test_an_init_container_that_has_failed_is_named_since_the_program_never_began(words, said):
    init = {"name": "report", "state": {"terminated": {"exitCode": 1, "message": words}}}
    main = {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}
    status = {"phase": "Failed", "initContainerStatuses": [init], "containerStatuses": [main]}
    wire = {"metadata": {"name": "p"}, "spec": {"nodeName": "gpu-1"}, "status": status}
    found = decode.operation_pod(msgspec.convert(wire, builtin.Pod))
    assert (pod_end(found), found.message) == (PodEnd.LOST, f"init container report: {said}")


def test_the_end_of_a_container_that_its_kubelet_has_not_seen_hides_no_init_container_that_failed():
    init = {"name": "report", "state": {"terminated": {"exitCode": 1, "message": "no driver here"}}}
    unseen = {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": "it could not be located"}
    status = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": unseen}}]}
    wire = {"metadata": {"name": "p"}, "spec": {"nodeName": "gpu-1"}, "status": status}
    assert decode.operation_pod(msgspec.convert(wire, builtin.Pod)).message == "it could not be located"
    status["initContainerStatuses"] = [init]
    found = decode.operation_pod(msgspec.convert(wire, builtin.Pod))
    assert (found.exit_code, found.message) == (None, "init container report: no driver here")


@pytest.mark.parametrize("code", [0, 1])
def test_an_init_container_that_runs_beside_the_program_does_not_speak_for_it(code):
    beside = {"name": "proxy", "state": {"terminated": {"exitCode": 143}}}
    main = {"name": "main", "state": {"terminated": {"exitCode": code}}}
    status = {"phase": "Failed", "initContainerStatuses": [beside], "containerStatuses": [main]}
    wire = {"metadata": {"name": "p"}, "spec": {"nodeName": "gpu-1"}, "status": status}
    assert decode.operation_pod(msgspec.convert(wire, builtin.Pod)).message == ""


def test_the_first_container_of_the_spec_says_how_a_pod_has_ended_though_its_kubelet_lists_another_one_first():
    ends = [{"name": name, "state": {"terminated": {"exitCode": code}}} for name, code in (("a", 143), ("work", 1))]
    spec = {"nodeName": "gpu-1", "containers": [{"name": "work"}, {"name": "a"}]}
    wire = {"metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Failed", "containerStatuses": ends}}
    found = decode.operation_pod(msgspec.convert(wire, builtin.Pod))
    assert (found.exit_code, pod_end(found)) == (1, PodEnd.SAID)


def test_a_pod_of_which_another_container_has_begun_is_none_that_never_started():
    states = [{"running": {"startedAt": "2026-01-01T00:00:00Z"}}, {"waiting": {"reason": "ErrImagePull"}}]
    containers = [{"name": f"c{number}", "state": state} for number, state in enumerate(states)]
    status = {"phase": "Pending", "containerStatuses": containers}
    wire = {"metadata": {"name": "p"}, "spec": {"nodeName": "gpu-1"}, "status": status}
    assert pod_end(decode.operation_pod(msgspec.convert(wire, builtin.Pod))) is PodEnd.PENDING


def test_the_order_of_a_watchdog_is_placed_nowhere_and_has_a_word_of_its_own_until_it_is_taken():
    order = pod("Pending", node="")
    assert [pod_end(order), pod_end(order, watchdog=True)] == [PodEnd.UNPLACED, PodEnd.UNTAKEN]
    taken = pod("Running", node="")
    assert pod_end(taken, watchdog=True) is PodEnd.RUNNING


def test_what_a_container_has_waited_for_counts_only_while_the_pod_is_pending():
    assert pod_end(pod("Running", waiting={"reason": "ErrImagePull"})) is PodEnd.RUNNING


def observed(**seen):
    usual = {"gone": False, "late": True, "pod": PodEnd.RUNNING, "silent": False, "criteria": False}
    return EndObservation(**usual | seen)


FAILED, CANCELLED = OperationPhase.FAILED, OperationPhase.CANCELLED
ROWS = [
    ({"gone": True, "pod": PodEnd.LOST}, CANCELLED, Reason.NODE_GONE),
    ({"late": False, "pod": PodEnd.SAID}, FAILED, Reason.PROGRAM_FAILED),
    ({"pod": PodEnd.IMAGE, "silent": True}, CANCELLED, Reason.IMAGE_NOT_PULLED),
    ({"pod": PodEnd.CONFIG}, CANCELLED, Reason.CONTAINER_NOT_CREATED),
    ({"pod": PodEnd.FORGOTTEN}, CANCELLED, Reason.POD_START_UNKNOWN),
    ({"pod": PodEnd.UNPLACED}, CANCELLED, Reason.POD_NOT_PLACED),
    ({"pod": PodEnd.EVICTED}, FAILED, Reason.POD_EVICTED),
    ({"pod": PodEnd.DELETED}, FAILED, Reason.POD_DELETED),
    ({"pod": PodEnd.TOO_LONG, "late": False}, FAILED, Reason.TIMED_OUT),
    ({"pod": PodEnd.LOST, "late": False}, FAILED, Reason.POD_LOST),
    ({"pod": PodEnd.RUNNING, "silent": True}, FAILED, Reason.KUBELET_SILENT),
    ({"pod": PodEnd.PENDING}, FAILED, Reason.POD_NOT_STARTED),
    ({"pod": PodEnd.UNTAKEN}, FAILED, Reason.WATCHDOG_SILENT),
    ({"pod": PodEnd.RUNNING}, FAILED, Reason.TIMED_OUT),
]


@pytest.mark.parametrize(
    ("seen", "phase", "reason"),
    ROWS,
    ids=[seen.get("pod", PodEnd.RUNNING).name + reason.value for seen, _, reason in ROWS],
)
def test_each_row_of_the_table_is_reached(seen, phase, reason):
    end = outcome(observed(**seen))
    assert (end.phase, end.reason) == (phase, reason)


def test_there_is_a_case_above_for_every_row():
    assert [reason for *_, reason in ROWS] == [row.result.reason for row in OUTCOME_TABLE.rows]


def test_a_pod_that_its_own_reboot_has_killed_has_no_fault_of_its_own():
    killed = observed(pod=PodEnd.LOST, criteria=True)
    assert outcome(killed).reason is Reason.TIMED_OUT
    assert outcome(observed(pod=PodEnd.LOST, criteria=True, silent=True)).reason is Reason.KUBELET_SILENT


def test_what_never_started_is_cancelled_and_stops_the_case_and_nothing_else_is_but_a_node_that_is_gone():
    for gone, late, end, silent, criteria in product(*[(True, False)] * 2, PodEnd, *[(True, False)] * 2):
        found = outcome(EndObservation(gone, late, end, silent, criteria))
        cancelled = found.phase is OperationPhase.CANCELLED
        assert cancelled == (found.reason in NEVER_STARTED or found.reason is Reason.NODE_GONE)
    assert NEVER_STARTED <= STOPS
