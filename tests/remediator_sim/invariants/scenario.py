"""Scenarios in which a whole controller, in memory, has to keep each invariant; each gives what the observer found."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from remediator import clock
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader
from remediator.scheduler.extender import Extender
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile.run import Tickets
from remediator_sim.github import FakeGitHub
from remediator_sim.invariants import Checked, Observer, SeenIssue, issues
from remediator_sim.invariants.contract import Obj
from tests.harness.controller import SYSTEM, Answer, ControllerHarness, now, reboot_in_vain, running, until
from tests.harness.kinds import NAMESPACES, NODES
from tests.harness.replica import an_extender, at_work

GRACE, SETTLE = 0.3, 2.5  # seconds; a busy machine takes one to clear up
LIMIT = 40.0  # seconds: more than any one wait of a scenario has
STARTS = 4
REPOSITORY = "org/repo"
MINE = {"key": "maintenance", "value": "alice", "effect": "PreferNoSchedule"}


class ObservedCluster(ControllerHarness):
    """A controller on an API server in memory, with an issue tracker and an extender where a test wants them."""

    def __init__(self) -> None:
        super().__init__()
        self.issues: Callable[[], list[SeenIssue]] = list
        self.extender: Extender | None = None

    async def ask(self, pod: Obj, names: Sequence[str]) -> Obj:
        """What the extender says to a filter call."""
        if self.extender is None:
            raise ValueError("there is no extender")
        body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}).encode()
        return json.loads(self.extender.filter(body))


@asynccontextmanager
async def watched(harness: ObservedCluster) -> AsyncIterator[Observer]:
    """An observer at work until the block is left; then its last look."""
    seconds = {"grace": GRACE, "settle": SETTLE, "bound": 15.0}
    limits = {word: timedelta(seconds=count) for word, count in seconds.items()}
    around = {"issues": lambda: harness.issues(), "extender": harness.ask}
    window = timedelta(seconds=60)
    observer = Observer(harness.server, breaker_starts=STARTS, breaker_window=window, every=0.1, **around, **limits)
    task = asyncio.ensure_future(observer.run())
    try:
        yield observer
        await observer.final_check()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        observer.close()


@asynccontextmanager
async def place() -> AsyncIterator[ObservedCluster]:
    """As `laboratory`: nodes beat, kubelets work."""
    harness = ObservedCluster()
    tasks = [asyncio.ensure_future(work) for work in (harness.heart(), harness.kubelets())]
    try:
        yield harness
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def controller(
    harness: ControllerHarness, identity: str = "one", **more: Any
) -> contextlib.AbstractAsyncContextManager[object]:
    return running(harness, identity, breaker=Breaker(STARTS, timedelta(seconds=60)), **more)


async def nodes(harness: ControllerHarness, count: int, budget: int) -> None:
    """Healthy nodes under one budget, long enough for it to count."""
    await harness.policy(cooldown="0s")
    await harness.budget("all", budget)
    for index in range(1, count + 1):
        await harness.node(f"gpu-{index}")
    await asyncio.sleep(2 * GRACE)


async def fail(harness: ControllerHarness, *names: str) -> None:
    for name in names:
        await harness.condition(name, "True")


async def repaired(harness: ControllerHarness, *names: str) -> None:
    await until(lambda: all(harness.ended(name, "Recovered") for name in names))


async def long_after() -> None:
    """As long as the observer waits until all must be cleared away."""
    await asyncio.sleep(SETTLE + 0.3)


async def everything(harness: ObservedCluster, observer: Observer) -> None:
    """Three faults under a budget of two, a node that is Unknown, a person's taint, and a kill during the drains."""
    await nodes(harness, 5, 2)
    await harness.change(NODES, "gpu-1", spec={"taints": [MINE]})
    observer.person_set("gpu-1", taints=[MINE])
    await harness.condition("gpu-4", "Unknown")
    harness.answer("drain", Answer(exit=None))
    async with controller(harness):
        await fail(harness, "gpu-1", "gpu-2", "gpu-3")
        await until(lambda: harness.ran.count("drain gpu-1") and harness.ran.count("drain gpu-2"))
    observer.killed()
    harness.answer("drain", Answer())
    await harness.finish("drain")
    await harness.finish("drain")
    async with controller(harness, "two"):
        await repaired(harness, "gpu-1", "gpu-2", "gpu-3")
        await long_after()


async def more_than_the_budget(harness: ObservedCluster, observer: Observer) -> None:
    await nodes(harness, 3, 1)
    async with controller(harness):
        await fail(harness, "gpu-1", "gpu-2", "gpu-3")
        await repaired(harness, "gpu-1", "gpu-2", "gpu-3")


async def one_slow_reboot(harness: ObservedCluster, observer: Observer) -> None:
    await nodes(harness, 1, 1)
    harness.answer("reboot", Answer(exit=None))
    async with controller(harness):
        await fail(harness, "gpu-1")
        await until(lambda: harness.ran.count("reboot gpu-1"))
        await asyncio.sleep(1.5)  # a Pod that is not there is made again a second later
        await harness.boot("gpu-1")
        await harness.condition("gpu-1", "False")
        await repaired(harness, "gpu-1")


async def an_unknown_condition(harness: ObservedCluster, observer: Observer) -> None:
    await nodes(harness, 2, 2)
    await harness.condition("gpu-2", "Unknown", since=now())
    await asyncio.sleep(2 * GRACE)
    async with controller(harness):
        await fail(harness, "gpu-1")
        await repaired(harness, "gpu-1")


