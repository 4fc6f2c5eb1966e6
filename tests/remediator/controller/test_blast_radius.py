"""Before a start: what it would end, in the case, in `explain` and, above the limit of a policy, as a hold."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM, Clock
from remediator.controller import blast_looks
from remediator.controller.blast_looks import BlastLooks, look
from remediator.controller.case_view import case_view
from remediator.controller.explain import explain, look_at, snapshot
from remediator.controller.pending import PendingAdmissions
from remediator.controller.records import Records
from remediator.core import blast_radius, names
from remediator.core.breaker import Breaker
from remediator.core.case import BlastRadius, Phase
from remediator.core.case_table import CaseStep
from remediator.core.guard import FleetContext
from remediator.core.policy import BlastLimit
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.metrics import REGISTRY
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.plain import PODS
from tests.builders import a_case, a_node, a_policy, at
from tests.harness.controller import DIAGNOSED, Answer, now, running, stamp, until
from tests.harness.kinds import POLICIES
from tests.harness.replica import at_work, empty_cache

ALICE = "alice@example.com"


def a_pod(name, node, gpus, labels=None, hours=10, claims=False, **annotations):
    """A Pod that runs since so many hours and a minute, and holds so many GPUs."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "train", "resources": resources}]}
    spec |= {"resourceClaims": [{"name": "gpu"}]} if claims else {}
    notes = {f"remediator.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    meta = {"name": name, "labels": labels or {}, "annotations": notes}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running", "startTime": stamp(begun(hours))}}


def begun(hours):
    return now() - timedelta(hours=hours, minutes=1)


async def run(client, *pods, namespace="default"):
    for pod in pods:
        await client.create(PODS, pod, namespace=namespace)
        await client.patch(
            PODS, pod["metadata"]["name"], {"status": pod["status"]}, namespace=namespace, subresource="status"
        )


async def empty(harness, node):
    """What a drain does: the Pods of users leave the node."""
    for pod in harness.all(PODS):
        if pod["spec"].get("nodeName") == node and pod["metadata"]["namespace"] == "default":
            path = PODS.path(pod["metadata"]["name"], "default")
            await harness.client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')


@pytest.fixture(name="harness")
def draining(harness):
    """A harness whose drains let Pods go."""
    harness.answer(names.DRAIN_TEMPLATE, Answer(message="no pods left", does=empty))
    return harness


JOBSET = {"jobset.sigs.k8s.io/jobset-name": "train"}


def gang(labels=JOBSET, count=4):
    """A gang of 8 GPUs on each of so many nodes, for ten hours: 321 GPU-hours on four."""
    return [a_pod(f"train-{number}", f"gpu-{number}", 8, labels) for number in range(1, count + 1)]


def status(harness):
    return harness.cases("gpu-1")[-1]["status"]


def without_seconds(radius):
    return {key: value for key, value in radius.items() if key not in ("at", "largest")}


async def explained(harness):
    cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
    await look_at(cache, harness.client, "gpu-1", SYSTEM.now())
    return [line.strip() for line in explain(cache, cache.nodes.get("gpu-1"), Breaker(), SYSTEM.now())]


# --- with the whole controller ---------------------------------------------------------------------------------------


async def test_a_start_shows_the_4_nodes_and_321_gpu_hours_that_it_ends_and_is_counted(harness):
    await run(harness.client, *gang())
    await harness.policy()
    await harness.node("gpu-1", "True")
    before = counted()
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    radius = status(harness)["blastRadius"]
    assert without_seconds(radius) == {"pods": 1, "gpusOnNode": 8, "jobs": 1, "gpus": 32, "gpuHours": 321}
    (job,) = radius["largest"]
    assert (job["kind"], job["namespace"], job["name"], job["gpusOnNode"], job["gpus"], job["gpuHours"]) == (
        ("JobSet", "default", "train", 8, 32, 321)
    )
    assert counted() == (before[0] + 1, before[1] + 321)


def counted():
    name = "remediator_blast_radius_gpu_hours"
    return REGISTRY.get_sample_value(f"{name}_count") or 0, REGISTRY.get_sample_value(f"{name}_sum") or 0


