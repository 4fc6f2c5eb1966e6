"""`remediator why` and `remediator what-if` against a server: on one screen, as JSON, and by their exit codes."""

import json
import time
from typing import Any

import pytest

from remediator.kube import api
from remediator.kube.wire.client import Kind
from remediator_sim.prometheus import success
from tests.harness.cluster import MemoryCluster
from tests.harness.kinds import NAMESPACES, NODES, PODS, Object
from tests.harness.prometheus import fake_prometheus
from tests.harness.scheduler import GPU, SchedulerHarness, node, pod
from tests.remediator.scheduler.shared.stand import node as card_node
from tests.remediator.scheduler.shared.stand import pod as card_pod
from tests.remediator.test_cli import beside, remediator

LEDGERS = Kind(api.GROUP, "v1alpha1", api.GPU_LEDGER.plural, "GpuLedger", Object)
WAITS = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}


async def cluster(**pods: dict[str, Any]) -> SchedulerHarness:
    """Two nodes of eight GPUs, one of them half full, and an unhealthy one."""
    harness = SchedulerHarness()
    await harness.prepare()
    for name, sick in (("gpu-1", "False"), ("gpu-2", "False"), ("gpu-3", "True")):
        await harness.add_node(name, GpuLost=sick)
    await harness.bind("half", "gpu-1", 4)
    for name, body in pods.items():
        await harness.client.create(PODS, body | {"metadata": body["metadata"] | {"name": name}}, namespace="default")
    return harness


async def asked(harness: MemoryCluster, *args: str) -> tuple[int, str, str]:
    async with harness.server.serve() as endpoint:
        return await beside(*args, "--kubeconfig", str(endpoint.kubeconfig))


async def test_a_pod_that_fits_nowhere_hears_why_by_class_with_numbers_and_remedies() -> None:
    harness = await cluster(big=pod(gpus=8))
    await harness.bind("one", "gpu-2", 1)
    await harness.client.patch(
        PODS, "big", {"status": {"conditions": [WAITS]}}, namespace="default", subresource="status"
    )
    code, out, err = await asked(harness, "why", "big")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        f"default/big requests 8 {GPU} and waits; 0 of 3 nodes take it",
        "    2 NoFreeGpus: node(s) with too few free GPUs (gpu-1, gpu-2)",
        f"      1 more {GPU} free on gpu-2, where 7 of 8 are; 11 {GPU} are free on all of them together",
        "    1 Unhealthy: node(s) found unhealthy by Remediator (gpu-3)",
        "      repair them: `remediator explain gpu-3` says what holds it; 1 of 1 would have room",
        "kube-scheduler says: 0/3 nodes are available",
        "health refuses 1 of 3 GPU nodes",
    ]


async def test_the_same_is_there_for_programs() -> None:
    code, out, _ = await asked(await cluster(job=pod(gpus=8)), "why", "default/job", "-o", "json")
    report = json.loads(out)
    assert (code, report["fits"], report["requests"]) == (0, 1, {GPU: 8})
    assert {each["reason"]: each["nodes"] for each in report["classes"]} == {
        "Fit": ["gpu-2"],
        "NoFreeGpus": ["gpu-1"],
        "Unhealthy": ["gpu-3"],
    }


RACK, JOBSET = "topology.kubernetes.io/rack", "jobset.sigs.k8s.io/jobset-name"


@pytest.mark.slow
async def test_a_pod_of_a_gang_hears_where_its_siblings_are_and_which_domain_it_prefers() -> None:
    member = pod(gpus=4)
    member["metadata"] |= {"labels": {JOBSET: "train"}, "annotations": {"remediator.dev/gang-size": "3"}}
    there = pod(gpus=2, at="gpu-2") | {"metadata": member["metadata"] | {"name": "there"}}
    harness = await cluster(first=member)
    for name in ("gpu-1", "gpu-2"):
        await harness.patch_node(name, {"metadata": {"labels": {RACK: "a"}}})
    code, out, err = await asked(harness, "why", "first")
    assert (code, err) == (0, "")
    assert out.splitlines()[-3:-1] == [
        "gang: JobSet default/train, of 3 Pods; none has a node",
        f"  RoomForAll: prefers {RACK}=a (2 nodes, room for 3 such Pods), the smallest with room for all",
    ]
    await harness.client.create(PODS, there, namespace="default")
    _, out, _ = await asked(harness, "why", "first", "-o", "json")
    assert json.loads(out)["gang"] == {
        "name": "JobSet default/train",
        "size": 3,
        "siblings": {"gpu-2": 1},
        "reason": "NearSiblings",
        "prefers": [{"label": f"{RACK}=a", "nodes": 2, "room": 2}],
    }
    code, out, _ = await asked(harness, "why", "first", "--gang-topology", "")
    assert "prefers no domain" in out
    code, out, _ = await asked(harness, "explain", "gpu-1")
    assert f"; domains for gangs: {RACK}=a (nodes: 2); " in out.splitlines()[-2]


