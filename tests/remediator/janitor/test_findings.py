"""Whole passes of policies about idle CPUs, restarts, Pods that wait, and alerts: who is told, what is never done."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from remediator.core import names
from remediator.janitor.decide import JanitorReason
from remediator.janitor.idle.policy_report import PolicyReport
from remediator.janitor.outcome import JanitorOutcome
from remediator.kube.wire.times import stamp
from remediator.prometheus.alerts import Alertmanagers, ListedAlert, Listing
from remediator.prometheus.reading import CannotTell, Doubt
from tests.harness.kinds import DEPLOYMENTS, EVENTS, PODS, Object
from tests.remediator.janitor.idle_place import HOUR, JOBS, SETS, STATEFUL, Cluster, became, reference
from tests.remediator.janitor.place import NOW

LOOP = {
    "name": "main",
    "restartCount": 12,
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
    "lastState": {
        "terminated": {
            "exitCode": 137,
            "reason": "OOMKilled",
            "startedAt": stamp(NOW - timedelta(minutes=4)),
            "finishedAt": stamp(NOW - timedelta(minutes=3)),
        }
    },
}
FULL = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


class Listed:
    """An Alertmanager that lists what a test wants."""

    def __init__(self) -> None:
        self.listing: Listing = ()

    async def alerts(self) -> Listing:
        return self.listing

    async def aclose(self) -> None:
        """Nothing to give back."""


class Findings(Cluster):
    """Pods with what a kubelet or a scheduler says of them, and an Alertmanager."""

    def __init__(self) -> None:
        super().__init__()
        self.served = False
        self.alertmanager = Listed()
        self.alertmanagers = Alertmanagers([self.alertmanager], "")

    async def policy(self, name: str = "gpus", **spec: Any) -> None:
        """With the kinds that every API server has."""
        if not self.served:
            self.served = True
            await self.serve(DEPLOYMENTS, SETS, JOBS, STATEFUL)
        await super().policy(name, **spec)

    async def status(self, name: str, **status: Any) -> None:
        await self.admin.patch(PODS, name, {"status": status}, namespace="team", subresource="status")

    async def loops(self, name: str, owner: Object | None = None) -> None:
        await self.gpus(name, 0, owner=owner)
        await self.status(name, containerStatuses=[LOOP])

    async def waits(self, name: str, reason: str = "Unschedulable") -> None:
        await self.gpus(name, 1)
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": FULL}
        since = stamp(NOW - 5 * HOUR)
        await self.status(name, phase="Pending", startTime=None, conditions=[condition | {"lastTransitionTime": since}])

    async def web(self) -> tuple[Object, Object]:
        """A Deployment with its ReplicaSet."""
        spec = {"selector": {}, "template": {"spec": {"containers": [{"name": "m", "image": "x"}]}}, "replicas": 2}
        deployment = await self.make(DEPLOYMENTS, "web", spec=spec)
        owned = {"ownerReferences": [reference(deployment)]}
        return deployment, await self.make(SETS, "web-1", spec=spec, metadata=owned)

    async def messages(self) -> list[str]:
        return [event["message"] for event in await self.admin.list_all(EVENTS)]


def lines(report: PolicyReport) -> Sequence[tuple[JanitorOutcome, str, JanitorReason]]:
    return became(report)


async def test_of_a_pod_that_restarts_again_and_again_the_owner_reads_its_last_exit_and_its_manifest() -> None:
    at = Findings()
    await at.policy(finds="Restarts", actions=[])
    await at.loops("p")
    await at.gpus("works", 0)
    assert lines(await at.idle()) == [(JanitorOutcome.TOLD, "pods/team/p", JanitorReason.RESTARTS_NOTICE)]
    (message,) = await at.messages()
    assert message == (
        "alice: p: main has restarted 12 times; last exit: code 137 (OOMKilled) after 1m, 3m ago; nothing is taken "
        "(idle policy gpus); to keep it: remediator keep pods/p 8h -n team; look at its manifest, kubectl get pod p "
        "-n team -o yaml: container main: image x"
    )
    assert lines(await at.idle(50)) == [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.TOLD_ONLY)]
    assert at.writes() == []


async def test_what_restarts_is_deleted_only_where_the_policy_says_so_and_after_the_grace() -> None:
    at = Findings()
    await at.policy(finds="Restarts")
    await at.loops("p")
    await at.idle()
    assert lines(await at.idle(3.9)) == [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.GRACE)]
    assert lines(await at.idle(4)) == [(JanitorOutcome.DELETED, "pods/team/p", JanitorReason.RESTARTS)]


async def test_a_notice_that_nothing_is_taken_gives_no_right_to_take_something() -> None:
    at = Findings()
    await at.policy(finds="Restarts", actions=[])
    await at.loops("p")
    await at.idle()
    await at.change_policy(actions=["Delete"])
    assert lines(await at.idle(50)) == [(JanitorOutcome.TOLD, "pods/team/p", JanitorReason.RESTARTS_NOTICE)]
    assert lines(await at.idle(51)) == [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.GRACE)]


async def test_of_a_deployment_of_which_one_pod_restarts_the_owner_is_told_and_it_goes_on() -> None:
    at = Findings()
    await at.policy(finds="Restarts")
    _, replicas = await at.web()
    await at.loops("web-1-a", owner=replicas)
    await at.gpus("web-1-b", 0, owner=replicas)
    assert lines(await at.idle()) == [(JanitorOutcome.TOLD, "deployments/team/web", JanitorReason.RESTARTS_NOTICE)]
    assert "nothing is taken" in (await at.messages())[0]
    assert lines(await at.idle(50)) == [(JanitorOutcome.HELD, "deployments/team/web", JanitorReason.TOLD_ONLY)]
    await at.status("web-1-b", containerStatuses=[LOOP])
    assert lines(await at.idle(50)) == [(JanitorOutcome.TOLD, "deployments/team/web", JanitorReason.RESTARTS_NOTICE)]
    assert lines(await at.idle(54)) == [(JanitorOutcome.SCALED, "deployments/team/web", JanitorReason.RESTARTS)]


async def test_a_cure_takes_the_notice_back_also_where_no_pod_restarts_any_more() -> None:
    at = Findings()
    await at.policy(finds="Restarts")
    _, replicas = await at.web()
    await at.loops("web-1-a", owner=replicas)
    await at.idle()
    assert names.IDLE_UNTIL in await at.marks(DEPLOYMENTS, "web")
    await at.admin.delete(PODS, "web-1-a", namespace="team", uid=(await live(at, "web-1-a"))["metadata"]["uid"])
    assert lines(await at.idle(3)) == [(JanitorOutcome.CLEARED, "deployments/team/web", JanitorReason.IN_USE)]
    assert names.IDLE_UNTIL not in await at.marks(DEPLOYMENTS, "web")
    await at.loops("web-1-c", owner=replicas)
    assert lines(await at.idle(50)) == [(JanitorOutcome.TOLD, "deployments/team/web", JanitorReason.RESTARTS_NOTICE)]


async def live(at: Findings, name: str) -> Object:
    pod: Object = await at.admin.get(PODS, name, namespace="team")
    return pod


async def test_of_a_pod_that_does_not_begin_the_owner_reads_what_the_scheduler_says() -> None:
    at = Findings()
    await at.policy(finds="Pending", idleFor="4h")
    await at.waits("p")
    await at.waits("queued", "SchedulingGated")
    await at.gpus("runs")
    assert lines(await at.idle()) == [(JanitorOutcome.TOLD, "pods/team/p", JanitorReason.PENDING_NOTICE)]
    (message,) = await at.messages()
    assert message.startswith(
        f"alice: p: Pending for 5h: Unschedulable: {FULL}; pods/p will be deleted after 2026-01-10T04"
    )
    assert lines(await at.idle(4)) == [(JanitorOutcome.DELETED, "pods/team/p", JanitorReason.PENDING)]
    assert await at.names(PODS, "team") == {"queued", "runs"}


async def test_a_pod_that_begins_has_its_notice_taken_back() -> None:
    at = Findings()
    await at.policy(finds="Pending", idleFor="4h")
    await at.waits("p")
    await at.idle()
    await at.status("p", phase="Running")
    assert lines(await at.idle(5)) == [(JanitorOutcome.CLEARED, "pods/team/p", JanitorReason.IN_USE)]


async def test_a_pod_that_has_begun_since_it_was_listed_is_not_hit() -> None:
    at = Findings()
    await at.policy(finds="Pending", idleFor="4h")
    await at.waits("p")
    await at.idle()
    begins = {"status": {"phase": "Running", "conditions": []}}

    async def meanwhile() -> None:
        await at.admin.patch(PODS, "p", begins, namespace="team", subresource="status")

    at.before_get = meanwhile
    assert lines(await at.idle(5)) == []
    assert await at.names(PODS, "team") == {"p"}


def alert(pod: str, *, active: bool = True) -> ListedAlert:
    labels = {"alertname": "PodIdle", "namespace": "team", "pod": pod}
    return ListedAlert(pod, labels, {}, NOW - 3 * HOUR, active, ("other",))


async def test_an_alert_has_the_owner_told_and_when_it_ends_the_notice_is_taken_back() -> None:
    at = Findings()
    await at.policy(finds="Alert", alert="PodIdle")
    for name in ("p", "q", "silenced"):
        await at.gpus(name, 0)
    at.alertmanager.listing = (alert("p"), alert("q"), alert("silenced", active=False))
    assert lines(await at.idle()) == [
        (JanitorOutcome.TOLD, "pods/team/p", JanitorReason.ALERT_NOTICE),
        (JanitorOutcome.TOLD, "pods/team/q", JanitorReason.ALERT_NOTICE),
        (JanitorOutcome.HELD, "pods/team/silenced", JanitorReason.CANNOT_TELL),
    ]
    at.alertmanager.listing = (alert("q"),)
    assert lines(await at.idle(4)) == [
        (JanitorOutcome.CLEARED, "pods/team/p", JanitorReason.IN_USE),
        (JanitorOutcome.DELETED, "pods/team/q", JanitorReason.ALERT),
    ]
    at.alertmanager.listing = (alert("p"),)
    assert lines(await at.idle(5)) == [(JanitorOutcome.TOLD, "pods/team/p", JanitorReason.ALERT_NOTICE)]


@pytest.mark.parametrize("watchdog", ["", "Watchdog"])
async def test_while_an_alertmanager_cannot_tell_nothing_begins_and_nothing_ends(watchdog: str) -> None:
    at = Findings()
    await at.policy(finds="Alert", alert="PodIdle")
    for name in ("p", "q"):
        await at.gpus(name, 0)
    at.alertmanager.listing = (alert("p"),)
    await at.idle()
    at.alertmanagers = Alertmanagers([at.alertmanager], "", watchdog)
    at.alertmanager.listing = (alert("p"), alert("q")) if watchdog else CannotTell(Doubt.TIMED_OUT, "no answer")
    report = await at.idle(5)
    assert (at.writes(), report.lines) == ([], [])
    assert report.problems[0].startswith("nobody can tell which alerts fire: ")
    assert names.IDLE_UNTIL in await at.marks(PODS, "p")


async def test_an_owner_is_scaled_where_all_its_pods_are_idle_by_cpu_and_none_of_them_has_gpus() -> None:
    at = Findings()
    await at.policy(finds="IdleCPU")
    _, replicas = await at.web()
    await at.gpus("web-1-a", 0, owner=replicas)
    await at.gpus("shell", 0, use=40)
    await at.gpus("trains", 1)
    at.asked.pods["web-1-a"] = (1, 1, 120)
    assert lines(await at.idle()) == [(JanitorOutcome.TOLD, "deployments/team/web", JanitorReason.IDLE_NOTICE)]
    await at.gpus("web-1-b", 1, owner=replicas)
    assert lines(await at.idle(4)) == [(JanitorOutcome.HELD, "deployments/team/web", JanitorReason.CANNOT_TELL)]
    pod = await live(at, "web-1-b")
    await at.admin.delete(PODS, "web-1-b", namespace="team", uid=pod["metadata"]["uid"])
    assert lines(await at.idle(4)) == [(JanitorOutcome.SCALED, "deployments/team/web", JanitorReason.CPU_IDLE)]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"finds": "IdleCPU"}, "nobody can tell what is idle: there is no Prometheus to ask; give --prometheus-url"),
        (
            {"finds": "Alert", "alert": "A"},
            "nobody can tell which alerts fire: there is no Alertmanager to ask; give --alertmanager-url",
        ),
    ],
)
async def test_a_policy_whose_source_is_not_there_says_which_option_to_give(spec: dict[str, str], says: str) -> None:
    at = Findings()
    at.prometheus = at.alertmanagers = None
    await at.policy(**spec)
    await at.gpus("p", 0)
    at.asked.pods.clear()
    report = await at.idle()
    assert (report.problems, at.writes()) == ([says], [])


async def test_what_two_policies_find_belongs_to_the_first_and_only_it_writes() -> None:
    at = Findings()
    await at.policy(finds="IdleCPU")
    await at.policy(name="z-restarts", finds="Restarts")
    await at.loops("p")
    at.asked.pods["p"] = (0, 1, 120)
    first, second = await at.reports()
    assert (lines(first), lines(second)) == ([(JanitorOutcome.TOLD, "pods/team/p", JanitorReason.IDLE_NOTICE)], [])
    first, second = await at.reports(1)
    assert (lines(first), lines(second), at.writes()) == (
        [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.GRACE)],
        [],
        [],
    )


async def test_a_policy_that_is_about_a_pod_no_more_takes_its_notice_back() -> None:
    at = Findings()
    await at.policy()
    await at.gpus("p")
    await at.idle()
    await at.change_policy(podSelector={"matchLabels": {"owner": "bob"}})
    assert lines(await at.idle(5)) == [(JanitorOutcome.CLEARED, "pods/team/p", JanitorReason.IN_USE)]
