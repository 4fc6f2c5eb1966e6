"""Pods that restart again and again, wait for ever, or are named by an alert: what proves it, and what does not."""

from datetime import timedelta
from typing import Any

import pytest

from remediator.core.idle_policy import Finding, IdlePolicy
from remediator.core.pod_facts import ContainerExit, ContainerFacts, PodFacts, Scheduling
from remediator.janitor.idle import alerted, stuck
from remediator.janitor.idle.evidence import Evidence
from remediator.janitor.idle.table import State
from remediator.kube.api import janitor_pods
from remediator.prometheus.alerts import ListedAlert
from tests.remediator.janitor.idle_place import HOUR
from tests.remediator.janitor.place import NOW

MINUTE = timedelta(minutes=1)
LOOP = ("CrashLoopBackOff", "back-off 5m0s restarting failed container")
SHORT = ContainerExit(1, "Error", NOW - 3 * MINUTE, NOW - 2 * MINUTE)
LONG = ContainerExit(1, "Error", NOW - 60 * MINUTE, NOW - 2 * MINUTE)


def pod(**fields: Any) -> PodFacts:
    given = {"started": NOW - 3 * HOUR, "created": NOW - 3 * HOUR, "unchanged": NOW - 3 * HOUR, "gpus": 0}
    return PodFacts("team", "p", "u", **(given | fields))


def loops(restarts: int = 12, last: ContainerExit | None = SHORT, **fields: Any) -> ContainerFacts:
    return ContainerFacts("main", restarts, last_exit=last, **({"waiting": LOOP} | fields))


@pytest.mark.parametrize(
    ("container", "state"),
    [
        (loops(), State.IDLE),
        (loops(restarts=4), State.BUSY),  # of 5 restarts the last waits for minutes
        (loops(last=LONG), State.BUSY),  # it had run for 58 minutes before it ended
        (loops(last=None), State.UNKNOWN),
        (loops(last=ContainerExit(1)), State.UNKNOWN),  # nobody can tell for how long it ran
        (loops(waiting=None, running=NOW - 9 * MINUTE), State.UNKNOWN),  # it has begun again, and may end again
        (loops(waiting=None, running=NOW - 10 * MINUTE), State.BUSY),
        (loops(waiting=None), State.UNKNOWN),  # between its end and the next begin
        (loops(waiting=("ImagePullBackOff", "")), State.UNKNOWN),
    ],
)
def test_a_container_restarts_again_and_again_where_it_waits_after_short_runs(
    container: ContainerFacts, state: State
) -> None:
    assert stuck.restarts(pod(states=(container,)), 2 * HOUR, NOW).state is state


def test_the_owner_reads_how_often_and_how_it_ended() -> None:
    evidence = stuck.restarts(pod(states=(ContainerFacts("proxy"), loops())), 2 * HOUR, NOW)
    assert evidence.why == "p: main has restarted 12 times; last exit: code 1 (Error) after 1m, 2m ago"
    young = stuck.restarts(pod(states=(loops(),), started=NOW - HOUR), 2 * HOUR, NOW)
    assert young.state is State.YOUNG


