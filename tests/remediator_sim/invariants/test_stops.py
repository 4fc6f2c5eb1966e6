"""I4: stops: a history that keeps it is counted as checked, one that breaks it is reported."""

import pytest

from tests.remediator_sim.invariants.histories import BOOT, History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording, tried


def start(recording: Recording, name: str) -> None:
    recording.node(f"n-{name}")
    recording.case(name, f"n-{name}", "Draining", startedAt=True)
    recording.case(name, attempts=tried(f"reset-{name}", outcome=""))


def as_many_starts_as_the_breaker_lets_through(recording: Recording) -> None:
    start(recording, "a")
    start(recording, "c")
    recording.later(60)
    start(recording, "d")


def one_start_too_many(recording: Recording) -> None:
    start(recording, "a")
    start(recording, "c")
    recording.later(50)
    start(recording, "d")


def cancelled_before(recording: Recording, pod: str = "") -> None:
    """Two starts; the operation of the first was cancelled after its intent, before its Pod or in a phase of that. Then
    another, under a breaker that lets 2 through for the fleet, and one for a budget that lets 2 through as well.
    """
    recording.budget("r", 9, breaker={"starts": 2, "window": "1m"})
    recording.later(5)
    start(recording, "a")
    recording.operation("reset-a", "a", phase="Operating", intent=BOOT)
    if pod:
        recording.pod("pod-a", "reset-a", "reset")
        recording.write("pods", "pod-a", status={"phase": pod})
    recording.operation("reset-a", "a", phase="Cancelled")
    start(recording, "c")
    start(recording, "d")


def a_start_after_one_that_was_cancelled_without_a_pod(recording: Recording) -> None:
    cancelled_before(recording)


def a_start_after_one_that_was_cancelled_before_its_pod_had_started(recording: Recording) -> None:
    cancelled_before(recording, "Pending")


def a_start_after_one_that_was_cancelled_with_a_pod(recording: Recording) -> None:
    cancelled_before(recording, "Running")


def a_start_while_paused(recording: Recording) -> None:
    recording.paused(True)
    recording.later(5)
    start(recording, "a")


def a_start_a_moment_after_the_pause(recording: Recording) -> None:
    recording.paused(True)
    start(recording, "a")


def a_start_after_the_pause_was_lifted(recording: Recording) -> None:
    recording.paused(True)
    recording.later(5)
    recording.paused(False)
    start(recording, "a")


def a_start_of_a_policy_that_only_watches(recording: Recording) -> None:
    recording.policy("DryRun")
    recording.later(5)
    start(recording, "a")


def a_start_of_a_policy_that_only_calls_a_person(recording: Recording) -> None:
    recording.policy(urgency={"mode": "Never"})
    recording.later(5)
    start(recording, "a")


