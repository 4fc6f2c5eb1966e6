"""How a replica ends: the Lease first, and an answer for whoever has not heard of it yet."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from remediator import app
from remediator.app import FORGET_SECONDS, Replica
from remediator.clock import SYSTEM, Clock
from remediator.core import names
from remediator.kube.runtime.elector import LEASE
from remediator.process import _until_handed_over
from remediator.settings import Settings
from tests.harness.controller import ControllerHarness, until
from tests.harness.replica import at_work
from tests.harness.scheduler import names_body

SYSTEM_NAMESPACE = names.SYSTEM_NAMESPACE
HERE = "127.0.0.1:0"


class VirtualReplica:
    """One replica in virtual time, and when it began and ceased to listen."""

    def __init__(self, harness: ControllerHarness, name: str) -> None:
        self.listened: list[float] = []
        self.replica = Replica(harness.client, Settings(identity=name), virtual_clock())
        self.replica.endpoints.served = self._served  # type: ignore[method-assign, assignment]

    @asynccontextmanager
    async def _served(self, *_: object) -> AsyncIterator[None]:
        self.listened.append(now())
        try:
            yield
        finally:
            self.listened.append(now())


def now() -> float:
    return asyncio.get_running_loop().time()


def virtual_clock() -> Clock:
    loop, began = asyncio.get_running_loop(), datetime.now(UTC)
    return Clock(lambda: began + timedelta(seconds=loop.time()), loop.time)


async def holder(harness: ControllerHarness) -> str:
    lease = await harness.client.get(LEASE, names.LEASE, namespace=SYSTEM_NAMESPACE)
    return lease.spec.holder_identity


async def after(condition: Callable[[], Any], seconds: float) -> float:
    """When it is true, in virtual time, looked at every hundredth of a second."""
    end = now() + seconds
    while not await condition():
        assert now() < end
        await asyncio.sleep(0.01)
    return now()


@pytest.mark.looptime
async def test_who_ends_gives_the_lease_back_at_once_answers_for_a_second_and_claims_nothing_more() -> None:
    harness = ControllerHarness()
    made = VirtualReplica(harness, "one")
    await harness.policy()
    working = asyncio.ensure_future(made.replica.run())

    async def leads() -> bool:
        return made.replica.leader.is_leader and made.replica.ready()

    async def freed() -> bool:
        return await holder(harness) == ""

    await after(leads, 30)
    assert await holder(harness) == "one"
    asked = now()
    assert made.replica.end()
    assert await after(freed, 0.1) - asked < 0.1
    await harness.node("gpu-1", "True")
    await asyncio.sleep(FORGET_SECONDS - 0.2)
    assert made.replica.extender.filter(names_body(["gpu-1"])), "schedulers are answered"
    assert (len(made.listened), working.done()) == (1, False)
    await working
    assert made.listened[1] - asked == pytest.approx(FORGET_SECONDS, abs=0.05)
    assert (harness.cases("gpu-1"), harness.claims()) == ([], [])


@pytest.mark.looptime
async def test_who_waits_ends_the_same_way_without_a_lease_and_the_leader_goes_on() -> None:
    harness = ControllerHarness()
    first, second = VirtualReplica(harness, "one"), VirtualReplica(harness, "two")
    async with at_work(first.replica.run()):

        async def leads() -> bool:
            return first.replica.leader.is_leader

        async def waits() -> bool:
            return second.replica.ready()

        await after(leads, 30)
        working = asyncio.ensure_future(second.replica.run())
        await after(waits, 30)
        asked = now()
        assert (second.replica.end(), second.replica.end()) == (True, False)
        await working
        assert now() - asked == pytest.approx(FORGET_SECONDS, abs=0.05)
        assert await holder(harness) == "one"


@pytest.mark.looptime
async def test_the_next_replica_leads_within_one_second_of_the_end_of_the_first() -> None:
    """It looks at the Lease each second; its caches are fresh, and nothing but its pass over them is left to do."""
    harness = ControllerHarness()
    first, second = VirtualReplica(harness, "one"), VirtualReplica(harness, "two")
    async with at_work(first.replica.run()):

        async def leads() -> bool:
            return first.replica.leader.is_leader

        async def follows() -> bool:
            return second.replica.leader.is_leader

        await after(leads, 30)
        async with at_work(second.replica.run()):
            await asyncio.sleep(10.5)
            asked = now()
            first.replica.end()
            assert await after(follows, 10) - asked < 1.1


async def test_requests_are_answered_while_readyz_says_that_the_replica_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "FORGET_SECONDS", 600.0)
    harness = ControllerHarness()
    made = Replica(harness.client, Settings(identity="one", listen=HERE, listen_extender=HERE, no_tls=True), SYSTEM)
    async with at_work(made.run()), aiohttp.ClientSession() as session:

        async def get(path: str) -> tuple[int, str]:
            async with session.get(f"http://127.0.0.1:{made.endpoints.ports['probes']}{path}") as answer:
                return answer.status, await answer.text()

        await until(lambda: made.ready() and made.leader.is_leader)
        assert await get("/readyz/extender") == (200, "ok\n")
        made.end()
        await until(lambda: not made.leader.is_leader)
        assert await get("/readyz/extender") == (503, "this replica ends\n")
        assert await get("/readyz") == (503, "extender: this replica ends\ncontroller: this replica ends\n")
        assert (await get("/healthz"))[0] == 200
        url = f"http://127.0.0.1:{made.endpoints.ports['extender']}/scheduler/filter"
        async with session.post(url, data=names_body(["a"])) as answer:
            assert (answer.status, (await answer.json())["NodeNames"]) == (200, ["a"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_one_signal_hands_over_and_a_second_one_ends_the_replica_at_once(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(app, "FORGET_SECONDS", 600.0)
    harness = ControllerHarness()
    made = Replica(harness.client, Settings(identity="one", listen=HERE), SYSTEM)
    working = asyncio.ensure_future(_until_handed_over(made))
    await until(lambda: made.ready() and made.leader.is_leader)
    signal.raise_signal(number)

    async def freed() -> bool:
        return await holder(harness) == ""

    await until(freed)
    assert not working.done()
    signal.raise_signal(number)
    await asyncio.wait({working}, timeout=60)
    assert working.cancelled()
