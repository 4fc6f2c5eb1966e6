"""Passes by a watch of Pods: they list none, find what passes by pages find, and take nothing by what it tells late."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from remediator.core import names
from remediator.core.idle_policy import Finding, JanitorMode
from remediator.janitor.decide import JanitorReason
from remediator.janitor.idle import reader
from remediator.janitor.idle.one_pass import IdlePass
from remediator.janitor.idle.policy_report import PolicyReport
from remediator.janitor.idle.sources import Sources
from remediator.janitor.one_pass import OnePass
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.pass_report import Report
from remediator.janitor.pods import MARKS, READ, PodWatch
from remediator.janitor.run import BEHIND, Janitor
from remediator.janitor.selection import Selection
from remediator.janitor.settings import JanitorSettings, Terms
from remediator.kube.api.janitor_pods import JanitorPod
from remediator.kube.wire import errors
from remediator.kube.wire.times import stamp
from tests.harness.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS, Object
from tests.remediator.janitor.idle_place import HOUR, JOBS, SETS, STATEFUL, Cluster, became, reference
from tests.remediator.janitor.place import ENFORCE, NOW, Place, lines, owned_by
from tests.remediator.janitor.test_run import clock, running

LIST, DRY = "/api/v1/pods", JanitorSettings()
TERM = {"state": {"terminated": {"exitCode": 1, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "soon"}}}


@contextlib.asynccontextmanager
async def watching(place: Place, settings: JanitorSettings = DRY) -> AsyncIterator[PodWatch]:
    """A watch that has told of all Pods."""
    pods = PodWatch(place.client, settings)
    work = asyncio.create_task(pods.run())
    await pods.listed()
    try:
        yield pods
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


def listed(place: Place, path: str = LIST) -> int:
    """How many pages of Pods were read since the last pass by this helper's place, watches not counted."""
    return sum(
        method == "GET" and asked == path and ("watch", "true") not in query
        for method, asked, query, *_ in place.transport.asked
    )


async def a_pass(place: Place, pods: PodWatch | None, mode: JanitorMode = ENFORCE) -> Report:
    place.transport.asked.clear()
    return await OnePass(place.client, JanitorSettings(mode), place.writer, NOW, pods=pods).run()


async def an_idle_pass(at: Cluster, pods: PodWatch | None, hours: float = 0) -> list[PolicyReport]:
    settings, now = JanitorSettings(ENFORCE), NOW + hours * HOUR
    return await IdlePass(at.client, settings, Sources(at.asked), at.writer, now, pods=pods).run()


@pytest.mark.looptime(start=1)
async def test_passes_between_changes_list_no_pods_and_delete_what_the_watch_tells_of() -> None:
    at = Cluster()
    await at.policy(mode="DryRun")
    await at.gpus("p")
    await at.pod("a", ttl="10h10m")
    janitor = Janitor(at.client, JanitorSettings(ENFORCE, interval=60), clock(), sources=Sources(at.asked))
    async with running(janitor):
        await asyncio.sleep(1300)  # 22 passes, of which 3 look at IdlePolicies
        await at.pod("b", ttl="1h")
        await asyncio.sleep(61)
    assert await at.names(PODS) == {"p"}
    assert listed(at) == 0
    assert sum(path.endswith("/idlepolicies") for _, path, *_ in at.transport.asked) == 3
    assert janitor.last is not None
    assert janitor.last.problems == []
    assert [line.what for line in janitor.last.idle[0].lines] == ["pods/team/p"]


async def of_all_sorts(at: Cluster) -> None:
    """Pods that each part of a pass treats in another way."""
    await at.serve(JOBS, SETS, STATEFUL, DEPLOYMENTS)
    web = await at.make(DEPLOYMENTS, "web", spec={})
    hashed = await at.make(SETS, "web-1", spec={}, metadata={"ownerReferences": [owned_by(web)]})
    job = await at.make(JOBS, "train", spec={}, ttl="9h")
    await at.pod("bare")
    await at.pod("over", ttl="1h")
    await at.pod("waits", ttl="30d")
    await at.pod("expired", expires="2026-01-09")
    await at.pod("odd", ttl="90")
    await at.pod("kept", ttl="1h", keep="forever")
    await at.pod("made", ttl="1h", metadata={"ownerReferences": [owned_by(hashed)]})
    await at.pod("system", "kube-system", ttl="1h")
    await at.pod("mirror", ttl="1h", annotations={names.MIRROR: "x"})
    await at.pod("deployed", ttl="9h", annotations={"deployed-at": stamp(NOW - HOUR)})
    await at.pod("ending", ttl="1h", metadata={"finalizers": ["remediator.dev/x"]})
    await at.admin.delete(PODS, "ending", namespace="team")
    for name, phase in (("ended", "Succeeded"), ("ended-over", "Failed")):
        await at.pod(name, **({"ttl": "1h"} if "over" in name else {}))
        await at.admin.patch(PODS, name, {"status": {"phase": phase}}, namespace="team", subresource="status")
    await at.gpus("gpus-1", 8, owner=job, keep="2026-01-11")
    await at.gpus("gpus-2", 8, owner=job)
    loops = {"containerStatuses": [{"name": "main", "restartCount": 12, "lastState": TERM["state"]}]}
    await at.admin.patch(PODS, "gpus-2", {"status": loops}, namespace="team", subresource="status")
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    waits = {"conditions": [said | {"lastTransitionTime": "2026-01-09T00:00:00Z"}]}
    await at.admin.patch(PODS, "bare", {"status": waits}, namespace="team", subresource="status")


