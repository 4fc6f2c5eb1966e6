"""The real kube-scheduler, configured as shipped for GPUs that Pods share: the extender chooses the card and binds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from remediator.clock import SYSTEM
from remediator.core.names import Namespaces
from remediator.kube import api
from remediator.kube.api.gpu_pods import CARD_INDEX
from remediator.kube.api.shared_gpus import COUNT, MEMORY
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import Reply
from remediator.scheduler.extender import Extender
from remediator.scheduler.reasons import FAILED, VerdictReason
from remediator.scheduler.shared.parts import SharedGpus
from tests.cluster.control_plane import ControlPlane
from tests.cluster.scheduling import (
    BOTH,
    SECONDS,
    SHARED_CONFIG,
    VERSIONS,
    Setting,
    add_node,
    answering,
    counted,
    lands,
    leaving,
    pod_of,
    rank,
    scheduler,
    set_up,
    start,
    told,
    vanish,
)
from tests.harness.kinds import plain
from tests.harness.replica import at_work
from tests.harness.scheduler import GPU
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
CARDS = {GPU: None, MEMORY: "32", COUNT: "2"}
SHARED, WHOLE = ("sick",), ("well",)


def sharing(client: Client) -> tuple[Extender, Informers]:
    """An extender that binds Pods to memory of GPUs, and its watches."""
    informers = Informers(client, SYSTEM, Namespaces())
    shared = SharedGpus.over(client, informers, SYSTEM)
    return Extender(client, informers, SYSTEM, shared=shared), informers


@pytest.fixture
async def setting(control_plane: ControlPlane) -> AsyncIterator[Setting]:
    """A node with two cards of 16 that Pods share, and one with eight whole GPUs."""
    async with set_up(control_plane, sharing) as found:
        await add_node(found, "sick", CARDS)
        await add_node(found, "well")
        yield found


async def asks(setting: Setting, scheduler: str, name: str, memory: int, **spec: Any) -> None:
    """A Pod for so much memory of one GPU."""
    await start(setting, scheduler, name, SHARED, 0, more={MEMORY: str(memory)}, **spec)


async def card(setting: Setting, name: str) -> str:
    """The card that a Pod was given, once it has a node."""
    assert await lands(setting, name) == "sick"
    index: str = (await pod_of(setting, name))["metadata"]["annotations"][CARD_INDEX]
    return index


async def reserved(setting: Setting) -> list[str]:
    """The Pods that the ledger of the node has."""
    ledgers = await setting.client.list_all(plain(api.GPU_LEDGER))
    mine = [each["spec"] for each in ledgers if each["metadata"]["name"] == setting.node("sick")]
    return sorted(entry["name"] for spec in mine for entry in spec.get("reservations") or ())


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
async def test_a_pod_gets_the_card_with_the_least_room_and_waits_where_only_all_cards_together_have_room(
    setting: Setting, tmp_path: Path, program: str
) -> None:
    async with scheduler(setting, tmp_path, program=program, shipped=SHARED_CONFIG) as name:
        for pod, memory, index in (("first", 4, "0"), ("second", 8, "0"), ("third", 8, "1")):
            await asks(setting, name, pod, memory)
            assert await card(setting, pod) == index
        await asks(setting, name, "waits", 10)  # 12 are free: 4 and 8, and the scheduler counts them together
        await told(setting, "waits", f"1 {FAILED[VerdictReason.NO_GPU_MEMORY]}")
        await vanish(setting, "third")
        assert await card(setting, "waits") == "1"
        await until(lambda: _holds(setting, "first", "second", "waits"), SECONDS)


async def _holds(setting: Setting, *pods: str) -> bool:
    return await reserved(setting) == sorted(pods)


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
@pytest.mark.parametrize("asked_first", [True, False])
async def test_nobody_is_evicted_from_two_cards_for_a_pod_that_needs_a_whole_one(
    setting: Setting, tmp_path: Path, program: str, asked_first: bool
) -> None:
    low, middle, high = [await rank(setting, name, value) for name, value in (("low", 1), ("middle", 2), ("high", 9))]
    changes = {} if asked_first else {"preemptVerb": ""}
    async with scheduler(setting, tmp_path, program=program, shipped=SHARED_CONFIG, changes=changes) as name:
        for pod, priority, index in (("m0", middle, "0"), ("l0", low, "0"), ("m1", middle, "1"), ("l1", low, "1")):
            await asks(setting, name, pod, 8, priorityClassName=priority)
            assert await card(setting, pod) == index
        dropped = counted("refused_nodes", list="preemption")
        await asks(setting, name, "urgent", 16, priorityClassName=high)
        if not asked_first:  # the two of the lowest priority, 16 in all
            await until(lambda: leaving(setting, "l0"), SECONDS)
            await until(lambda: leaving(setting, "l1"), SECONDS)
            return
        await until(lambda: counted("refused_nodes", list="preemption") > dropped, SECONDS)
        await told(setting, "urgent", "Insufficient aliyun.com/gpu-mem")
        assert not any([await leaving(setting, pod) for pod in ("m0", "l0", "m1", "l1")])
        await asks(setting, name, "smaller", 8, priorityClassName=high)
        assert await card(setting, "smaller") in ("0", "1")
        assert [await leaving(setting, pod) for pod in ("m0", "m1")] == [False, False]


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
async def test_while_the_extender_is_away_pods_wait_that_it_must_bind_and_pods_with_whole_gpus_go_on(
    setting: Setting, tmp_path: Path, program: str
) -> None:
    away = setting.elsewhere()
    async with scheduler(away, tmp_path, program=program, shipped=SHARED_CONFIG) as name:
        await asks(setting, name, "shares", 8)
        await told(setting, "shares", "connection refused")
        await start(setting, name, "whole", BOTH, 1)
        assert await lands(setting, "whole") == "well"
        async with answering(away):
            assert await card(setting, "shares") == "0", "bound by the extender alone, as soon as it is back"


class Stuck(HttpTransport):
    """The first bind waits for `goes_on`: before it is sent, or when it is done and nobody has heard of it."""

    sends: bool
    arrived: asyncio.Event
    goes_on: asyncio.Event

    async def request(self, method: str, path: str, **asked: Any) -> Reply:
        """See Transport.request."""
        first = path.endswith("/binding") and not self.arrived.is_set()
        if first and not self.sends:
            self.arrived.set()
            await self.goes_on.wait()
        reply = await super().request(method, path, **asked)
        if first and self.sends:
            self.arrived.set()
            await self.goes_on.wait()
        return reply


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("program", VERSIONS)
@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_bind_that_hangs_or_whose_replica_restarts_is_tried_again_and_gives_the_pod_one_card(
    setting: Setting, tmp_path: Path, program: str, sends: bool, restarts: bool
) -> None:
    """The one that hung goes on when the Pod has its node, and sells nothing twice."""
    stuck = await Stuck.from_kubeconfig(setting.plane.kubeconfig)
    stuck.sends, stuck.arrived, stuck.goes_on = sends, asyncio.Event(), asyncio.Event()
    extender, informers = sharing(Client(stuck))
    hangs = replace(setting.elsewhere(), extender=extender)
    async with AsyncExitStack() as ends, at_work(informers.run(), extender.run()):
        ends.push_async_callback(stuck.close)
        await until(extender.ready, SECONDS)
        first = await ends.enter_async_context(AsyncExitStack())
        await first.enter_async_context(answering(hangs))
        async with scheduler(hangs, tmp_path, program=program, shipped=SHARED_CONFIG) as name:
            await asks(setting, name, "job", 16)
            await asyncio.wait_for(stuck.arrived.wait(), SECONDS)
            if restarts:
                stopping = asyncio.ensure_future(first.aclose())
                await stopping
                await ends.enter_async_context(answering(replace(setting, port=hangs.port)))
            index = await card(setting, "job")
            stuck.goes_on.set()
            await asks(setting, name, "other", 16)
            assert {index, await card(setting, "other")} == {"0", "1"}
            await asks(setting, name, "third", 1)
            await told(setting, "third", "1 Insufficient aliyun.com/gpu-mem")
            await until(lambda: _holds(setting, "job", "other"), SECONDS)
