"""A node that is Ready, with all its GPUs, and rejects each Pod: found by its Pods, and left alone from then on."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from remediator.clock import SYSTEM
from remediator.controller.rejections import RejectionCounts, WorkCounts
from remediator.core.node import Status
from remediator.core.rejections import PODS_REJECTED, Rejection, judge
from remediator.core.spare import PodHolding
from remediator.kube.api import rejected_pods
from remediator.kube.api.builtin import PodSpec
from remediator.kube.api.common import OwnerReference
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator.scheduler.extender import Extender
from tests.builders import at
from tests.harness.controller import ControllerHarness, now, running, stamp, until
from tests.harness.kinds import NAMESPACES, NODES, PODS
from tests.harness.scheduler import GPU, names_body

EVERYWHERE = ["black", "well"]
WORD = "UnexpectedAdmissionError"


def wanted(name: str, node: str = "", namespace: str = "default") -> dict[str, object]:
    """A Pod with one GPU, of an owner of its own."""
    owner = {"apiVersion": "ci/v1", "kind": "Runner", "name": name, "uid": f"owner-{name}", "controller": True}
    spec = {"containers": [{"name": "main", "image": "ci", "resources": {"limits": {GPU: "1"}}}]}
    meta = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
    return {"metadata": meta, "spec": spec | ({"nodeName": node} if node else {})}


async def room(harness: ControllerHarness, node: str, gpus: int) -> None:
    status = {"capacity": {GPU: str(gpus)}, "allocatable": {GPU: str(gpus)}}
    await harness.client.patch(NODES, node, {"status": status}, subresource="status", content_type=STRATEGIC_PATCH)


async def place(harness: ControllerHarness, extender: Extender, name: str) -> str:
    """Do what kube-scheduler does: filter, prioritize, the best node. The black hole rejects what comes."""
    body = names_body(EVERYWHERE, wanted(name))
    left = json.loads(extender.filter(body))["NodeNames"]
    points = {each["Host"]: each["Score"] for each in json.loads(extender.prioritize(names_body(left, wanted(name))))}
    node = max(points, key=lambda host: points[host])
    await harness.client.create(PODS, wanted(name, node), namespace="default")
    status = {"phase": "Running"}
    if node == "black":
        status = {"phase": "Failed", "reason": WORD, "message": "Allocate failed due to GPU-1 not found"}
    status["startTime"] = stamp(now())
    await harness.client.patch(PODS, name, {"status": status}, namespace="default", subresource="status")
    return node


def said(harness: ControllerHarness, node: str) -> dict[str, str]:
    conditions = harness.look(node).get("status", {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == PODS_REJECTED), {})


@pytest.mark.parametrize(("mode", "verdict"), [("Enforce", 0), ("DryRun", 1)])
async def test_a_black_hole_gets_three_pods_and_no_more(harness: ControllerHarness, mode: str, verdict: int) -> None:
    """20 Pods of 20 owners. Both nodes have 32 GPUs, and the black hole is preferred, since fewer of its own are free.

    With a policy in Enforce it is refused then, and its case opens; in DryRun it comes last.
    """
    await harness.policy("pods-rejected", mode=mode, when=[{"condition": PODS_REJECTED, "for": "1h"}])
    for name, gpus in zip(EVERYWHERE, (31, 32), strict=True):
        await harness.node(name)
        await room(harness, name, gpus)
    extenders: list[Extender] = []

    def beside(informers, leader):
        extenders.append(Extender(harness.client, informers, SYSTEM))

    async with running(harness, beside=beside) as controller:
        (extender,) = extenders
        work = asyncio.ensure_future(extender.run())
        await until(extender.ready)
        counts = controller._rejections._counts
        places = []
        for index in range(20):
            places.append(await place(harness, extender, f"ci-{index}"))
            await until(lambda: len(counts.of("black")) == places.count("black"))
            if places.count("black") >= 3:
                await until(lambda: said(harness, "black").get("status") == "True")
                await until(
                    lambda: (
                        len(json.loads(extender.filter(names_body(EVERYWHERE, wanted("x"))))["NodeNames"])
                        == 1 + verdict
                    )
                )
        work.cancel()
    assert places == ["black"] * 3 + ["well"] * 17
    assert said(harness, "black")["reason"] == WORD
    assert said(harness, "black")["message"].startswith("rejected 3 Pods of 3 owners within 10 minutes")
    assert said(harness, "well") == {}


async def test_the_condition_outlives_the_pods_and_the_leader(harness: ControllerHarness) -> None:
    """Three Pods are rejected and deleted; the next leader counts none, and the Condition still says what was."""
    await harness.node("black")
    async with running(harness):
        for name in "abc":
            await harness.client.create(PODS, wanted(name, "black"), namespace="default")
            status = {"phase": "Failed", "reason": WORD, "startTime": stamp(now())}
            await harness.client.patch(PODS, name, {"status": status}, namespace="default", subresource="status")
        await until(lambda: said(harness, "black").get("status") == "True")
    for name in "abc":
        await harness.client.delete(PODS, name, namespace="default")
    async with running(harness, "two") as controller:
        await until(lambda: controller.ready() and controller._leader.is_leader)
        await harness.quiet()
        assert controller._rejections._counts.of("black") == []
        assert said(harness, "black")["status"] == "True"


async def test_half_an_hour_later_it_is_over(harness: ControllerHarness) -> None:
    await harness.node("black")
    await harness.condition("black", "True", PODS_REJECTED, since=now() - timedelta(minutes=31))
    async with running(harness):
        await until(lambda: said(harness, "black")["status"] == "False")
    assert said(harness, "black")["reason"] == "NoPodsRejected"


async def test_one_owner_and_a_daemonset_are_no_black_hole(harness: ControllerHarness) -> None:
    """Nine Pods of one owner, and one of each of three DaemonSets: these have no other node to go to."""
    await harness.node("black")
    async with running(harness) as controller:
        for index in range(12):
            pod = wanted(f"p{index}", "black")
            owner = pod["metadata"]["ownerReferences"][0]
            owner["uid"], owner["kind"] = ("one", "Job") if index < 9 else (f"ds-{index}", "DaemonSet")
            await harness.client.create(PODS, pod, namespace="default")
            status = {"phase": "Failed", "reason": WORD, "startTime": stamp(now())}
            await harness.client.patch(PODS, f"p{index}", {"status": status}, namespace="default", subresource="status")
        await until(lambda: len(controller._rejections._counts.of("black")) == 9)
        await harness.quiet()
    assert said(harness, "black") == {}


async def test_a_tenant_cannot_have_a_node_repaired_on_which_others_work(harness: ControllerHarness) -> None:
    """Four Pods of team-a that name the node themselves, and are rejected; a Pod of team-b works there with one GPU."""
    await harness.node("black")
    for team in ("team-a", "team-b"):
        await harness.client.create(NAMESPACES, {"metadata": {"name": team}})
    await harness.client.create(PODS, wanted("victim", "black", "team-b"), namespace="team-b")
    async with running(harness) as controller:
        await until(lambda: controller._rejections._work.of_others("black", "team-a"))
        for name in "abcd":
            await harness.client.create(PODS, wanted(name, "black", "team-a"), namespace="team-a")
            status = {"phase": "Failed", "reason": WORD, "startTime": stamp(now())}
            await harness.client.patch(PODS, name, {"status": status}, namespace="team-a", subresource="status")
        await until(lambda: said(harness, "black").get("reason") == "OnlyPodsOfOneNamespace")
        assert said(harness, "black")["status"] == "False"
        assert said(harness, "black")["message"].startswith("only Pods of namespace team-a were rejected")


def test_an_owner_is_one_of_its_namespace_whatever_uid_a_pod_of_another_calls_its_own() -> None:
    """Otherwise a tenant whose Pods three nodes reject takes the Pods of somebody else's Job out of the count."""
    owner = OwnerReference(kind="Job", name="train", uid="of-team-b", controller=True)

    def of(namespace: str) -> Rejection:
        meta = rejected_pods.RejectedPodMeta(namespace=namespace, uid="pod", owner_references=(owner,))
        return rejected_pods.rejection(
            rejected_pods.RejectedPod(
                metadata=meta,
                spec=PodSpec(node_name="n"),
                status=rejected_pods.RejectedPodStatus(phase="Failed", reason=WORD),
            )
        )

    assert (of("team-a").owner, of("team-b").owner) == ("team-a/of-team-b", "team-b/of-team-b")