async def test_a_pod_that_asks_for_memory_of_shared_gpus_hears_what_is_free_on_their_cards() -> None:
    harness = await cluster(big=card_pod("big", 12), small=card_pod("small", 6, 6, cards=2))
    notes = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "10"}
    await harness.client.create(NODES, card_node("shared", 10, 16))
    await harness.client.create(PODS, card_pod("on", 10, at="shared", **notes), namespace="default")
    code, out, err = await asked(harness, "why", "big")
    assert (code, err) == (1, "")
    assert out.splitlines()[:3] == [
        "default/big requests 12 aliyun.com/gpu-mem and waits; 0 of 4 nodes take it",
        "    2 GpuCardsTooSmall: node(s) whose GPUs have too little memory in all (gpu-1, gpu-2)",
        "      none: they offer no memory of a GPU that is well, or their device plugin does not run",
    ]
    assert "2 more memory free on one GPU of shared, where 10 of 12 are; `remediator gpus shared` shows" in out
    code, out, _ = await asked(harness, "why", "small")
    assert (code, out.splitlines()[0]) == (
        0,
        "default/small requests 12 aliyun.com/gpu-mem on 2 GPUs and waits; 1 of 4 nodes take it",
    )


async def test_a_pod_of_whole_gpus_hears_of_a_node_that_shares_them_where_the_cluster_shares_any() -> None:
    harness = await cluster(big=pod(gpus=2))
    for name in ("gpu-1", "gpu-2"):
        await harness.client.delete(NODES, name)
    await harness.client.create(NODES, card_node("both", 10, 16, whole=2))
    code, out, err = await asked(harness, "why", "big")
    assert (code, err, "1 of 2 nodes take it" in out) == (0, "", True), "nobody knows that --shared-gpus is given"
    kind = {"apiVersion": LEDGERS.api_version, "kind": LEDGERS.name}
    ledger = kind | {"metadata": {"name": "both"}, "spec": {"cards": [], "reservations": []}}
    await harness.client.create(LEDGERS, ledger)
    code, out, _ = await asked(harness, "why", "big")
    assert (code, "0 of 2 nodes take it" in out) == (1, True)
    assert "GpusSharedAndWhole: node(s) that offer the same GPUs whole and by memory (both)" in out
    assert "whole or by memory, not both (it offers whole GPUs, too); `remediator gpus` says who holds them" in out


async def test_a_pod_that_runs_is_said_to_run() -> None:
    code, out, _ = await asked(await cluster(), "why", "half")
    assert (code, out.splitlines()[0]) == (0, f"default/half requests 4 {GPU} and runs on gpu-1; 2 of 3 nodes take it")


async def test_a_pod_that_is_not_there_or_cannot_be_read_is_refused_in_one_line() -> None:
    code, out, err = await asked(await cluster(), "why", "team/none")
    assert (code, out) == (2, "")
    assert err == "remediator: no Pod team/none in the cluster; name one as NAMESPACE/NAME\n"


@pytest.mark.parametrize(("replicas", "code", "placed"), [(1, 0, 1), (3, 0, 3), (4, 1, 3)])
async def test_so_many_pods_find_nodes_or_the_exit_code_says_that_not_all_do(
    replicas: int, code: int, placed: int
) -> None:
    args = ("what-if", "--gpus", "4", "--replicas", str(replicas), "-o", "json")
    got, out, _ = await asked(await cluster(), *args)
    assert (got, json.loads(out)["placed"]) == (code, placed)


async def test_what_if_says_where_and_what_the_next_one_meets() -> None:
    code, out, _ = await asked(await cluster(), "what-if", "--gpus", "4", "--replicas", "4")
    assert code == 1
    assert out.splitlines()[:4] == [
        f"3 of 4 Pods with 4 {GPU} each find a node",
        "  gpu-1 (1), gpu-2 (2)",
        "the next one meets:",
        "    2 NoFreeGpus: node(s) with too few free GPUs (gpu-1, gpu-2)",
    ]