@pytest.mark.parametrize(
    ("fields", "state", "why"),
    [
        ({}, State.IDLE, "Pending for 3h: no scheduler has looked at it; is default-scheduler running?"),
        (
            {"scheduling": Scheduling("Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")},
            State.IDLE,
            "Pending for 3h: Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        ),
        ({"scheduling": Scheduling("SchedulingGated", "")}, State.BUSY, "a queue holds p back"),
        (
            {
                "scheduling": Scheduling("", ""),
                "states": (ContainerFacts("a"), ContainerFacts("b", waiting=("ErrImagePull", "no such tag"))),
            },
            State.IDLE,
            "Pending for 3h: b: ErrImagePull: no such tag",
        ),
        (
            {"scheduling": Scheduling("", ""), "states": (ContainerFacts("a", waiting=("ContainerCreating", "")),)},
            State.IDLE,
            "Pending for 3h: it has a node, and its containers are not created; see its Events",
        ),
        ({"states": (ContainerFacts("copy", running=NOW - HOUR, init=True),)}, State.BUSY, "its init container copy"),
        ({"states": (loops(init=True),)}, State.BUSY, "its container main restarts, which is another matter"),
        ({"unchanged": NOW - 1.9 * HOUR}, State.YOUNG, "but for less than 2h"),  # a node began it anew
        ({"unchanged": None}, State.UNKNOWN, "nobody can tell since when p waits"),
        ({"pending": False}, State.BUSY, "p has begun"),
    ],
)
def test_a_pod_waits_for_ever_where_nothing_has_changed_and_its_owner_reads_why(
    fields: dict[str, Any], state: State, why: str
) -> None:
    evidence = stuck.waits(pod(**({"pending": True} | fields)), 2 * HOUR, NOW)
    assert evidence.state is state
    assert why in evidence.why


def test_one_pod_is_enough_to_tell_the_owner_and_only_all_of_them_to_act() -> None:
    stays, works, unknown = (Evidence(state, "") for state in (State.IDLE, State.BUSY, State.UNKNOWN))
    assert stuck.any_of([stays, stays], others=False) == Evidence(State.IDLE, "", whole=True)
    for pods, others in (([stays, works], False), ([stays, unknown], False), ([stays], True)):
        assert stuck.any_of(pods, others=others) == Evidence(State.IDLE, "", whole=False)
    assert stuck.any_of([works, unknown], others=False).state is State.UNKNOWN
    assert stuck.any_of([works], others=False).state is State.BUSY
    assert stuck.any_of([], others=False).state is State.BUSY


ALERTS = IdlePolicy("idle", ("team",), finds=Finding.ALERT, alert="GpuPodIdle")


def fires(ago: float = 3, *, active: bool = True, **labels: str) -> ListedAlert:
    named = {"alertname": "GpuPodIdle", "namespace": "team", "pod": "p"} | labels
    return ListedAlert("f", named, {}, NOW - ago * HOUR, active, ())


@pytest.mark.parametrize(
    ("alerts", "made", "state"),
    [
        ([fires()], 4, State.IDLE),
        ([], 4, State.BUSY),
        ([fires(alertname="Other")], 4, State.BUSY),
        ([fires(pod="q")], 4, State.BUSY),
        ([fires(1.9)], 4, State.YOUNG),
        ([fires(active=False)], 4, State.UNKNOWN),  # somebody has silenced it
        ([fires(active=False), fires()], 4, State.IDLE),
        ([fires(3)], 2, State.UNKNOWN),  # it began before the Pod was made: another of its name
        ([fires(namespace="monitoring", pod="dcgm", exported_namespace="team", exported_pod="p")], 4, State.IDLE),
    ],
)
def test_an_alert_is_about_the_pod_that_it_names_while_it_fires_and_nobody_has_silenced_it(
    alerts: list[ListedAlert], made: float, state: State
) -> None:
    pods = alerted.by_pod("GpuPodIdle", alerts)
    assert alerted.judge(pod(created=NOW - made * HOUR), pods, ALERTS, NOW).state is state


def test_a_manifest_says_what_a_pod_runs_and_nothing_that_may_be_secret() -> None:
    main = {
        "name": "main",
        "image": "registry.invalid/train:1",
        "command": ["python --password=hunter2", "train.py"],
        "args": ["--token=hunter2"],
        "env": [
            {"name": "API_KEY", "value": "hunter2"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "hunter2", "key": "x"}}},
        ],
        "resources": {"limits": {"memory": "1Gi", "nvidia.com/gpu": "1"}},
        "livenessProbe": {"exec": {"command": ["curl", "-u", "x:hunter2"]}},
    }
    notes = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}
    text = janitor_pods.manifest({"metadata": {"annotations": notes}, "spec": {"containers": [main]}})
    assert "hunter2" not in text
    assert text == (
        "container main: image registry.invalid/train:1, command python and 1 more, 1 args, "
        "limits memory=1Gi nvidia.com/gpu=1, env API_KEY B, livenessProbe"
    )