@pytest.mark.slow
def test_thousands_of_rejected_pods_of_a_node_are_forgotten_one_by_one_without_a_look_at_all_of_them() -> None:
    """12,000: about so many Failed Pods Kubernetes keeps. Each comparison of two of them is counted."""
    compared = 0

    class Counted(Rejection):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = Rejection.__hash__

    pods, many = Informer(), [Counted("n1", f"team-a/{index}", WORD, at(0), "team-a") for index in range(12_000)]
    counts = RejectionCounts(pods)
    for each in many:
        pods.moved(None, each)
    for each in reversed(many):
        pods.moved(each, None)
    assert counts.nodes() == ()
    assert compared < 12 * 12_000


class Informer:
    """One whose changes a test tells."""

    def on_view(self, moved) -> None:
        self.moved = moved

    on_change = on_view

    def settle(self) -> None:
        """Nothing waits."""


def test_rejections_are_counted_by_node_and_by_owner_and_taken_off_again() -> None:
    pods = Informer()
    counts = RejectionCounts(pods)
    first, second = Rejection("n1", "a", WORD, at(0)), Rejection("n2", "a", WORD, at(0))
    pods.moved(None, first)
    pods.moved(None, second)
    assert (counts.of("n1"), counts.nodes_of("a", at(1)), set(counts.nodes())) == ([first], 2, {"n1", "n2"})
    pods.moved(first, None)
    pods.moved(second, Rejection())
    assert (counts.of("n1"), counts.nodes_of("a", at(1)), counts.nodes()) == ([], 0, ())


