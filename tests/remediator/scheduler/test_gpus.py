"""How many GPUs a Pod asks for, and how many a Node offers."""

import doctest
import json
from datetime import UTC, datetime

import msgspec
import pytest

from remediator.core.spare import NOTHING, PodHolding, ending
from remediator.kube.api import builtin, decode, gpu_pods, shared_gpus

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"


def wants(count: int | str | None, resource: str = GPU, of: str = "requests", **more: object) -> dict:
    return {"name": "c", "resources": {of: {resource: count, "cpu": "100m"}} if count is not None else {}, **more}


def asked(*containers: dict, init: tuple[dict, ...] = ()) -> dict[str, int]:
    body = {"metadata": {}, "spec": {"containers": list(containers), "initContainers": list(init)}}
    return dict(gpu_pods.asked(msgspec.json.decode(json.dumps(body), type=gpu_pods.GpuPod)))


def sidecar(count: int) -> dict:
    return wants(count, restartPolicy="Always")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(asked(), {}, id="no container"),
        pytest.param(asked(wants(None), {"name": "c"}), {}, id="no GPU"),
        pytest.param(asked(wants("2"), wants("1")), {GPU: 3}, id="containers add up"),
        pytest.param(asked(wants("2", of="limits")), {GPU: 2}, id="a limit alone is a request"),
        pytest.param(asked(wants("1"), init=(wants("4"), wants("2"))), {GPU: 4}, id="init containers take turns"),
        pytest.param(asked(wants("3"), init=(wants("2"),)), {GPU: 3}, id="an init container that needs less"),
        pytest.param(asked(wants("2"), init=(sidecar(1),)), {GPU: 3}, id="a sidecar stays"),
        pytest.param(
            asked(wants("1"), init=(sidecar(1), wants("4"))), {GPU: 5}, id="an init container beside a sidecar"
        ),
        pytest.param(asked(wants("1"), init=(wants("4"), sidecar(1))), {GPU: 4}, id="a sidecar that starts later"),
        pytest.param(asked(wants("1"), wants("2", MIG)), {GPU: 1, MIG: 2}, id="each resource by itself"),
        pytest.param(asked(wants("0")), {}, id="zero is nothing"),
        pytest.param(asked(wants(2)), {GPU: 2}, id="a bare number"),
        pytest.param(asked(wants("6", "example.com/fpga")), {}, id="other devices are the scheduler's"),
    ],
)
def test_a_pod_asks_for(found: dict[str, int], expected: dict[str, int]) -> None:
    assert found == expected


@pytest.mark.parametrize("quantity", ["0.5", "500m", "-1", "", "many", "1e99", "9" * 5000, 1.5, None])
def test_a_part_of_a_gpu_is_an_error_that_shows_what_was_sent(quantity: object) -> None:
    body = json.dumps({"spec": {"containers": [wants(quantity)]}})  # type: ignore[arg-type]
    if quantity is None:
        body = json.dumps({"spec": {"containers": [{"resources": {"requests": {GPU: None}}}]}})
    with pytest.raises(ValueError) as caught:
        gpu_pods.asked(msgspec.json.decode(body, type=gpu_pods.GpuPod))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("containers", "init", "milli"),
    [
        ([{"cpu": "4"}, {"cpu": "500m"}], [], 4500),
        ([{"cpu": "1"}], [{"cpu": "8"}], 8000),
        ([{"memory": "1Gi"}], [], 0),
        ([{"cpu": "odd"}], [], 0),
    ],
)
def test_a_pod_asks_for_cpu_in_thousandths_of_a_core(containers: list, init: list, milli: int) -> None:
    rows = [[{"resources": {"requests": each}} for each in of] for of in (containers, init)]
    body = {"metadata": {}, "spec": {"nodeName": "n", "containers": rows[0], "initContainers": rows[1]}}
    wire = msgspec.json.decode(json.dumps(body), type=gpu_pods.GpuPod)
    assert gpu_pods.needed(wire) == ((), milli)
    assert gpu_pods.asked(wire) == ()
    assert shared_gpus.holding(wire) == (PodHolding("n", cpu=milli) if milli else NOTHING)


@pytest.mark.parametrize(("requests", "held"), [({"cpu": "4"}, PodHolding("n", cpu=4000)), ({}, NOTHING)])
def test_a_pod_that_somebody_has_deleted_holds_the_same_and_says_when_its_grace_is_over(requests, held) -> None:
    meta = {"namespace": "ml", "name": "a", "deletionTimestamp": "2026-01-01T12:00:30Z"}
    body = {"metadata": meta, "spec": {"nodeName": "n", "containers": [{"resources": {"requests": requests}}]}}
    found = shared_gpus.holding(msgspec.json.decode(json.dumps(body), type=gpu_pods.GpuPod))
    assert found == ending(held, "n", datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC))
    assert (found.node, found.cpu, found.place) == (held.node, held.cpu, "n")


def test_what_a_running_pod_asks_of_gpus_is_kept_unless_it_is_very_long() -> None:
    for text, kept in (("memory>=40G", "memory>=40G"), ("x" * 2000, "")):
        body = {"metadata": {"annotations": {"remediator.dev/gpu": text}}, "spec": {"containers": [wants(1)]}}
        held = shared_gpus.holding(msgspec.json.decode(json.dumps(body), type=gpu_pods.GpuPod))
        assert (held.gpus, held.cpu, held.asks) == (((GPU, 1),), 100, (kept, ""))


def test_a_node_offers_its_gpus_and_says_so_when_they_are_gone() -> None:
    room = {"cpu": "96", GPU: "0", MIG: "7", "amd.com/gpu": "2"}
    body = json.dumps({"metadata": {"name": "n"}, "status": {"allocatable": room}})
    found = gpu_pods.offered(msgspec.json.decode(body, type=builtin.Node))
    assert found == (("amd.com/gpu", 2), (GPU, 0), (MIG, 7))


@pytest.mark.parametrize("status", [{}, {"allocatable": None}, {"allocatable": {}}])
def test_a_node_may_say_nothing_of_what_it_offers(status: dict) -> None:
    body = json.dumps({"metadata": {"name": "n"}, "status": status})
    assert gpu_pods.offered(msgspec.json.decode(body, type=builtin.Node)) == ()


def test_a_count_that_cannot_be_read_hides_neither_the_other_gpus_nor_the_node() -> None:
    room = {GPU: "half", MIG: "7"}
    body = json.dumps({"metadata": {"name": "n"}, "status": {"allocatable": room}})
    node = msgspec.json.decode(body, type=builtin.Node)
    assert decode.node(node).gpus == ((MIG, 7),)
    with pytest.raises(ValueError):
        gpu_pods.offered(node)


def test_the_examples_hold() -> None:
    assert doctest.testmod(gpu_pods).failed == 0
