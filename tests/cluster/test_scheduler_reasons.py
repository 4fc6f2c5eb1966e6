"""Each reason for which the extender refuses a node, as a Pod hears it from the real kube-scheduler."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remediator.core import names
from remediator.kube.api.gpu_pods import CARD_INDEX, CARD_MEMORY
from remediator.kube.api.shared_gpus import COUNT, MEMORY
from remediator.kube.wire.client import Client
from remediator.scheduler.mps import CONDITION as MPS
from remediator.scheduler.mps import STRATEGY
from remediator.scheduler.reasons import FAILED, UNRESOLVABLE, VerdictReason
from tests.cluster.control_plane import ControlPlane
from tests.cluster.scheduling import (
    CONDITION,
    SHARED_CONFIG,
    VERSIONS,
    Setting,
    add_node,
    say,
    scheduler,
    set_up,
    start,
    told,
)
from tests.cluster.test_scheduler_shared import CARDS, sharing
from tests.harness.kinds import CASES, CONFIG_MAPS, NODES, PODS, Object
from tests.harness.scheduler import GPU

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
R = VerdictReason
TAINT = {"key": names.CASE_TAINT, "value": "a-case", "effect": "NoSchedule"}
HELPS = {"unresolvable": "Preemption is not helpful for scheduling", "failed": "No preemption victims found"}


class Row(NamedTuple):
    """What brings one refusal about: of the node, labels and what it offers; of the Pod, what it asks for and notes."""

    labels: Mapping[str, str] = {}
    room: Mapping[str, str | None] = {}
    gpus: int = 1
    memory: int = 0
    notes: Mapping[str, str] = {}
    spec: Mapping[str, Any] = {}  # of the node
    says: Mapping[str, str] = {}  # its conditions
    holders: tuple[Mapping[str, str], ...] = ()  # limits of Pods that are on it already, those with memory card by card
    unhealthy: str = ""  # the list of its unhealthy cards
    phase: str = ""  # of a case of it


ROWS: Mapping[VerdictReason, Row] = {
    R.QUARANTINED: Row(phase="Escalated"),
    R.CLAIMED: Row(spec={"taints": [TAINT]}),
    R.CORDONED: Row(spec={"unschedulable": True}),
    R.NOT_READY: Row(says={"Ready": "False"}),
    R.UNHEALTHY: Row(says={CONDITION: "True"}),
    R.TOO_FEW_GPUS: Row(gpus=9),
    R.NO_FREE_GPUS: Row(gpus=2, holders=({GPU: "7"},)),
    R.OTHER_ATTRIBUTES: Row({f"{GPU}.memory": "40960"}, notes={names.GPU: "memory>=80G"}),
    R.ATTRIBUTES_UNKNOWN: Row(notes={names.GPU: "ecc=true"}),
    R.ATTRIBUTES_MALFORMED: Row(notes={names.GPU: "memroy>=80G"}),
    R.UNPROVEN: Row(says={CONDITION: "Unknown"}, notes={names.REQUIRE_HEALTH: names.PROVEN}),
    R.NO_GPU_MEMORY: Row(room=CARDS, gpus=0, memory=10, holders=({MEMORY: "8"}, {MEMORY: "8"})),
    R.GPU_CARDS_TOO_SMALL: Row(room=CARDS, gpus=0, memory=17),
    R.GPU_CARDS_UNKNOWN: Row(room=CARDS, gpus=0, memory=1, unhealthy="0,x"),
    R.SHARED_AND_WHOLE: Row(room={MEMORY: "32", COUNT: "2"}, gpus=0, memory=1),
    R.GPU_MEMORY_MALFORMED: Row(room=CARDS, gpus=0, memory=3, notes={names.GPU_CARDS: "2"}),
    R.MPS_NOT_OFFERED: Row(notes={names.ASKS_MPS: "true"}),
    R.MPS_TOO_OLD: Row({STRATEGY: "mps", f"{GPU}.compute.major": "6"}, notes={names.ASKS_MPS: "true"}),
    R.MPS_UNHEALTHY: Row(
        {STRATEGY: "mps", f"{GPU}.compute.major": "8"}, notes={names.ASKS_MPS: "true"}, says={MPS: "True"}
    ),
}


def test_every_reason_for_a_refusal_has_a_row() -> None:
    assert ROWS.keys() == UNRESOLVABLE.keys() | FAILED.keys()


def short(reason: VerdictReason) -> str:
    """The node of a row, and its Pod."""
    return reason.value.lower()


@pytest.fixture
async def setting(control_plane: ControlPlane) -> AsyncIterator[Setting]:
    """A node for each row."""
    async with set_up(control_plane, sharing) as found:
        for reason, row in ROWS.items():
            await add_node(found, short(reason), row.room, labels=dict(row.labels))
            await _bring_about(found, short(reason), row)
        yield found
        for reason, row in ROWS.items():
            if row.unhealthy:
                await found.client.delete(CONFIG_MAPS, _list(found, short(reason)), namespace="kube-system")


async def _bring_about(setting: Setting, name: str, row: Row) -> None:
    client, node = setting.client, setting.node(name)
    if "Ready" in row.says:  # nobody says otherwise
        await client.patch(NODES, node, {"metadata": {"annotations": {"kwok.x-k8s.io/node": None}}})
    for condition, status in row.says.items():
        await say(setting, name, status, condition)
    if row.spec:
        note = {"annotations": {names.CORDONED_BY: "a-case"}} if "unschedulable" in row.spec else {}
        await client.patch(NODES, node, {"spec": dict(row.spec), "metadata": note})
    if row.unhealthy:
        meta = {"name": _list(setting, name), "namespace": "kube-system"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"gpus": row.unhealthy}}
        await client.create(CONFIG_MAPS, body, namespace="kube-system")
    for index, limits in enumerate(row.holders):
        await client.create(PODS, _holder(f"{name}-{index}", node, index, limits), namespace=setting.space)
    if row.phase:
        await _open_case(client, node, setting.mark, row.phase)


def _list(setting: Setting, name: str) -> str:
    return f"unhealthy-gpu-{setting.node(name)}"


def _holder(name: str, node: str, index: int, limits: Mapping[str, str]) -> Object:
    """A Pod that is on a node; one with memory of GPUs has it on the card of its number, as gpushare writes it."""
    notes = {CARD_INDEX: str(index), CARD_MEMORY: limits[MEMORY]} if MEMORY in limits else {}
    container = {"name": "main", "image": "job:1", "resources": {"limits": dict(limits)}}
    spec = {"nodeName": node, "containers": [container], "tolerations": [{"operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": notes}, "spec": spec}


async def _open_case(client: Client, node: str, name: str, phase: str) -> None:
    uid = (await client.get(NODES, node))["metadata"]["uid"]
    spec = {"nodeName": node, "nodeUID": uid, "policyName": name}
    body = {"apiVersion": CASES.api_version, "kind": CASES.name, "metadata": {"name": name}, "spec": spec}
    await client.create(CASES, body)
    await client.patch(CASES, name, {"status": {"phase": phase}}, subresource="status")


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
async def test_a_pod_hears_each_reason_and_whether_evictions_would_help_in_the_words_of_the_page(
    setting: Setting, tmp_path: Path, program: str
) -> None:
    """kube-scheduler itself counts no GPUs here, as where ignoredByScheduler is true: else it would refuse first."""
    async with scheduler(setting, tmp_path, program=program, shipped=SHARED_CONFIG, counts=False) as name:
        for reason, row in ROWS.items():
            more = {MEMORY: str(row.memory)} if row.memory else {}
            every = [{"operator": "Exists"}]
            await start(
                setting, name, short(reason), [short(reason)], row.gpus, more=more, notes=row.notes, tolerations=every
            )
        for reason in ROWS:
            said, helps = FAILED.get(reason), "failed"
            if said is None:
                said, helps = UNRESOLVABLE[reason], "unresolvable"
            await told(setting, short(reason), f"1 {said}", HELPS[helps])