def test_nodes_that_rejected_pods_of_an_owner_days_ago_do_not_hide_the_node_that_does_now() -> None:
    """The Pods that failed are kept: nobody deletes them before there are thousands in the cluster."""
    pods = Informer()
    counts = RejectionCounts(pods)
    for node, minute, many in (("n1", 0, 10), ("n2", -25 * 60, 1), ("n3", -25 * 60, 1), ("n4", -25 * 60, 1)):
        for _ in range(many):
            pods.moved(None, Rejection(node, "a", WORD, at(minute), "team"))
    pods.moved(None, Rejection("n5", "a", WORD, None, "team"))
    nodes_of = partial(counts.nodes_of, now=at(1))
    assert judge(counts.of("n1"), nodes_of, None, at(1)).status is Status.TRUE
    for node in ("n2", "n3"):
        pods.moved(None, Rejection(node, "a", WORD, at(-60), "team"))
    assert judge(counts.of("n1"), nodes_of, None, at(1)).status is Status.FALSE, "the Pod is to blame"


def test_whose_pods_work_on_a_node_is_counted_without_daemonsets_and_the_cluster_itself() -> None:
    pods = Informer()
    work, pod = WorkCounts(pods, ("kube-system",)), PodHolding("n1", cpu=100)
    for key, holding in (("a/1", pod), ("a/2", pod), ("b/1", replace(pod, daemon=True)), ("kube-system/1", pod)):
        pods.moved(key, None, holding)
    assert (work.of_others("n1", "a"), work.of_others("n1", "b"), work.of_others("n2", "b")) == (False, True, False)
    pods.moved("a/1", pod, None)
    assert work.of_others("n1", "b")
    pods.moved("a/2", pod, PodHolding())
    assert not work.of_others("n1", "b")
