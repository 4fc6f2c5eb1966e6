"""No card is sold twice and no reservation leaks: whoever binds, dies, is slow, or hears nothing."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from tests.harness.waiting import until
from tests.remediator.scheduler.shared.stand import Object, Replica, Stand

SEEDS = [*range(20), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 1000))]
LATER = timedelta(minutes=5)


async def test_of_eight_binders_for_one_card_exactly_one_gets_it() -> None:
    async with Stand(n=(16,)).working(replicas=8) as stand:
        pods = [await stand.make_pod(f"p{each}", 16) for each in range(8)]
        answers = await asyncio.gather(
            *(replica.bind(pod, "n") for replica, pod in zip(stand.replicas, pods, strict=True))
        )
        assert sorted(Counter(answers).values()) == [1, 7], answers
        assert [answer.partition(":")[0] for answer in answers if answer] == ["NoFreeGpuMemory"] * 7
        assert list(stand.bound().values()) == ["n/0"]
        assert list(stand.ledger("n")) == list(stand.bound())


async def test_a_kill_between_reservation_and_bind_costs_the_card_until_the_sweep_and_no_longer() -> None:
    async with Stand(n=(16,)).working(replicas=2) as stand:
        killed, other = stand.replicas
        first, second = await stand.make_pod("first", 16), await stand.make_pod("second", 16)
        killed.wire.held = asyncio.Event()
        dying = asyncio.ensure_future(killed.bind(first, "n"))
        await stand.reserved("first")
        killed.wire.dead = True
        await stand.seen()
        await other.sweep.once()
        assert (await other.bind(second, "n")).startswith("NoFreeGpuMemory"), "the first bind may still count"
        stand.ahead += LATER
        await other.sweep.once()
        assert stand.ledger("n") == {}
        assert await other.bind(second, "n") == ""
        dying.cancel()


async def test_a_bind_that_was_under_way_when_its_reservation_was_taken_back_is_refused() -> None:
    async with Stand(n=(16,)).working(replicas=2) as stand:
        slow, other = stand.replicas
        first, second = await stand.make_pod("first", 16), await stand.make_pod("second", 16)
        slow.wire.held = asyncio.Event()
        late = asyncio.ensure_future(slow.bind(first, "n"))
        await stand.reserved("first")
        await stand.seen()
        stand.ahead += LATER
        await other.sweep.once()
        assert await other.bind(second, "n") == ""
        slow.wire.held.set()
        assert (await late).startswith("NoFreeGpuMemory")
        assert stand.bound() == {"second": "n/0"}


async def test_a_replica_that_hears_nothing_any_more_sells_no_card_that_others_have_sold_and_takes_none_back() -> None:
    async with Stand(n=(16,)).working(replicas=2) as stand:
        stale, other = stand.replicas
        stale.watches.arrives.clear()
        first, second = await stand.make_pod("first", 16), await stand.make_pod("second", 16)
        assert await other.bind(first, "n") == ""
        assert (await stale.bind(second, "n")).startswith("NoFreeGpuMemory")
        stand.ahead += LATER
        await stale.sweep.once()
        assert stand.ledger("n") == {"first": [(0, 16)]}, "its cache has neither the Pod nor the ledger"
        await stand.delete_pod("first")
        await other.sweep.once()
        await until(lambda: not other.books.pods("n"), 10)
        await other.sweep.once()
        assert await stale.bind(second, "n") == ""
        assert (stand.bound(), stand.ledger("n")) == ({"second": "n/0"}, {"second": [(0, 16)]})


async def test_a_second_bind_of_a_pod_gets_the_cards_of_the_first() -> None:
    async with Stand(n=(16, 16)).working(replicas=2) as stand:
        slow, other = stand.replicas
        pod = await stand.make_pod("p", 8)
        slow.wire.held = asyncio.Event()
        late = asyncio.ensure_future(slow.bind(pod, "n"))
        await stand.reserved("p")
        assert await other.bind(pod, "n") == ""
        slow.wire.held.set()
        assert await late == "", "the Pod is bound"
        assert stand.bound() == {"p": "n/0"}
        assert stand.ledger("n") == {"p": [(0, 8)]}


async def test_a_refused_bind_takes_its_reservation_back_at_once() -> None:
    async with Stand(n=(16,)).working() as stand:
        (replica,) = stand.replicas
        pod = await stand.make_pod("p", 8)
        stand.server.faults.refuse(403, when=lambda asked: asked.path.endswith("/binding"))
        assert "403" in await replica.bind(pod, "n")
        assert (stand.ledger("n"), stand.bound()) == ({}, {})


async def test_binds_that_wait_for_a_ledger_are_written_into_it_together() -> None:
    async with Stand(n=(8,) * 9).working() as stand:
        (replica,) = stand.replicas
        pods = [await stand.make_pod(f"p{each}", 8) for each in range(9)]
        assert await replica.bind(pods[0], "n") == ""
        writes: list[str] = []

        def noted(asked: Any) -> bool:
            if asked.method == "PATCH":
                writes.append(asked.path)
            return False

        stand.server.faults.refuse(403, when=noted)
        assert await asyncio.gather(*(replica.bind(pod, "n") for pod in pods[1:])) == [""] * 8
        assert len(writes) <= 3, "not one for each of eight"
        assert sorted(stand.bound().values()) == [f"n/{card}" for card in range(9)]
        assert stand.ledger("n").keys() == stand.bound().keys()


async def test_a_bind_whose_answer_is_lost_is_not_taken_back() -> None:
    async with Stand(n=(16,)).working() as stand:
        (replica,) = stand.replicas
        pod = await stand.make_pod("p", 8)
        stand.server.faults.lose(when=lambda asked: asked.path.endswith("/binding"))
        assert await replica.bind(pod, "n") == ""
        assert stand.ledger("n") == {"p": [(0, 8)]}


async def play(stand: Stand, pods: list[Object]) -> None:
    """Binds of every Pod through any replica, to either node, again after failures; some Pods go meanwhile."""
    chance = stand.chance

    async def scheduler(pod: Object) -> None:
        for _ in range(4):
            replica: Replica = chance.choice(stand.replicas)
            if await replica.bind(pod, chance.choice(list(stand.judge.sizes))) == "":
                return
            await asyncio.sleep(0)

    async def user(pod: Object) -> None:
        for _ in range(chance.randrange(200)):
            await asyncio.sleep(0)
        await stand.delete_pod(pod["metadata"]["name"])

    async def time() -> None:
        for _ in range(chance.randrange(40)):
            await asyncio.sleep(0)
        stand.ahead += LATER
        await chance.choice(stand.replicas).sweep.once()

    going = [user(pod) for pod in pods if chance.random() < 0.3]
    twice = [scheduler(pod) for pod in pods if chance.random() < 0.3]
    await asyncio.gather(*(scheduler(pod) for pod in pods), *twice, *going, time(), time())


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_goes_wrong_no_card_is_sold_twice_and_no_reservation_is_left(seed: int) -> None:
    stand = Stand(seed, a=(16,), b=(16, 8))
    async with stand.working(replicas=3) as stand:
        chance = stand.chance
        for replica in stand.replicas[:2]:
            replica.wire.trouble = chance.choice((0.0, 0.1, 0.3))
            replica.wire.dies_at = chance.choice((-1, chance.randrange(1, 80)))
        for replica in stand.replicas:
            if chance.random() < 0.4:  # it hears nothing until all is over
                replica.watches.arrives.clear()
        sizes = (4, 8, 8, 16)
        pods = [await stand.make_pod(f"p{each}", chance.choice(sizes)) for each in range(8)]
        await play(stand, pods)
        stand.ahead += LATER
        for _ in range(2):
            await stand.seen()
            await stand.replicas[2].sweep.once()
        held = [name for node in stand.judge.sizes for name in stand.ledger(node)]
        assert sorted(held) == sorted(stand.bound())
        assert stand.judge.looks > 20