async def test_what_if_asks_for_memory_of_shared_gpus_and_says_what_lacks() -> None:
    harness = await cluster()
    await harness.client.create(NODES, card_node("shared", 10, 16))
    code, out, err = await asked(harness, "what-if", "--gpu-memory", "8", "--replicas", "4")
    assert (code, err) == (1, "")
    assert out.splitlines()[:5] == [
        "3 of 4 Pods with 8 aliyun.com/gpu-mem each find a node",
        "  shared (3)",
        "the next one meets:",
        "    2 GpuCardsTooSmall: node(s) whose GPUs have too little memory in all (gpu-1, gpu-2)",
        "      none: they offer no memory of a GPU that is well, or their device plugin does not run",
    ]
    code, out, _ = await asked(harness, "what-if", "--gpu-memory", "20", "--cards", "2", "-o", "json")
    assert (code, json.loads(out)["nodes"]) == (0, [{"node": "shared", "reason": "Fit", "pods": 1}])


async def test_nothing_is_written() -> None:
    harness = await cluster(job=pod(gpus=1))
    before = list(harness.server.audit)
    await asked(harness, "why", "job")
    await asked(harness, "what-if", "--gpus", "1")
    assert list(harness.server.audit) == before


async def test_a_server_without_our_kinds_is_told_apart() -> None:
    from remediator_sim.apiserver import EmbeddedServer

    harness = MemoryCluster(EmbeddedServer())
    await harness.client.create(NAMESPACES, {"metadata": {"name": "remediator-system"}})
    await harness.client.create(NODES, node("n"))
    code, _, err = await asked(harness, "what-if", "--gpus", "1")
    assert (code, "are Remediator's kinds in it" in err) == (2, True)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("what-if", "--gpus", "1", "--resource", "cpu"), "--resource is 'cpu', which does not count as a GPU"),
        (("what-if", "--gpus", "1", "--attributes", "memory>=4x"), "--attributes: at character 9: '4x' is no size"),
        (("what-if", "--gpus", "0"), "--gpus for whole GPUs, or --gpu-memory for memory of shared ones"),
        (("what-if", "--gpus", "1", "--gpu-memory", "8"), "--gpus for whole GPUs, or --gpu-memory"),
        (("what-if", "--gpu-memory", "9", "--cards", "2"), "--gpu-memory must be a multiple of it, and is 9 with 2"),
        (("what-if", "--gpus", "-1"), "--gpus"),
    ],
)
def test_a_wrong_question_is_refused(args: tuple[str, ...], words: str) -> None:
    done = remediator(*args)
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.slow
async def test_gpus_are_shown_by_node_namespace_and_pod_with_what_is_used_where_prometheus_knows() -> None:
    harness = await cluster()
    with fake_prometheus() as prometheus:
        prometheus.script = lambda params: success(
            {"resultType": "vector", "result": [sample(3, Hostname="gpu-1")] if "Hostname" in params["query"] else []}
        )
        url = ("--prometheus-url", prometheus.url)
        code, out, err = await asked(harness, "gpus", "gpu-1", *url)
        assert (code, [line.split() for line in out.splitlines()]) == (
            0,
            [
                ["NODE", "GPUS", "TOTAL", "GIVEN", "USED", "IDLE", "TO"],
                ["gpu-1", GPU, "8", "4", "3", "4", "default/half", "(4)"],
            ],
        )
        assert err.startswith("remediator: what is used is not known: Prometheus has no fresh DCGM_FI_DEV_")
        for by, holder in (("pod", "default/half"), ("namespace", "default")):
            _, out, _ = await asked(harness, "gpus", "--by", by, *url)
            assert [line.split() for line in out.splitlines()] == [
                [by.upper(), "GPUS", "GIVEN", "USED"],
                [holder, GPU, "4", "unknown"],
            ]
    code, out, err = await asked(harness, "gpus", "gpu-1")
    assert (code, out.splitlines()[1].split()[4], err) == (0, "unknown", "")
    code, _, err = await asked(harness, "gpus", "gpu-1", "--by", "pod")
    assert (code, err) == (2, "remediator: --by pod is of the whole cluster; leave the node gpu-1 out\n")


def sample(value: float, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": [time.time(), str(value)]}
