"""The checker at work: it is given everything that happens around one embedded server."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

import aiohttp

from remediator.clock import SYSTEM, Clock
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.invariants.checker import Checker
from remediator_sim.invariants.contract import Obj
from remediator_sim.invariants.event import FINAL, ISSUES, KILLED, PERSON, PROBE, REBOOT, TICK
from remediator_sim.invariants.feed import Feed
from remediator_sim.invariants.results import Checked
from remediator_sim.invariants.tickets import SeenIssue
from remediator_sim.invariants.tracked import Limits

PAUSE = 0.05  # seconds
PROBE_POD: Obj = {
    "metadata": {"name": "probe", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}

Issues = Callable[[], Iterable[SeenIssue]]
# (pod, names of nodes) → the extender's answer to a filter call; it may raise what HTTP clients raise, or ValueError.
Ask = Callable[[Obj, Sequence[str]], Awaitable[Mapping[str, Any]]]


class ObservedMachine(Protocol):
    """What is looked at of a simulated host."""

    name: str

    def reboots(self) -> list[dict[str, Any]]:
        """{node, attemptID, bootID, time} for each reboot that was asked for, oldest first."""
        ...


class Observer:
    """Watches one embedded server and what stands around it. Make it before the controller starts, `run` it as a task.

    It reads only what everybody outside can read: objects, the journals of machines, issues, answers of the extender.
    `limits` are those of `tracked.Limits`; every `every` seconds it looks at what does not report itself.
    """

    def __init__(
        self,
        server: EmbeddedServer,
        hosts: Iterable[ObservedMachine] = (),
        *,
        breaker_starts: int,
        breaker_window: timedelta,
        issues: Issues | None = None,
        extender: Ask | None = None,
        every: float = 1.0,
        clock: Clock = SYSTEM,
        **limits: timedelta,
    ) -> None:
        self._checker = Checker(Limits(breaker_starts, breaker_window, **limits))
        self._hosts, self._issues, self._extender = list(hosts), issues, extender
        self._feed, self._every, self._clock = Feed(server), every, clock
        self._read: defaultdict[str, int] = defaultdict(int)  # lines of each journal that were taken in
        self._known_issues: list[Obj] = []
        for event in self._feed.standing():
            self._checker.history.take(event)

    async def run(self) -> None:
        """Check until cancelled."""
        next_tick = self._clock.monotonic()
        while True:
            self._drain()
            if self._clock.monotonic() >= next_tick:
                next_tick = self._clock.monotonic() + self._every
                await self._look_around()
                self._pass_time()
            await asyncio.sleep(PAUSE)

    def person_set(
        self,
        node: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Iterable[Obj] = (),
        cordon: bool = False,
    ) -> None:
        """Note what a person has just set on a node: from now on it must stay."""
        marks = {"labels": dict(labels or {}), "annotations": dict(annotations or {}), "taints": list(taints)}
        self._feed.put(PERSON, {"node": node, "cordon": cordon, **marks})

    def killed(self) -> None:
        """Note that the controller was killed just now: what there is must survive."""
        self._feed.put(KILLED)

    async def final_check(self) -> None:
        """Look at everything once more, at the end."""
        await self._look_around()
        self._pass_time()
        self._feed.put(FINAL)
        self._drain()

    def report(self) -> Mapping[str, Checked]:
        """How each promise stands, by its name."""
        return self._checker.report()

    def close(self) -> None:
        """Listen no more."""
        self._feed.close()

    # --- at work -----------------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        for event in self._feed.take():
            self._checker.hear(event)

    def _pass_time(self) -> None:
        self._feed.put(TICK)
        self._drain()

    async def _look_around(self) -> None:
        """Journals, issues, the extender: what tells of itself only when asked."""
        for host in self._hosts:
            for record in host.reboots()[self._read[host.name] :]:
                self._read[host.name] += 1
                self._feed.put(REBOOT, record)
        if self._issues is not None:
            issues = [issue._asdict() for issue in self._issues()]
            if issues != self._known_issues:
                self._known_issues = issues
                self._feed.put(ISSUES, {"issues": issues})
        if self._extender is not None:
            await self._probe(self._extender)

    async def _probe(self, ask: Ask) -> None:
        """Ask about every node. Silence, or saying that it cannot answer yet, is not counted; refusing to answer is."""
        names, answer = list(self._checker.history.nodes), dict[str, Any]()
        try:
            answer |= await ask(PROBE_POD, names)
        except aiohttp.ClientResponseError as refused:
            self._feed.put(PROBE, {"asked": names, "refused": f"{refused.status} {refused.message}"})
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return
        if answer and not any(answer.get(key) for key in ("Error", "error")):
            self._feed.put(PROBE, {"asked": names, "answer": answer})
