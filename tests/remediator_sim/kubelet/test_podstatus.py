"""What a kubelet makes of the Pods that it finds, and what it writes about them."""

from datetime import UTC, datetime, timedelta

import pytest

from remediator_sim.kubelet import node, podstatus
from remediator_sim.kubelet.runtime import Record, Terminated

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(seconds=60)
OURS = ["python3", "/opt/remediator/operations/reboot.py"]


def a_pod(command=OURS, *, policy="Never", phase="Pending", **spec):
    container = {"name": "main", "image": "x", "command": list(command)}
    return {
        "metadata": {"name": "p", "namespace": "d", "uid": "u1"},
        "spec": {"nodeName": "gpu-17", "restartPolicy": policy, "containers": [container], **spec},
        "status": {"phase": phase},
    }


def test_a_pod_that_never_started_may_start():
    assert podstatus.lost(a_pod(), None, "boot-1", NOW) is None


def test_a_recorded_end_is_told_whatever_happened_since():
    end = Terminated(2, "Error", "refused", NOW, NOW)
    assert podstatus.lost(a_pod(), Record("boot-1", NOW, 0, end), "boot-2", LATER) == end


@pytest.mark.parametrize(
    ("record", "phase", "code", "reason"),
    [
        (Record("boot-0", NOW), "Running", 255, "Unknown"),
        (Record("boot-1", NOW), "Running", 137, "Error"),
        (Record("boot-1", NOW), "Pending", 137, "Error"),
        (None, "Running", 137, "ContainerStatusUnknown"),
    ],
    ids=["the machine went away", "the kubelet went away", "before it could tell Running", "the disk went away"],
)
def test_a_program_that_vanished_has_failed_and_is_not_started_again(record, phase, code, reason):
    end = podstatus.lost(a_pod(phase=phase), record, "boot-1", LATER)
    assert end is not None
    assert (end.exit_code, end.reason, end.finished_at) == (code, reason, LATER)


def test_an_ordinary_workload_outlives_its_kubelet():
    assert podstatus.lost(a_pod(["/pause"]), Record("boot-1", NOW), "boot-1", LATER) is None
    assert podstatus.begun(Record("boot-1", NOW), "boot-1", LATER) == Record("boot-1", NOW)


def test_an_ordinary_workload_is_restarted_after_a_reboot():
    pod = a_pod(["/pause"], policy="Always", phase="Running")
    assert podstatus.lost(pod, Record("boot-0", NOW), "boot-1", LATER) is None
    assert podstatus.begun(Record("boot-0", NOW), "boot-1", LATER) == Record("boot-1", LATER, 1)


def test_an_ordinary_workload_that_never_restarts_fails_in_a_reboot():
    end = podstatus.lost(a_pod(["/pause"], phase="Running"), Record("boot-0", NOW), "boot-1", LATER)
    assert end is not None
    assert end.exit_code == 255


@pytest.mark.parametrize(
    ("code", "too_late", "phase"), [(0, False, "Succeeded"), (1, False, "Failed"), (0, True, "Failed")]
)
def test_the_phase_follows_from_the_exit_code_and_the_deadline(code, too_late, phase):
    end = Terminated(code, "x", "said", NOW, LATER)
    status = podstatus.finished(a_pod(), end, 0, LATER, too_late=too_late)
    assert status["phase"] == phase
    assert status.get("reason") == ("DeadlineExceeded" if too_late else None)
    assert status["containerStatuses"][0]["state"]["terminated"]["message"] == "said"


def test_the_deadline_counts_from_the_first_start():
    assert podstatus.seconds_left(a_pod(activeDeadlineSeconds=90), NOW, LATER) == 30
    assert podstatus.seconds_left(a_pod(activeDeadlineSeconds=10), NOW, LATER) == 0
    assert podstatus.seconds_left(a_pod(), NOW, LATER) is None


def test_a_deletions_own_grace_period_is_the_one_that_counts():
    pod = a_pod(terminationGracePeriodSeconds=60)
    assert podstatus.grace(pod) == 60
    pod["metadata"]["deletionGracePeriodSeconds"] = 0
    assert podstatus.grace(pod) == 0


def test_a_condition_keeps_its_time_until_its_status_changes():
    first = podstatus.running(a_pod(), Record("b", NOW), NOW)
    same = podstatus.running({**a_pod(), "status": first}, Record("b", NOW), LATER)
    assert same["conditions"] == first["conditions"]
    ended = podstatus.finished({**a_pod(), "status": same}, Terminated(0, "Completed", "", NOW, LATER), 0, LATER)
    times = {one["type"]: one["lastTransitionTime"] for one in ended["conditions"]}
    assert (times["PodScheduled"], times["Ready"]) == ("2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z")


def test_a_pod_of_the_hosts_network_has_the_hosts_address():
    own, host = (podstatus.pending(a_pod(hostNetwork=shared), NOW) for shared in (False, True))
    assert host["podIP"] == host["hostIP"] == own["hostIP"] == node.address("gpu-17")
    assert own["podIP"] != own["hostIP"]


def test_a_heartbeat_speaks_only_of_the_kubelets_own_conditions():
    lost = {"type": "GpuLost", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    said = {one["type"]: one for one in node.status("gpu-17", "b", 8, [lost, ready], "", NOW)["conditions"]}
    assert said.keys() == {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}
    assert said["Ready"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert said["Ready"]["lastHeartbeatTime"] == "2026-01-02T03:04:05Z"


def test_trouble_makes_the_node_not_ready_from_that_moment():
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    said = {one["type"]: one for one in node.status("gpu-17", "b", 8, [ready], "runtime is down", NOW)["conditions"]}
    assert (said["Ready"]["status"], said["Ready"]["message"]) == ("False", "runtime is down")
    assert said["Ready"]["lastTransitionTime"] == "2026-01-02T03:04:05Z"