async def more_than_the_breaker(harness: ObservedCluster, observer: Observer) -> None:
    await nodes(harness, STARTS + 1, STARTS + 1)
    async with controller(harness):
        await fail(harness, *(f"gpu-{index}" for index in range(1, STARTS + 2)))
        await until(lambda: sum(harness.ended(f"gpu-{index}", "Recovered") for index in range(1, STARTS + 2)) >= STARTS)


async def a_pause(harness: ObservedCluster, observer: Observer) -> None:
    await nodes(harness, 1, 1)
    await harness.change(NAMESPACES, SYSTEM, metadata={"annotations": {names.PAUSED: "by alice"}})
    async with controller(harness):
        await asyncio.sleep(2 * GRACE)
        await fail(harness, "gpu-1")
        await asyncio.sleep(2 * GRACE)
        await harness.change(NAMESPACES, SYSTEM, metadata={"annotations": {names.PAUSED: None}})
        await repaired(harness, "gpu-1")


async def one_fault(harness: ObservedCluster, observer: Observer) -> None:
    await nodes(harness, 1, 1)
    async with controller(harness):
        await fail(harness, "gpu-1")
        await until(lambda: harness.phase("gpu-1") == "Recovered")
        await long_after()


async def a_taint_of_a_person(harness: ObservedCluster, observer: Observer) -> None:
    await nodes(harness, 1, 1)
    await harness.change(NODES, "gpu-1", spec={"taints": [MINE]})
    observer.person_set("gpu-1", taints=[MINE])
    async with controller(harness):
        await fail(harness, "gpu-1")
        await repaired(harness, "gpu-1")


async def a_kill(harness: ObservedCluster, observer: Observer) -> None:
    await nodes(harness, 1, 1)
    harness.answer("drain", Answer(exit=None))
    async with controller(harness):
        await fail(harness, "gpu-1")
        await until(lambda: harness.ran.count("drain gpu-1"))
    observer.killed()
    harness.answer("drain", Answer())
    await harness.finish("drain")
    async with controller(harness, "two"):
        await repaired(harness, "gpu-1")


async def an_issue(harness: ObservedCluster, observer: Observer) -> None:
    """With a ticket from the start, filed while the case waits."""
    await harness.policy(mode="Paused", ticket={"when": "Always"})
    await harness.node("gpu-1")

    def tickets(informers: Informers, leader: Leader) -> Tickets:
        return Tickets(harness.client, channel, Routes(Route(REPOSITORY)), informers, leader, clock.SYSTEM)

    async with FakeGitHub([REPOSITORY]) as github, channel_to(github) as channel, controller(harness, beside=tickets):
        harness.issues = lambda: issues(github, REPOSITORY)
        await fail(harness, "gpu-1")
        await until(lambda: github.issues(REPOSITORY))
        await asyncio.sleep(2 * GRACE)


@asynccontextmanager
async def channel_to(github: FakeGitHub) -> AsyncIterator[GitHub]:
    """The writer to this GitHub."""
    with TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text(github.token)
        channel = GitHub(github.url, GithubTokenFile(token), clock.SYSTEM, spacing=0.0)
        try:
            yield channel
        finally:
            await channel.aclose()


async def questions_of_a_scheduler(harness: ObservedCluster, observer: Observer) -> None:
    """While a case holds one of two nodes."""
    await nodes(harness, 2, 1)
    harness.extender, informers = an_extender(harness.client)
    harness.answer("drain", Answer(exit=None))
    async with at_work(informers.run(), harness.extender.run()), controller(harness):
        await fail(harness, "gpu-1")
        await until(lambda: harness.ran.count("drain gpu-1"))
        await asyncio.sleep(3 * GRACE)
        await harness.finish("drain")
        await repaired(harness, "gpu-1")


async def a_fault_that_returns(harness: ObservedCluster, observer: Observer) -> None:
    harness.answer("reboot", Answer(exit=137, does=reboot_in_vain))
    await harness.policy(verify={"settle": "1s", "fresh": "1s", "timeout": "1s"})
    await harness.budget("all", 1)
    await harness.node("gpu-1")
    async with controller(harness):
        await fail(harness, "gpu-1")
        await until(lambda: harness.phase("gpu-1") == "Escalated" or len(_attempts(harness, "gpu-1")) > 2)


def _attempts(harness: ControllerHarness, node: str) -> list[object]:
    return [one for case in harness.cases(node) for one in case.get("status", {}).get("attempts", ())]


Scenario = Callable[[ObservedCluster, Observer], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {
    "I1": more_than_the_budget,
    "I2": one_slow_reboot,
    "I3": an_unknown_condition,
    "I4": more_than_the_breaker,
    "I4-pause": a_pause,
    "I5": one_fault,
    "I6": a_taint_of_a_person,
    "I7": a_kill,
    "I8": an_issue,
    "I9": questions_of_a_scheduler,
    "I10": a_fault_that_returns,
}


async def observed(scenario: Scenario, *, broken: bool = False) -> Mapping[str, Checked]:
    """What the observer says of a scenario, which may take 40 seconds. One that a `broken` product cannot finish is
    checked by what came until then."""
    borne = (AssertionError, TimeoutError) if broken else ()
    async with place() as harness, watched(harness) as observer:
        with contextlib.suppress(*borne):
            await asyncio.wait_for(scenario(harness, observer), LIMIT)
    return observer.report()