@pytest.mark.looptime(start=1)
async def test_by_a_watch_a_pass_says_word_for_word_what_a_pass_by_pages_says() -> None:
    at = Cluster()
    await of_all_sorts(at)
    settings = JanitorSettings(terms=Terms(deployment_time="deployed-at"))
    async with watching(at, settings) as pods:
        by_pages, by_watch = [
            await OnePass(at.client, settings, at.writer, NOW, pods=known).run() for known in (None, pods)
        ]
        assert listed(at) == 1, "by the pass by pages"
    assert list(by_watch.rendered()) == list(by_pages.rendered())
    assert by_watch.counts == by_pages.counts
    assert [line.what for line in by_watch.lines[JanitorOutcome.DELETED]] == [
        "pods/team/expired", "pods/team/ended-over", "pods/team/mirror", "pods/team/over"
    ]  # fmt: skip


@pytest.mark.looptime(start=1)
async def test_by_a_watch_idle_policies_hold_what_they_hold_by_pages() -> None:
    at = Cluster()
    await of_all_sorts(at)
    for finds in Finding:
        await at.policy(
            finds.lower(), finds=finds, namespaces=["*"], **({"alert": "PodIdle"} if finds is Finding.ALERT else {})
        )
    policies, problems = await reader.policies(at.client)
    assert (len(policies), problems) == (5, [])
    alerted = {("team", "over")}
    async with watching(at) as pods:
        by_pages, by_watch = [
            await reader.holdings(at.client, policies, DRY.selection, alerted, known) for known in (None, pods)
        ]
        elsewhere = await reader.holdings(at.client, policies, DRY.selection, alerted, pods, "default")
    of = [{finds: {each.uid: each for each in held} for finds, held in both.items()} for both in (by_pages, by_watch)]
    assert {finds: len(held) for finds, held in of[0].items()} == {
        Finding.ALERT: 1, Finding.IDLE_CPU: 8, Finding.IDLE_GPUS: 1, Finding.PENDING: 8, Finding.RESTARTS: 1
    }  # fmt: skip
    for finds, held in of[0].items():
        for uid, holding in held.items():
            watched = of[1][finds].pop(uid)
            assert [bare(pod) for pod in watched.pods] == [bare(pod) for pod in holding.pods]
            assert replace(watched, pods=(), annotations={}) == replace(holding, pods=(), annotations={})
        assert of[1][finds] == {}
    assert not any(elsewhere.values()), "in that namespace is none"


def bare(pod: Any) -> Any:
    """With the annotations alone of which IdlePolicies know."""
    return pod._replace(annotations={key: text for key, text in pod.annotations.items() if key in reader.READ})


def cut(at: Place) -> None:
    at.server.faults.cut_watches()


def expire(at: Place) -> None:
    at.server.faults.drop_history()
    at.server.faults.cut_watches()


def refuse(at: Place) -> None:
    at.server.faults.refuse(500, times=3, when=lambda asked: asked.path == LIST)
    at.server.faults.cut_watches()


@pytest.mark.looptime(start=1)
@pytest.mark.parametrize("lose", [cut, expire, refuse])
async def test_what_changes_while_the_watch_is_lost_is_known_once_it_is_back(lose: Callable[[Place], None]) -> None:
    at = Place()
    for name in ("stays", "ends", "changes"):
        await at.pod(name, ttl="30d")
    async with watching(at) as pods:
        lose(at)
        await at.admin.delete(PODS, "ends", namespace="team")
        await at.annotate(PODS, "changes", **{names.JANITOR_TTL: "1h"})
        await at.pod("comes", ttl="1h")
        if lose is expire:
            at.server.faults.drop_history()
        await asyncio.sleep(100)  # back-offs
        report = await a_pass(at, pods, JanitorMode.DRY_RUN)
        assert pods.whole()
        assert listed(at) == 0
    assert lines(report, JanitorOutcome.DELETED) == [
        ("pods/team/changes", "TimeToLiveExpired"),
        ("pods/team/comes", "TimeToLiveExpired"),
    ]
    assert report.waiting == 1
    assert report.counts == (await a_pass(at, None, JanitorMode.DRY_RUN)).counts