async def test_above_its_limit_a_case_claims_nothing_until_a_person_approves_it(harness):
    await run(harness.client, *gang())
    await harness.policy(maxBlastRadius={"jobs": 5, "gpuHours": 300}, severity="Critical")
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["BlastRadius"])
        await harness.quiet()
        assert (harness.phase("gpu-1"), harness.ran, harness.claims(), harness.taints("gpu-1")) == (
            "Held",
            [],
            [],
            [],
        )
        (block,) = status(harness)["blockedBy"]
        assert block["message"].startswith("1 job on 32 GPUs, 321 GPU-hours (JobSet default/train: 8 of its 32 GPUs")
        assert "; the policy lets at most 5 jobs and 300 GPU-hours end; set spec.approved" in block["message"]
        lines = await explained(harness)
        assert any(line.startswith("held: BlastRadius: 1 job on 32 GPUs, 321 GPU-hours") for line in lines)
        assert any(line.startswith("its start would end: 1 job on 32 GPUs, 321 GPU-hours") for line in lines)
        await harness.edit_case("gpu-1", approved=True, approvedBy=ALICE)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    claimed = next(entry for entry in status(harness)["timeline"] if entry["reason"] == "Claimed")
    assert claimed["message"].endswith(f"; approved by {ALICE}")
    assert status(harness)["blastRadius"]["gpuHours"] == 321


async def test_when_the_jobs_have_ended_a_held_case_goes_on_by_itself(harness, monkeypatch):
    monkeypatch.setattr("remediator.controller.waits.LOOK_AGAIN", 0.1)
    monkeypatch.setattr(blast_radius, "VALID", timedelta(seconds=1))
    await run(harness.client, *gang(count=1))
    await harness.policy(maxBlastRadius={"jobs": 0})
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["BlastRadius"])
        ended = {"status": {"phase": "Succeeded"}}
        await harness.client.patch(PODS, "train-1", ended, namespace="default", subresource="status")
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_a_higher_limit_lets_a_held_case_go_on(harness):
    await run(harness.client, *gang())
    await harness.policy(maxBlastRadius={"gpuHours": 320})
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["BlastRadius"])
        await harness.change(POLICIES, "gpu-lost", spec={"maxBlastRadius": {"gpuHours": 330}})
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_a_limit_that_is_not_reached_holds_nothing(harness):
    await run(harness.client, *gang())
    await harness.policy(maxBlastRadius={"jobs": 1, "gpuHours": 330})
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert "BlastRadius" not in harness.story("gpu-1")


@pytest.mark.parametrize("limit", [{}, {"maxBlastRadius": {"jobs": 5}}], ids=["no limit", "a limit"])
async def test_gpus_that_nobody_can_count_hold_a_case_where_a_limit_is_set_and_are_shown_as_unknown(harness, limit):
    await run(harness.client, a_pod("infer", "gpu-1", 0, claims=True))
    await harness.policy(**limit)
    await harness.node("gpu-1", "True")
    async with running(harness):
        if limit:
            await until(lambda: harness.reasons("gpu-1") == ["BlastRadiusUnknown"])
            assert (harness.ran, harness.claims()) == ([], [])
        else:
            await until(lambda: harness.ended("gpu-1", "Recovered"))
        radius = status(harness)["blastRadius"]
        assert without_seconds(radius) == {"unknown": blast_radius.UNCOUNTED.format("default/infer")}


async def test_who_is_asked_for_an_approval_is_shown_what_it_would_end(harness):
    await run(harness.client, *gang())
    await harness.policy(approval="Required")
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["ApprovalNeeded"] and status(harness).get("blastRadius"))
        assert status(harness)["blastRadius"]["gpuHours"] == 321
        writes = status(harness)["blastRadius"]["at"]
        await harness.quiet()
        assert status(harness)["blastRadius"]["at"] == writes


async def test_a_job_that_came_before_the_claim_was_seen_holds_the_first_attempt(harness):
    async def begin(harness, node):
        await run(harness.client, *gang(count=1))

    harness.answer(names.DIAGNOSTICS_TEMPLATE, replace(DIAGNOSED, does=begin))
    await harness.policy(maxBlastRadius={"jobs": 0})
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["BlastRadius"])
        assert (harness.phase("gpu-1"), harness.claims()) == ("Draining", ["gpu-1"])
        assert harness.ran == [f"{names.DIAGNOSTICS_TEMPLATE} gpu-1"]
        await harness.edit_case("gpu-1", approved=True)
        await until(lambda: harness.ended("gpu-1", "Recovered"))


# --- looks -----------------------------------------------------------------------------------------------------------


class Lists:
    """A client on an embedded server that notes what was listed; `refused`: nothing is."""

    def __init__(self):
        self.client, self.asked, self.refused = Client(EmbeddedServer().transport()), [], False

    async def pages(self, kind, namespace, labels, fields, limit):
        self.asked.append((namespace, labels or fields))
        if self.refused:
            raise errors.Unavailable(503, "", "away")
        async for page in self.client.pages(kind, namespace, labels, fields, limit):
            yield page


