"""The real kube-scheduler, with the configuration that is shipped, asks the extender where Pods may go."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.images.programs import binary
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.names import Namespaces
from remediator.kube.informers import Informers
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.metrics import REGISTRY
from remediator.scheduler.extender import Extender
from remediator.scheduler.packing.points import Score
from remediator.scheduler.reasons import UNRESOLVABLE, VerdictReason
from remediator.scheduler.score import Scoring
from remediator_sim.ports import free_ports
from tests.cluster.control_plane import HOST, ControlPlane
from tests.cluster.processes import Child
from tests.cluster.rights.granted import SECOND, unused
from tests.cluster.scheduling import (
    BOTH,
    CONFIG,
    SECONDS,
    VERSIONS,
    Made,
    Setting,
    add_node,
    answering,
    counted,
    fall_sick,
    fill_in,
    lands,
    leaving,
    rank,
    say,
    scheduler,
    set_up,
    start,
    told,
    vanish,
)
from tests.harness import yaml_files
from tests.harness.kinds import CASES, NODES
from tests.harness.replica import state_of, verdict_of
from tests.harness.scheduler import GPU
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
NO_TLS = {"endpoint": "extender", "reason": "no-tls"}


@pytest.fixture
async def setting(control_plane: ControlPlane) -> AsyncIterator[Setting]:
    """Two GPU nodes, `sick` and `well`, both ready and free."""
    async with set_up(control_plane) as found:
        for short in BOTH:
            await add_node(found, short)
        yield found


async def test_a_sick_node_gets_a_pod_that_tolerates_our_taints_only_without_the_extender(
    setting: Setting, tmp_path: Path
) -> None:
    await fall_sick(setting)
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "choice", ["sick", "well"])
        assert await lands(setting, "choice") == "well"
        await start(setting, name, "pinned", ["sick"])
        await told(setting, "pinned", UNRESOLVABLE[VerdictReason.UNHEALTHY])
        await start(setting, name, "without-gpu", ["sick"], gpus=0)
        assert await lands(setting, "without-gpu") == "sick", "only Pods that ask for GPUs are sent to the extender"
    async with scheduler(setting, tmp_path, extended=False) as name:
        await start(setting, name, "pinned-too", ["sick"])
        assert await lands(setting, "pinned-too") == "sick"


async def test_a_pod_gets_the_node_whose_gpus_are_what_it_asks_for(setting: Setting, tmp_path: Path) -> None:
    for short, memory in (("sick", "40960"), ("well", "81559")):
        body = {"metadata": {"labels": {f"{GPU}.memory": memory}}}
        await setting.client.patch(NODES, setting.node(short), body)
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "large", BOTH, notes={names.GPU: "memory>=80G"})
        assert await lands(setting, "large") == "well"
        await start(setting, name, "small", BOTH, notes={names.GPU: "memory<80G"})
        assert await lands(setting, "small") == "sick"
        await start(setting, name, "none", BOTH, notes={names.GPU: "memory>90G"})
        await told(setting, "none", f"2 {UNRESOLVABLE[VerdictReason.OTHER_ATTRIBUTES]}")
        await start(setting, name, "unknown", BOTH, notes={names.GPU: "ecc=true"})
        await told(setting, "unknown", f"2 {UNRESOLVABLE[VerdictReason.ATTRIBUTES_UNKNOWN]}")
        await start(setting, name, "mistyped", BOTH, notes={names.GPU: "memory>=40Gx"})
        words = UNRESOLVABLE[VerdictReason.ATTRIBUTES_MALFORMED]
        await told(setting, "mistyped", f"2 {words}: remediator.dev/gpu: at character 9: '40Gx' is no size")
        await setting.client.patch(NODES, setting.node("sick"), {"metadata": {"labels": {names.GPU_ECC: "true"}}})
        assert await lands(setting, "unknown") == "sick", "a label that is added wakes the Pod"


async def test_a_pod_that_waits_for_a_sick_node_gets_it_when_the_node_is_well(setting: Setting, tmp_path: Path) -> None:
    await fall_sick(setting)
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "patient", ["sick"])
        await told(setting, "patient", UNRESOLVABLE[VerdictReason.UNHEALTHY])
        await say(setting, "sick", "False")
        assert await lands(setting, "patient") == "sick"


async def test_a_pod_that_was_tried_again_before_we_had_heard_that_the_node_is_well_is_woken(
    setting: Setting, tmp_path: Path
) -> None:
    await fall_sick(setting)
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "early", ["sick"])
        await told(setting, "early", UNRESOLVABLE[VerdictReason.UNHEALTHY])
        refused, woken = counted("refused_nodes", list="unresolvable"), counted("requeues")
        setting.news.clear()
        await say(setting, "sick", "False")
        await until(lambda: counted("refused_nodes", list="unresolvable") > refused, SECONDS)
        setting.news.set()
        assert await lands(setting, "early") == "sick", "not after the five minutes of the scheduler's own patience"
        await until(lambda: counted("requeues") == woken + 1, SECONDS)
        assert (
            names.SCHEDULABLE_AGAIN_AT
            in (await setting.client.get(NODES, setting.node("sick")))["metadata"]["annotations"]
        )


async def test_gpus_are_packed_with_the_extender_and_spread_without(setting: Setting, tmp_path: Path) -> None:
    async with scheduler(setting, tmp_path, extended=False) as name:
        await start(setting, name, "first", ["well"], gpus=2)
        await lands(setting, "first")
        await start(setting, name, "spread", BOTH, gpus=2)
        assert await lands(setting, "spread") == "sick"
    async with scheduler(setting, tmp_path, extended=True) as name:
        await start(setting, name, "third", ["well"], gpus=2)
        await lands(setting, "third")
        await until(lambda: dict(state_of(setting.extender, setting.node("well")).used) == {GPU: 4}, SECONDS)
        for index in range(2):
            await start(setting, name, f"packed-{index}", BOTH, gpus=2)
            assert await lands(setting, f"packed-{index}") == "well"
        await start(setting, name, "next", BOTH, gpus=2)
        assert await lands(setting, "next") == "sick"


async def test_a_scheduler_that_shows_nothing_is_not_let_in_and_schedules_without_us(
    setting: Setting, tmp_path: Path
) -> None:
    await fall_sick(setting)
    before = REGISTRY.get_sample_value("remediator_refused_calls_total", NO_TLS) or 0
    async with scheduler(setting, tmp_path, extended=True, shows=False) as name:
        await start(setting, name, "pinned", ["sick"])
        assert await lands(setting, "pinned") == "sick"
    assert REGISTRY.get_sample_value("remediator_refused_calls_total", NO_TLS) > before


async def test_pods_are_scheduled_when_the_extender_is_down(setting: Setting, tmp_path: Path) -> None:
    async with scheduler(setting.elsewhere(), tmp_path, extended=True) as name:
        await start(setting, name, "alone", ["well"])
        assert await lands(setting, "alone") == "well"


# --- with two versions of Kubernetes ---------------------------------------------------------------------------------


async def resize(setting: Setting, gpus: int) -> None:
    """Both nodes have so many GPUs from now on."""
    room = {GPU: str(gpus)}
    for short in BOTH:
        body = {"status": {"capacity": room, "allocatable": room}}
        await setting.client.patch(NODES, setting.node(short), body, subresource="status")
        await until(lambda short=short: dict(state_of(setting.extender, setting.node(short)).total) == room_of(gpus))


def room_of(gpus: int) -> dict[str, int]:
    return {GPU: gpus}


async def held(setting: Setting, gpus: int) -> None:
    """Wait until the extender knows that Pods hold so many GPUs of both nodes together."""
    await until(lambda: sum(dict(state_of(setting.extender, setting.node(n)).used).get(GPU, 0) for n in BOTH) == gpus)


# GPUs of each of two nodes, what Pods ask for one after the other, and whether the last one runs.
PACKED = [
    pytest.param(2, (1, 1, 2), True, True, id="two-of-two-packed"),
    pytest.param(2, (1, 1, 2), False, False, id="two-of-two-spread"),
    pytest.param(4, (2, 1, 2), True, True, id="two-of-four-packed"),
    pytest.param(4, (2, 1, 2), False, True, id="two-of-four-spread"),  # 2 and 3 GPUs are left: it fits either way
]


@pytest.mark.sampled
@pytest.mark.parametrize("program", VERSIONS)
@pytest.mark.parametrize(("gpus", "asked", "extended", "runs"), PACKED)
async def test_where_pods_are_packed_all_run_and_where_they_are_spread_the_last_may_wait(
    setting: Setting, tmp_path: Path, program: str, gpus: int, asked: tuple[int, ...], extended: bool, runs: bool
) -> None:
    await resize(setting, gpus)
    async with scheduler(setting, tmp_path, extended=extended, program=program) as name:
        for index, count in enumerate(asked[:-1]):
            await start(setting, name, f"pod-{index}", BOTH, gpus=count)
            await lands(setting, f"pod-{index}")
            await held(setting, sum(asked[: index + 1]))
        await start(setting, name, "last", BOTH, gpus=asked[-1])
        if runs:
            assert await lands(setting, "last") in BOTH
        else:
            await told(setting, "last", "2 Insufficient nvidia.com/gpu")


def scoring(score: Score) -> Made:
    """An extender that scores so, and its watches."""

    def made(client: Client) -> tuple[Extender, Informers]:
        informers = Informers(client, SYSTEM, Namespaces())
        return Extender(client, informers, SYSTEM, scoring=Scoring(score)), informers

    return made


# How we score and with which weight, GPUs in use on `well`, and where a Pod goes that prefers `sick`, which is empty.
WEIGHED = [
    pytest.param(Score.FGD, 1, 1, "well", id="fgd decides alone"),
    pytest.param(Score.BLEND, 7, 1, "sick", id="one GPU is less than a preference"),
    pytest.param(Score.BLEND, 7, 5, "well", id="five are more"),
    pytest.param(Score.BLEND, 1, 5, "sick", id="with less weight they are not"),
]


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
@pytest.mark.parametrize(("score", "weight", "used", "node"), WEIGHED)
async def test_the_weight_says_how_much_packing_counts_beside_what_a_pod_prefers(
    control_plane: ControlPlane, tmp_path: Path, program: str, score: Score, weight: int, used: int, node: str
) -> None:
    async with set_up(control_plane, scoring(score)) as setting:
        for short in BOTH:
            await add_node(setting, short)
        here = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [setting.node("sick")]}]
        likes = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "preference": {"matchExpressions": here}}
            ]
        }
        async with scheduler(setting, tmp_path, program=program, changes={"weight": weight}) as name:
            await start(setting, name, "first", ["well"], used)
            await lands(setting, "first")
            await held(setting, used)
            await start(setting, name, "prefers", BOTH, node_affinity=likes)
            assert await lands(setting, "prefers") == node


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
async def test_of_nodes_with_one_score_any_is_taken_and_what_we_prefer_is_no_tie(
    setting: Setting, tmp_path: Path, program: str
) -> None:
    async with scheduler(setting, tmp_path, program=program) as name:

        async def tried(pod: str, gpus: int = 0) -> str:
            """Where a Pod of one GPU goes that leaves again, beside so many in use."""
            await start(setting, name, pod, BOTH)
            node = await lands(setting, pod)
            await vanish(setting, pod)
            await held(setting, gpus)
            return node

        taken: set[str] = set()
        for index in range(40):  # all on one node: once in 500 billion runs
            taken.add(await tried(f"tie-{index}"))
            if len(taken) == 2:
                break
        assert taken == set(BOTH)
        await start(setting, name, "stays", ["well"])
        await lands(setting, "stays")
        await held(setting, 1)
        assert [await tried(f"packed-{index}", 1) for index in range(8)] == ["well"] * 8


RACKS = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
async def test_the_pods_of_a_gang_keep_to_the_rack_that_has_room_for_all_of_them(
    control_plane: ControlPlane, tmp_path: Path, program: str
) -> None:
    """Six times over: by lot both would be in rack b once in three times, since a1, b1 and b2 are equal."""
    async with set_up(control_plane) as setting:
        for short, rack in RACKS.items():
            await add_node(setting, short, labels={"topology.kubernetes.io/rack": rack})
        async with scheduler(setting, tmp_path, program=program) as name:
            await start(setting, name, "other", ["a2"], 1)
            assert await lands(setting, "other") == "a2"
            for turn in range(6):
                notes = {names.GANG_SIZE: "2"}
                pods = [f"job-{turn}-{index}" for index in range(2)]
                for pod in pods:
                    gang = {f"{names.GROUP}/gang": f"job-{turn}"}
                    await start(setting, name, pod, list(RACKS), 8, notes=notes, labels=gang)
                assert {await lands(setting, pod) for pod in pods} == {"b1", "b2"}
                for pod in pods:
                    await vanish(setting, pod)
                await until(
                    lambda: not any(dict(state_of(setting.extender, setting.node(n)).used) for n in ("b1", "b2"))
                )


@pytest.mark.sampled
@pytest.mark.parametrize("program", VERSIONS)
@pytest.mark.parametrize(("changes", "emptied"), [({}, "well"), ({"preemptVerb": ""}, "sick")])
async def test_nobody_is_evicted_from_an_unhealthy_node_where_the_extender_is_asked_first(
    setting: Setting, tmp_path: Path, program: str, changes: dict[str, str], emptied: str
) -> None:
    least, low, high = [await rank(setting, name, value) for name, value in (("least", 1), ("low", 2), ("high", 9))]
    async with scheduler(setting, tmp_path, extended=True, program=program, changes=changes) as name:
        for short, priority in (("sick", least), ("well", low)):  # the scheduler prefers the victim on the sick node
            await start(setting, name, f"victim-{short}", [short], gpus=8, priorityClassName=priority)
            assert await lands(setting, f"victim-{short}") == short
        await held(setting, 16)
        await fall_sick(setting)
        await start(setting, name, "urgent", BOTH, gpus=8, priorityClassName=high)
        await until(lambda: leaving(setting, f"victim-{emptied}"), SECONDS)
        if emptied == "well":
            assert await lands(setting, "urgent") == "well"
            assert not await leaving(setting, "victim-sick")


@pytest.mark.sampled
@pytest.mark.parametrize("program", VERSIONS)
@pytest.mark.parametrize("names_only", [True, False])
async def test_names_and_whole_nodes_are_answered_alike(
    setting: Setting, tmp_path: Path, program: str, names_only: bool
) -> None:
    await fall_sick(setting)
    changes = {"nodeCacheCapable": names_only}
    async with scheduler(setting, tmp_path, extended=True, program=program, changes=changes) as name:
        await start(setting, name, "choice", BOTH)
        assert await lands(setting, "choice") == "well"
        await start(setting, name, "pinned", ["sick"])
        await told(setting, "pinned", UNRESOLVABLE[VerdictReason.UNHEALTHY])


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
async def test_where_the_extender_may_not_be_ignored_its_pods_wait_for_its_restart_and_all_others_go_on(
    setting: Setting, tmp_path: Path, program: str
) -> None:
    away = setting.elsewhere()
    async with scheduler(away, tmp_path, extended=True, program=program, changes={"ignorable": False}) as name:
        await start(setting, name, "with-gpu", ["well"])
        await told(setting, "with-gpu", "connection refused")
        await start(setting, name, "without-gpu", ["well"], gpus=0)
        assert await lands(setting, "without-gpu") == "well"
        async with answering(away):
            assert await lands(setting, "with-gpu") == "well", "as soon as the extender is back"


async def claim(setting: Setting) -> None:
    """A case holds the node `sick`."""
    await _mark(setting, {"spec": {"taints": [{"key": names.CASE_TAINT, "value": "a-case", "effect": "NoSchedule"}]}})


async def cordon(setting: Setting) -> None:
    """A case has cordoned it."""
    await _mark(setting, {"metadata": {"annotations": {names.CORDONED_BY: "a-case"}}, "spec": {"unschedulable": True}})


async def quarantine(setting: Setting) -> None:
    """A case of it waits for a person."""
    node = (await setting.client.get(NODES, setting.node("sick")))["metadata"]
    spec = {"nodeName": node["name"], "nodeUID": node["uid"], "policyName": setting.mark}
    body = {"apiVersion": CASES.api_version, "kind": CASES.name, "metadata": {"name": setting.mark}, "spec": spec}
    await setting.client.create(CASES, body)
    await setting.client.patch(CASES, setting.mark, {"status": {"phase": "Escalated"}}, subresource="status")


async def _mark(setting: Setting, body: dict[str, Any]) -> None:
    await setting.client.patch(NODES, setting.node("sick"), body)


async def give_back(setting: Setting) -> None:
    """Nothing of all that any more."""
    with suppress(errors.NotFound):
        await setting.client.delete(CASES, setting.mark)
    none = {"metadata": {"annotations": {names.CORDONED_BY: None}}, "spec": {"taints": None, "unschedulable": None}}
    await _mark(setting, none)


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
async def test_a_node_that_a_case_holds_is_refused_in_the_words_of_its_reason_and_given_back(
    setting: Setting, tmp_path: Path, program: str
) -> None:
    held_by = {claim: "CLAIMED", cordon: "CORDONED", quarantine: "QUARANTINED"}
    async with scheduler(setting, tmp_path, extended=True, program=program) as name:
        for hold, reason in held_by.items():
            verdict = VerdictReason[reason]
            await hold(setting)
            await until(lambda: verdict_of(setting.extender, setting.node("sick")) is verdict, SECONDS)  # noqa: B023
            await start(setting, name, reason.lower(), ["sick"])
            await told(setting, reason.lower(), UNRESOLVABLE[verdict])
            await give_back(setting)
            assert await lands(setting, reason.lower()) == "sick"


async def test_the_second_scheduler_that_is_shipped_has_the_rights_that_it_needs(
    setting: Setting, tmp_path: Path
) -> None:
    folder = CONFIG.parent / "second"
    for body in yaml_files.read_all(folder / "rbac.yaml"):
        if body["kind"] != "ServiceAccount":
            await _create(setting, body)
    account = "system:serviceaccount:remediator-system:remediator-scheduler"
    config = yaml_files.read(folder / "scheduler-config.yaml")
    told = setting.plane.kubeconfig_for(account, ["system:serviceaccounts:remediator-system"])
    config["clientConnection"] = {"kubeconfig": str(told)}
    fill_in(config, setting, tmp_path)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    flags = [f"--config={tmp_path}/config.yaml", f"--bind-address={HOST}", f"--secure-port={port}"]
    child = Child([binary("kube-scheduler"), *flags], tmp_path / "second.log")
    try:
        await fall_sick(setting)
        await start(setting, "gpu", "job", BOTH)
        assert await lands(setting, "job") == "well", child.tail()
        assert "forbidden" not in child.log.read_text()
        await until(lambda: not unused("remediator-scheduler", setting.plane.audited(), SECOND), SECONDS)
    finally:
        child.stop()


async def _create(setting: Setting, body: dict[str, Any]) -> None:
    """An object of RBAC or of admission, which other tests of the session may have made."""
    space, plural = body["metadata"].get("namespace", ""), f"{body['kind'].lower()}s".replace("ys", "ies")
    kind = Kind(body["apiVersion"].partition("/")[0], "v1", plural, body["kind"], dict, namespaced=bool(space))
    with suppress(errors.AlreadyExists):
        await setting.client.create(kind, body, namespace=space)