@pytest.mark.looptime(start=1)
async def test_while_the_watch_says_nothing_for_150_s_pods_are_listed_and_the_report_says_so() -> None:
    at = Place()
    await at.pod("a", ttl="10h10m")
    janitor = Janitor(at.client, JanitorSettings(ENFORCE, interval=60), clock())
    async with running(janitor):
        await asyncio.sleep(61)
        at.server.faults.silence()
        await asyncio.sleep(120)
        assert (listed(at), janitor.last and janitor.last.problems) == (0, [])
        await at.pod("b", ttl="1h")
        await asyncio.sleep(120)
        assert (listed(at), janitor.last and janitor.last.problems) == (2, [BEHIND]), "in two passes"
        assert await at.names(PODS) == {"a"}
        at.server.faults.silence(silent=False)
        await asyncio.sleep(180)
        pages = listed(at)
        await asyncio.sleep(180)
        assert (listed(at), janitor.last and janitor.last.problems) == (pages, [])


@pytest.mark.looptime(start=1)
async def test_without_the_right_to_watch_the_first_pass_comes_after_30_s_by_pages_and_says_what_is_missing() -> None:
    at = Place()
    await at.pod("a", ttl="1h")
    inner = at.transport.stream

    def refused(path: str, **rest: Any) -> Any:
        raise errors.Forbidden(403, "Forbidden", "pods is forbidden: cannot watch")

    at.transport.stream = refused  # type: ignore[method-assign]
    janitor = Janitor(at.client, JanitorSettings(ENFORCE, interval=60), clock())
    async with running(janitor):
        await asyncio.sleep(29)
        assert janitor.last is None
        await asyncio.sleep(2)
        assert await at.names(PODS) == set()
        assert janitor.last is not None
        assert janitor.last.problems == [BEHIND]
        assert "watch" in BEHIND
        at.transport.stream = inner  # type: ignore[method-assign]
        await asyncio.sleep(180)
        assert janitor.last.problems == [], "a role that is applied later is used without a restart"


@pytest.mark.looptime(start=1)
async def test_where_one_pod_cannot_be_read_all_are_listed_until_it_can() -> None:
    at = Place()
    made = await at.pod("a")
    async with watching(at) as pods:
        odd = made | {"status": {"startTime": ["soon"]}}
        at.server.cluster.put("pods", odd)
        await asyncio.sleep(1)
        assert not pods.whole()
        await at.admin.delete(PODS, "a", namespace="team")
        await asyncio.sleep(1)
        assert pods.whole()


TEAM, OTHERS = Selection(include_namespaces=frozenset({"team"})), Selection(include_resources=frozenset({"configmaps"}))


@pytest.mark.looptime(start=1)
@pytest.mark.parametrize(("selection", "lists", "left"), [(TEAM, 2, set[str]()), (OTHERS, 1, {"a"})])
async def test_where_namespaces_are_named_or_pods_are_left_out_nothing_is_watched(
    selection: Selection, lists: int, left: set[str]
) -> None:
    at = Cluster()
    await at.policy(finds="Pending")  # which looks at Pods whatever TTLs are for
    await at.pod("a", ttl="1h")
    janitor = Janitor(at.client, JanitorSettings(ENFORCE, selection=selection), clock())
    async with running(janitor):
        await asyncio.sleep(1)
    assert await at.names(PODS) == left
    assert listed(at, "/api/v1/namespaces/team/pods") == lists
    assert not [asked for _, asked, query, *_ in at.transport.asked if ("watch", "true") in query]
    assert janitor.last is not None
    assert janitor.last.problems == []


@pytest.mark.looptime(start=1)
async def test_what_a_user_keeps_while_the_watch_is_silent_stays_and_so_does_what_makes_it() -> None:
    """By the watch both are over and nobody keeps them; what is read before each deletion says otherwise."""
    at = Place()
    config = await at.make(CONFIG_MAPS, "makes", ttl="1h")
    await at.make(CONFIG_MAPS, "makes-none", ttl="1h")
    await at.pod("over", ttl="1h")
    await at.pod("under", metadata={"ownerReferences": [owned_by(config)]})
    await at.pod("alone", ttl="1h")
    async with watching(at) as pods:
        at.server.faults.silence()
        for name in ("over", "under"):
            await at.annotate(PODS, name, **{names.KEEP_UNTIL: "forever"})
        report = await a_pass(at, pods)
        assert listed(at) == 0
        assert listed(at, "/api/v1/namespaces/team/pods") == 1, "once, for both that may own Pods"
    assert lines(report, JanitorOutcome.HELD) == [
        ("configmaps/team/makes", "OwnsKept"),
        ("pods/team/over", "KeptByUser"),
    ]
    assert await at.names(PODS) == {"over", "under"}
    assert await at.names(CONFIG_MAPS, "team") == {"makes"}