async def seen(lists):
    return await look(lists, "gpu-1", names.OPERATIONS_NAMESPACE, now())


async def test_all_jobs_of_one_label_and_namespace_are_read_by_one_list():
    lists = Lists()
    jobs = [a_pod(f"pod-{number}", "gpu-1", 1, {"job-name": f"job-{number}"}) for number in range(8)]
    await run(lists.client, *jobs, *gang(), a_pod("alone", "gpu-1", 1))
    await run(lists.client, a_pod("other", "gpu-2", 1, {"job-name": "job-1"}), namespace="kube-public")
    radius = await seen(lists)
    assert (radius.count, radius.pods, radius.here, radius.gpus) == (10, 10, 17, 41)
    values = ",".join(f"job-{number}" for number in range(8))
    assert lists.asked == [
        ("", "spec.nodeName=gpu-1"),
        ("default", f"job-name in ({values})"),
        ("default", "jobset.sigs.k8s.io/jobset-name in (train)"),
    ]


async def test_a_checkpoint_2_hours_ago_leaves_65_of_321_gpu_hours():
    lists = Lists()
    saved = stamp(begun(2))
    pods = [
        a_pod(f"train-{number}", f"gpu-{number}", 8, JOBSET, checkpoint="10m", checkpoint_done=saved)
        for number in range(1, 5)
    ]
    await run(lists.client, *pods)
    assert (await seen(lists)).gpu_hours == 65


async def test_a_group_that_no_label_names_is_found_among_all_pods_of_its_namespace():
    lists = Lists()
    pods = [a_pod(f"train-{number}", f"gpu-{number}", 8) for number in (1, 2)]
    for pod in pods:
        pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "train"}
    await run(lists.client, *pods, a_pod("alone", "gpu-3", 8))
    radius = await seen(lists)
    assert [(str(job), job.gpus) for job in radius.jobs] == [("Volcano group default/train", 16)]
    assert lists.asked[1][0] == "default"


async def test_with_65_jobs_or_too_many_pods_nobody_can_tell(monkeypatch):
    lists = Lists()
    await run(lists.client, *(a_pod(f"pod-{n}", "gpu-1", 0, {"job-name": f"job-{n}"}) for n in range(65)))
    assert (await seen(lists)).unknown == (
        "65 jobs have Pods on the node, and at most 64 are looked at; wait for some to end: "
        "the node is looked at again each minute"
    )
    monkeypatch.setattr(blast_looks, "MOST_PODS", 64)
    assert (await seen(lists)).unknown == (
        "more than 64 Pods would have to be read; wait for some of these jobs to end, or give their Pods a label that "
        "names the job where only an annotation or a PodGroup does: the node is looked at again each minute"
    )


async def test_65_jobs_that_hold_no_gpus_are_not_followed():
    """All Pods of a batch Job are alike: those elsewhere hold none either."""
    lists = Lists()
    pods = [a_pod(f"pod-{n}", "gpu-1", 0, {"job-name": f"job-{n}"}) for n in range(65)]
    for number, pod in enumerate(pods):
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number}", "uid": f"uid-{number}"}
        pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    await run(lists.client, *pods, *gang())
    assert [(str(job), job.gpus) for job in (await seen(lists)).jobs] == [("JobSet default/train", 32)]
    assert len(lists.asked) == 2


async def test_the_pods_of_all_lists_of_a_look_are_limited_together(monkeypatch):
    lists = Lists()
    await run(
        lists.client, *gang(), a_pod("a", "gpu-1", 1, {"job-name": "a"}), a_pod("b", "gpu-2", 1, {"job-name": "a"})
    )
    monkeypatch.setattr(blast_looks, "MOST_PODS", 8)
    assert (await seen(lists)).gpus == 34, "2 on the node, 4 of the gang, 2 of the Job"
    monkeypatch.setattr(blast_looks, "MOST_PODS", 7)
    assert (await seen(lists)).unknown.startswith("more than 7 Pods would have to be read; ")