def a_start_of_a_case_that_a_person_holds(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Draining", startedAt=True)
    recording.write("noderemediations.remediator.dev", "a", spec={"hold": True})
    recording.later(5)
    recording.case("a", attempts=tried("reset-1"))


def a_start_on_a_node_that_a_person_took_out(recording: Recording) -> None:
    recording.write(
        "nodes", "n-a", metadata={"name": "n-a", "uid": "uid-n-a", "labels": {"remediator.dev/exclude": "true"}}
    )
    recording.later(5)
    start(recording, "a")


SIGN = {"key": "medik8s.io/drain", "value": "", "effect": "NoSchedule"}
UPGRADE = "nvidia.com/gpu-driver-upgrade-state"


def a_start_while_another_system_drains_the_node(recording: Recording) -> None:
    recording.mark("n-a", taints=[SIGN])
    recording.later(5)
    start(recording, "a")


def a_start_while_the_driver_is_upgraded(recording: Recording) -> None:
    recording.write("nodes", "n-a", metadata={"labels": {UPGRADE: "drain-required"}})
    recording.later(5)
    start(recording, "a")


def a_start_before_the_turn_of_the_node_to_be_upgraded(recording: Recording) -> None:
    recording.write("nodes", "n-a", metadata={"labels": {UPGRADE: "upgrade-required"}})
    recording.later(5)
    start(recording, "a")


def a_start_once_the_other_system_is_done(recording: Recording) -> None:
    recording.mark("n-a", taints=[SIGN])
    recording.later(5)
    recording.mark("n-a", taints=[])
    start(recording, "a")


def a_pod_of_a_case_on_whose_node_another_system_works(recording: Recording) -> None:
    start(recording, "a")
    recording.operation("reset-a", "a")
    recording.mark("n-a", taints=[SIGN])
    recording.later(5)
    recording.pod("pod-a", "reset-a")


def a_pod_while_paused(recording: Recording) -> None:
    recording.paused(True)
    recording.later(5)
    recording.pod("look-1", "", "collect-diagnostics")


def a_case_ends_while_paused(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Verifying", startedAt=True, attempts=tried("reset-1"))
    recording.node("n1", "False")
    recording.paused(True)
    recording.later(15)
    recording.case("a", phase="Recovered", endedAt=True)
    recording.later(20)


def a_case_that_waits_for_the_end_of_the_pause(recording: Recording) -> None:
    recording.node("n1")
    recording.case("a", "n1", "Verifying", startedAt=True, attempts=tried("reset-1"))
    recording.node("n1", "False")
    recording.paused(True)
    recording.later(30)


def tried_in_vain(recording: Recording, cases: int, *recovered: str) -> None:
    """So many cases went to a person, each after one try; those that recovered came later."""
    for number in range(cases):
        one_try(recording, f"v{number}", "Escalated", "Failed")
        recording.later(61)
    for name in recovered:
        one_try(recording, name, "Recovered", "Succeeded", endedAt=True)
        recording.later(61)


def one_try(recording: Recording, name: str, phase: str, outcome: str, **status: object) -> None:
    start(recording, name)
    end = {"finishedAt": recording.now.isoformat(), "template": "reset"}
    attempts = [attempt | end for attempt in tried(f"reset-{name}", outcome=outcome)]
    recording.case(name, phase=phase, attempts=attempts, **status)


def a_start_after_4_tries_in_vain(recording: Recording) -> None:
    tried_in_vain(recording, 4)
    start(recording, "a")


def a_start_after_3_tries_in_vain(recording: Recording) -> None:
    tried_in_vain(recording, 3)
    start(recording, "a")


def a_start_after_4_tries_in_vain_before_5_that_helped(recording: Recording) -> None:
    tried_in_vain(recording, 4)
    recording.write("remediationpolicies.remediator.dev", "p", metadata=closed(recording))
    for name in ("r1", "r2", "r3", "r4", "r5"):
        one_try(recording, name, "Recovered", "Succeeded", endedAt=True)
        recording.later(61)
    start(recording, "a")


def a_start_after_a_user_has_closed_the_breaker(recording: Recording) -> None:
    tried_in_vain(recording, 4)
    recording.write("remediationpolicies.remediator.dev", "p", metadata=closed(recording))
    start(recording, "a")


def closed(recording: Recording) -> dict[str, object]:
    at = recording.now.isoformat()
    return {"name": "p", "uid": "uid-p", "annotations": {"remediator.dev/breaker-closed-at": at}}


def the_same_on(recording: Recording, *times: str) -> None:
    """Nodes n-a, n-b, … show the same since these times of the first hour, and a case of n-a starts."""
    recording.policy(correlation={"nodes": 3, "within": "10m"})
    for name, minute in zip("abcd", times, strict=False):
        recording.node(f"n-{name}")
        since = f"2026-01-01T11:{minute}:00+00:00"
        [lost, *others] = recording.stored["nodes", f"n-{name}"]["status"]["conditions"]
        lost |= {"message": "no GPU", "lastTransitionTime": since}
        recording.write("nodes", f"n-{name}", status={"conditions": [lost, *others]})
    recording.later(5)
    trigger = {"condition": "GpuLost", "message": "no GPU"}
    spec = {"nodeName": "n-a", "policyName": "p", "trigger": trigger}
    recording.write("noderemediations.remediator.dev", "a", spec=spec, status={"startedAt": recording.now.isoformat()})


def a_start_where_three_nodes_show_the_same(recording: Recording) -> None:
    the_same_on(recording, "30", "35", "40")


def a_start_where_two_nodes_show_the_same(recording: Recording) -> None:
    the_same_on(recording, "30", "35")


def a_start_where_three_nodes_show_the_same_within_more_than_ten_minutes(recording: Recording) -> None:
    the_same_on(recording, "30", "35", "41")


def a_label_makes_it_part_of_the_control_plane(recording: Recording, name: str = "n1") -> None:
    recording.node(name)
    recording.write("nodes", name, metadata={"labels": {"node-role.kubernetes.io/control-plane": ""}})


def static_pod(recording: Recording, component: str, node: str = "n1") -> None:
    meta = {
        "name": f"{component}-{node}",
        "uid": f"uid-{component}",
        "namespace": "kube-system",
        "labels": {"tier": "control-plane", "component": component},
        "annotations": {"kubernetes.io/config.mirror": "a1"},
    }
    recording.write("pods", meta["name"], metadata=meta, spec={"nodeName": node})


def a_start_where_etcd_runs(recording: Recording) -> None:
    static_pod(recording, "etcd", "n-a")
    recording.later(5)
    start(recording, "a")


def a_start_where_kube_proxy_is_static(recording: Recording) -> None:
    static_pod(recording, "kube-proxy", "n-a")
    recording.later(5)
    start(recording, "a")


def a_start_where_etcd_ran(recording: Recording) -> None:
    static_pod(recording, "etcd", "n-a")
    recording.remove("pods", "etcd-n-a")
    recording.later(5)
    start(recording, "a")


def a_claim_of_the_control_plane(recording: Recording) -> None:
    a_label_makes_it_part_of_the_control_plane(recording)
    recording.later(5)
    recording.taint("n1", "a")


def a_claim_at_the_moment_in_which_it_joins(recording: Recording) -> None:
    a_label_makes_it_part_of_the_control_plane(recording)
    recording.taint("n1", "a")


def a_drain_runs(recording: Recording) -> None:
    recording.node("n1")
    recording.write("pods", "train", "default", spec={"nodeName": "n1"})
    recording.case("a", "n1", startedAt=True)
    recording.pod("drain-1", "reset-1", "drain")
    env = [{"name": "NODE_NAME", "value": "n1"}]
    recording.write("pods", "drain-1", spec={"containers": [{"env": env}]})


def evicted_after(seconds: int, stop: History) -> History:
    """Something stops a drain that runs, and so much later it evicts a Pod."""

    def write(recording: Recording) -> None:
        a_drain_runs(recording)
        stop(recording)
        recording.later(seconds)
        recording.write("pods", "train", metadata={"deletionTimestamp": "2026-01-01T12:00:05Z"})

    return write


def etcd_comes(recording: Recording) -> None:
    static_pod(recording, "etcd")


def a_user_excludes_the_node(recording: Recording) -> None:
    recording.write("nodes", "n1", metadata={"labels": {"remediator.dev/exclude": "true"}})


def a_user_holds_the_case(recording: Recording) -> None:
    recording.write("noderemediations.remediator.dev", "a", spec={"nodeName": "n1", "hold": True})


def a_user_deletes_the_case(recording: Recording) -> None:
    recording.write("noderemediations.remediator.dev", "a", metadata=DELETED["metadata"])


def a_user_deletes_a_pod_of_the_control_plane(recording: Recording) -> None:
    recording.write("pods", "train", "default", spec={"nodeName": "n1"})
    static_pod(recording, "etcd")
    recording.later(5)
    recording.remove("pods", "train")


def a_reboot_of_a_pod_that_was_there(recording: Recording) -> None:
    recording.operation("reset-1", "a", intent=BOOT)
    recording.pod("pod-1", "reset-1")
    static_pod(recording, "etcd")
    recording.later(5)
    recording.reboot("n1", "reset-1")


def a_reboot_of_the_control_plane(recording: Recording) -> None:
    static_pod(recording, "etcd")
    recording.later(5)
    recording.operation("reset-1", "a", intent=BOOT)
    recording.pod("pod-1", "reset-1")
    recording.reboot("n1", "reset-1")


def held(recording: Recording) -> None:
    recording.case("a", "n1", "Held", blockedBy=[{"reason": "ControlPlane"}])


def a_case_held_for_a_label(recording: Recording) -> None:
    a_label_makes_it_part_of_the_control_plane(recording)
    held(recording)


def a_case_held_for_kube_proxy(recording: Recording) -> None:
    recording.node("n1")
    static_pod(recording, "kube-proxy")
    held(recording)


def says_since(recording: Recording, *holds: dict[str, str]) -> None:
    """What a case says of its holds, one write after the other: a reason → since when."""
    recording.node("n1")
    for since in holds:
        recording.case("a", "n1", "Held", blockedBy=[{"reason": why, "since": at} for why, at in since.items()])


def stopped_in_its_drain(minutes: int, **status: object) -> History:
    """A node is excluded while an operation drains it, which goes on for so long."""

    def write(recording: Recording) -> None:
        start(recording, "a")
        recording.operation("reset-a", "a", **status)
        recording.write("nodes", "n-a", metadata={"labels": {"remediator.dev/exclude": "true"}})
        recording.later(60 * minutes)

    return write


def goes_on_after(minutes: int, **said: dict[str, object]) -> History:
    """A user asks for the end of a case, and it goes on for so long."""

    def write(recording: Recording) -> None:
        start(recording, "a")
        recording.case("a", phase="Escalated")
        recording.write("noderemediations.remediator.dev", "a", **said)
        recording.later(60 * minutes)

    return write


DELETED = {"metadata": {"name": "a", "uid": "uid-a", "deletionTimestamp": "2026-01-01T12:00:05Z"}}
RELEASED = {"spec": {"nodeName": "n-a", "policyName": "p", "release": True}}
OBEYED = [
    (evicted_after(7, a_user_excludes_the_node), 2),
    (stopped_in_its_drain(15), 0),
    (stopped_in_its_drain(16, intent=BOOT), 1),
    (goes_on_after(39, **DELETED), 0),
    (goes_on_after(14, **RELEASED), 0),
]
IGNORED = [
    (
        a_pod_of_a_case_on_whose_node_another_system_works,
        "pod-a was made at 12:00:05 though another system works on n-a",
    ),
    (evicted_after(9, a_user_excludes_the_node), "train was evicted at 12:00:09 though a person excluded n1 since"),
    (evicted_after(9, a_user_holds_the_case), "train was evicted at 12:00:09 though a person holds case a since"),
    (evicted_after(9, a_user_deletes_the_case), "train was evicted at 12:00:09 though case a was deleted since"),
    (stopped_in_its_drain(16), "operation reset-a goes on though a person excluded n-a since 12:00:00"),
    (goes_on_after(41, **DELETED), "case a, deleted by a person at 12:00:00, goes on"),
    (goes_on_after(16, **RELEASED), "case a, released by a person at 12:00:00, goes on"),
]


def test_the_time_since_when_a_reason_holds_a_case_stays_while_the_reason_stays():
    noon, later = "2026-01-01T12:00:00Z", "2026-01-01T12:00:05Z"
    holds("I12", lambda recording: says_since(recording, {"BudgetSpent": noon}, {"BudgetSpent": noon}), 1)
    holds("I12", lambda recording: says_since(recording, {"BudgetSpent": noon}, {}, {"BudgetSpent": later}), 0)
    for moved in (later, ""):
        text = f"case a is held for BudgetSpent since {moved!r}, and had said {noon!r}"
        both = {"BudgetSpent": moved, "NodeBusy": later}
        breaks("I12", lambda recording, both=both: says_since(recording, {"BudgetSpent": noon}, both), text)


CONTROL_PLANE_HOLDS = [
    (a_claim_at_the_moment_in_which_it_joins, 1),
    (a_user_deletes_a_pod_of_the_control_plane, 0),
    (a_reboot_of_a_pod_that_was_there, 1),
    (a_case_held_for_a_label, 1),
]
CONTROL_PLANE_BROKEN = [
    (a_claim_of_the_control_plane, "n1 was taken out of service at 12:00:05 though it is part of the control plane"),
    (evicted_after(9, etcd_comes), "Pod default/train was evicted at 12:00:09 though n1 is part of the control plane"),
    (a_reboot_of_the_control_plane, "n1 was asked to reboot at 12:00:05 though it is part of the control plane"),
    (a_case_held_for_kube_proxy, "case a is held for the control plane at 12:00:00, and n1 is none of it"),
]
HOLDS = [
    (a_start_where_kube_proxy_is_static, 3),
    (a_start_where_etcd_ran, 3),
    (a_start_after_3_tries_in_vain, 12),
    (a_start_after_a_user_has_closed_the_breaker, 15),
    (a_start_after_4_tries_in_vain_before_5_that_helped, 30),
    (a_start_where_two_nodes_show_the_same, 1),
    (a_start_where_three_nodes_show_the_same_within_more_than_ten_minutes, 1),
    (as_many_starts_as_the_breaker_lets_through, 9),
    (a_start_after_one_that_was_cancelled_without_a_pod, 12),
    (a_start_after_one_that_was_cancelled_before_its_pod_had_started, 13),
    (a_start_a_moment_after_the_pause, 3),
    (a_start_after_the_pause_was_lifted, 3),
    (a_start_before_the_turn_of_the_node_to_be_upgraded, 3),
    (a_start_once_the_other_system_is_done, 3),
    (a_case_ends_while_paused, 4),
]
BROKEN = [
    (
        a_start_after_4_tries_in_vain,
        "reset-a was begun at 12:04:06 though 4 of the last 4 tries under policy p were in",
    ),
    (
        a_start_where_three_nodes_show_the_same,
        "case a took n-a at 12:00:08 though 3 nodes show the same (n-a, n-b, n-c)",
    ),
    (a_start_where_etcd_runs, "reset-a was begun at 12:00:05 though n-a is part of the control plane since"),
    (one_start_too_many, "reset-d was start number 3 within 0:01:00 at 12:00:51; the breaker allows 2"),
    (
        a_start_after_one_that_was_cancelled_with_a_pod,
        "reset-d was start number 3 within 0:01:00 under budget r at 12:00:06; its breaker allows 2",
    ),
    (
        a_start_after_one_that_was_cancelled_with_a_pod,
        "reset-d was start number 3 within 0:01:00 at 12:00:06; the breaker allows 2",
    ),
    (a_start_while_paused, "though the namespace remediator-system is paused since 12:00:00"),
    (a_start_of_a_policy_that_only_watches, "though policy p lets nothing start since"),
    (a_start_of_a_policy_that_only_calls_a_person, "though policy p lets nothing start since"),
    (a_start_of_a_case_that_a_person_holds, "reset-1 was begun at 12:00:05 though a person holds case a since"),
    (a_start_on_a_node_that_a_person_took_out, "though a person excluded n-a"),
    (a_start_while_another_system_drains_the_node, "reset-a was begun at 12:00:05 though another system works on n-a"),
    (
        a_start_while_the_driver_is_upgraded,
        "case a took n-a at 12:00:05 though another system works on n-a since 12:00:00",
    ),
    (a_pod_while_paused, "look-1 was made at 12:00:05 though the namespace"),
    (a_case_that_waits_for_the_end_of_the_pause, "case a does not end though n1 is well since 12:00:00"),
]


@histories("checks", HOLDS)
def test_a_kept_invariant_is_counted_as_checked_and_not_as_broken(history: History, checks: int) -> None:
    holds("I4", history, checks)


@histories("text", BROKEN)
def test_a_broken_invariant_is_reported_with_what_broke_it(history: History, text: str) -> None:
    breaks("I4", history, text)


@histories("checks", CONTROL_PLANE_HOLDS)
def test_what_spares_the_control_plane_is_counted_as_checked(history: History, checks: int) -> None:
    holds("I12", history, checks)


@histories("text", CONTROL_PLANE_BROKEN)
def test_what_disturbs_the_control_plane_is_reported(history: History, text: str) -> None:
    breaks("I12", history, text)


@histories("checks", OBEYED)
def test_what_is_stopped_soon_enough_breaks_nothing(history: History, checks: int) -> None:
    holds("I12", history, checks)


@histories("text", IGNORED)
def test_what_goes_on_though_it_was_stopped_is_reported(history: History, text: str) -> None:
    breaks("I12", history, text)


@pytest.mark.parametrize(("minutes", "broken"), [(14, 0), (16, 1)])
def test_what_was_begun_long_after_the_stop_has_its_own_minutes_to_end(minutes: int, broken: int) -> None:
    recording = Recording()
    start(recording, "a")
    recording.write("nodes", "n-a", metadata={"labels": {"remediator.dev/exclude": "true"}})
    recording.later(60 * 60)
    recording.operation("by-hand", "a")
    recording.later(60 * minutes)
    goes_on = {sentence for sentence in recording.found("I12").broken if "operation by-hand goes on" in sentence}
    assert bool(goes_on) == bool(broken), recording.found("I12").broken