@pytest.mark.looptime(start=1)
@pytest.mark.parametrize("change", ["none", "a Pod comes that works", "its Pod is another", "a Pod comes without GPUs"])
async def test_a_job_is_suspended_only_where_a_list_shows_the_pods_that_the_watch_told_of(change: str) -> None:
    at = Cluster()
    await at.serve(JOBS)
    await at.policy(grace="1h")
    job = await at.make(JOBS, "train", spec={"suspend": False})
    await at.gpus("p", owner=job)
    async with watching(at) as pods:
        ((told,),) = [became(report) for report in await an_idle_pass(at, pods)]
        assert told[0] is JanitorOutcome.TOLD
        await asyncio.sleep(1)
        at.server.faults.silence()
        await meanwhile(at, job, change)
        at.transport.asked.clear()
        (report,) = await an_idle_pass(at, pods, hours=2)
        assert (listed(at), listed(at, "/api/v1/namespaces/team/pods")) == (0, 1)
    live = await at.admin.get(JOBS, "train", namespace="team")
    assert live["spec"]["suspend"] is (change == "none")
    assert report.count(JanitorOutcome.SUSPENDED) == (change == "none")


async def meanwhile(at: Cluster, job: Object, change: str) -> None:
    if change == "a Pod comes that works":
        await at.gpus("q", use=50, owner=job)
    if change == "a Pod comes without GPUs":
        await at.gpus("q", gpus=0, owner=job)
    if change == "its Pod is another":
        await at.admin.delete(PODS, "p", namespace="team")
        await at.pod("p", ago=0, metadata={"ownerReferences": [reference(job)]})


async def test_what_is_kept_of_each_pod_is_as_much_as_its_passes_need() -> None:
    """50,000 of them have 25 MiB, beside what the process has without any: 500 bytes each with what holds them."""
    at = Cluster()
    job = await at.make(CONFIG_MAPS, "a-job-with-a-name")
    labels = {"app": "train", "batch.kubernetes.io/job-name": "a-job-with-a-name", "owner": "alice"}
    await at.pod("a-job-with-a-name-x7k2p", labels=labels, metadata={"ownerReferences": [owned_by(job)]})
    await at.pod("ended", annotations={"x": "y"})
    await at.admin.patch(PODS, "ended", {"status": {"phase": "Failed"}}, namespace="team", subresource="status")
    async with watching(at) as pods:
        kept = {key: len(packed) for key, packed in pods._reflector.store.items()}
    assert kept.pop("team/ended") == 0
    assert 150 < kept["team/a-job-with-a-name-x7k2p"] < 350


TOO_MANY = {f"{number:05d}{58 * 'k'}": 63 * "v" for number in range(5_000)}  # 630 KB, as one Pod may have
LONG = 256_000 * "x"  # as long as annotations may be


@pytest.mark.parametrize(
    "written",
    [
        {"metadata": {"annotations": dict.fromkeys([*READ, *MARKS], LONG)}},
        {"metadata": {"labels": TOO_MANY}},
        {"metadata": {"ownerReferences": [{"kind": LONG, "name": LONG, "uid": LONG, "controller": True}]}},
        {"spec": {"schedulerName": LONG}},
    ],
    ids=["annotations", "labels", "owner", "scheduler"],
)
def test_of_a_pod_whose_author_writes_hundreds_of_kilobytes_4_kib_are_kept(written: dict[str, Any]) -> None:
    pod = {"metadata": {"name": "p", "namespace": "team", **written.pop("metadata", {})}, **written}
    wire = msgspec.convert(pod, JanitorPod)
    packed = PodWatch(Place().client, DRY)._packed(wire)
    assert len(packed) < 4096


@pytest.mark.looptime(start=1)
@pytest.mark.parametrize("by_watch", [True, False], ids=["by the watch", "by pages"])
async def test_a_pod_with_more_labels_than_are_kept_is_held_and_the_report_says_why(by_watch: bool) -> None:
    """Whether a policy is about it, nobody knows: its selector leaves out what has a label."""
    at = Cluster()
    await at.serve(JOBS, SETS, STATEFUL, DEPLOYMENTS)
    await at.policy(
        grace="1h", finds="Pending", selector={"matchExpressions": [{"key": "spared", "operator": "DoesNotExist"}]}
    )
    await at.pod("p", labels=TOO_MANY | {"spared": "yes"})
    await at.admin.patch(PODS, "p", {"status": {"phase": "Pending"}}, namespace="team", subresource="status")
    async with watching(at) as pods:
        (report,) = await an_idle_pass(at, pods if by_watch else None)
    assert became(report) == [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.CANNOT_TELL)]
    assert "p has more labels than anybody reads" in report.lines[0].message
    assert await at.names(PODS) == {"p"}