async def test_a_namespace_of_which_all_pods_are_read_is_read_once():
    lists = Lists()
    group = a_pod("group", "gpu-1", 8)
    group["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "group"}
    await run(lists.client, *gang(), group, a_pod("job", "gpu-1", 1, {"job-name": "job"}))
    assert (await seen(lists)).gpus == 41
    assert [namespace for namespace, _ in lists.asked] == ["", "default"]


async def late_look(monkeypatch, meanwhile):
    """A look at gpu-1 that takes 11 s; the admission pass has given it up, and asks about nothing now."""
    seconds, told, answered = [0.0], [], asyncio.Event()
    clock = Clock(lambda: at(0, seconds[0]), lambda: seconds[0])
    looks = BlastLooks(empty_cache(), Lists(), clock, lambda: told.append(seconds[0]))

    async def slow(client, node, operations_namespace, when):
        await answered.wait()
        return BlastRadius(when, count=1)

    monkeypatch.setattr(blast_looks, "look", slow)
    looks.want(["gpu-1"])
    task = asyncio.create_task(looks._look("gpu-1"))
    await asyncio.sleep(0)
    seconds[0] = 11.0
    looks.give_up_late()
    looks.want([])
    meanwhile(looks)
    answered.set()
    await task
    return looks.radius("gpu-1", SYSTEM.now()), told


def test_a_start_keeps_the_look_that_lets_it_through_though_its_view_is_older():
    cache, case = empty_cache(), a_case("case-1", phase=Phase.DRAINING, started=at(0))
    cache.nodes.note("gpu-1", a_node("gpu-1"))
    cache.policies.note("gpu-lost", a_policy(max_blast_radius=BlastLimit(jobs=1)))
    before = case_view(cache, case, at(1))
    cache.blast["gpu-1"] = BlastRadius(at(1), count=1)
    pending = PendingAdmissions(cache, Records(), BlastLooks(cache, Lists(), SYSTEM, lambda: None))
    asked = pending.of(before, CaseStep.START, FleetContext(frozenset(), False, frozenset()), at(1))
    assert (before.blast, asked.view.blast) == (None, BlastRadius(at(1), count=1))


async def test_a_look_that_took_11_seconds_is_kept_and_told(monkeypatch):
    radius, told = await late_look(monkeypatch, lambda looks: None)
    assert (radius, told) == (BlastRadius(at(0), count=1), [11.0])


@pytest.mark.parametrize("meanwhile", [lambda looks: looks.forget("gpu-1"), lambda looks: looks.clear()])
async def test_a_look_that_ends_after_the_claim_of_its_node_or_under_another_leader_is_not_kept(monkeypatch, meanwhile):
    assert await late_look(monkeypatch, meanwhile) == (None, [])


async def test_where_the_api_server_does_not_answer_nobody_can_tell():
    lists = Lists()
    lists.refused = True
    assert (await seen(lists)).unknown == (
        "Pods could not be listed: 503 : away; look at the API server, and whether the controller may list Pods: "
        "the node is looked at again each minute"
    )


async def test_a_look_that_takes_10_seconds_is_not_waited_for_and_still_counts_when_it_comes():
    seconds, told, lists = [0.0], [], Lists()
    cache = empty_cache()
    clock = Clock(lambda: at(0, seconds[0]), lambda: seconds[0])
    looks = BlastLooks(cache, lists, clock, lambda: told.append(seconds[0]))
    looks.want(["gpu-1"])
    seconds[0] = 9.9
    looks.want(["gpu-1"])
    looks.give_up_late()
    assert looks.radius("gpu-1", SYSTEM.now()) is None
    seconds[0] = 10.0
    looks.give_up_late()
    assert looks.radius("gpu-1", SYSTEM.now()).unknown == (
        "its Pods were not listed within 10 s; look at the load of the API server: the list counts when it comes"
    )
    looks.want(["gpu-1"])
    async with at_work(looks.queue.run(clock)):
        await until(lambda: not looks.radius("gpu-1", SYSTEM.now()).unknown)
    assert told == [10.0]


async def test_a_node_that_nobody_asks_about_any_more_is_not_looked_at():
    lists, cache = Lists(), empty_cache()
    looks = BlastLooks(cache, lists, SYSTEM, lambda: None)
    looks.want(["gpu-1", "gpu-2"])
    looks.want(["gpu-2"])
    async with at_work(looks.queue.run(SYSTEM)):
        looks.queue.add("gpu-1")
        await until(lambda: looks.radius("gpu-2", SYSTEM.now()))
        await asyncio.sleep(0)
    assert lists.asked == [("", "spec.nodeName=gpu-2")]


async def test_what_was_seen_an_hour_ago_is_forgotten_and_all_of_it_where_another_replica_leads():
    seconds, lists = [0.0], Lists()
    clock = Clock(lambda: at(0, seconds[0]), lambda: seconds[0])
    looks = BlastLooks(empty_cache(), lists, clock, lambda: None)
    looks.want(["gpu-1"])
    await looks._look("gpu-1")
    seconds[0] = 3599
    looks.give_up_late()
    assert looks.radius("gpu-1", SYSTEM.now())
    seconds[0] = 3600
    looks.give_up_late()
    assert looks.radius("gpu-1", SYSTEM.now()) is None
