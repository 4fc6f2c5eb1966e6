"""The performance: let the faults strike, let the system work, hold every end against the story."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.kube.runtime.elector import LEASE
from remediator_sim.invariants import Checked
from remediator_sim.scenarios.controller import COMMAND
from remediator_sim.scenarios.ending import Ending
from remediator_sim.scenarios.environment import BREAKER, REPOSITORY, Stage
from remediator_sim.scenarios.scenarios import Chapter, chapters
from remediator_sim.scenarios.summary import Outcome, Summary
from remediator_sim.scenarios.tui import Row
from remediator_sim.scenarios.view import CASES, Line

CRASH = "controller-crash"
AT_WORK = 3  # nodes that are being repaired when the controller is killed


@dataclass(slots=True)
class Progress:
    """One fault on its way."""

    chapter: Chapter
    begun: float = 0.0
    done: bool = False  # whether people have done all that the story asks of them
    ending: Ending | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class Show:
    """One performance.

    `command` starts the controller, which is killed in the middle if `crashing`; `only` plays some chapters; `patience`
    is in seconds.
    """

    directory: Path
    console: Console
    nodes: int = 24
    command: Sequence[str] = COMMAND
    only: Sequence[str] = ()
    breaker: Breaker = BREAKER
    crashing: bool = True
    patience: float = 120.0
    playing: list[Progress] = field(default_factory=list)
    words: dict[str, Line] = field(default_factory=dict)  # what was last said of each node
    crash: Progress | None = None

    async def play(self, stage: Stage) -> Summary:
        """Let every fault strike, wait for every end, look at everything once more."""
        begun = time.monotonic()
        self.playing = [Progress(chapter) for chapter in self._chapters(stage)]
        for playing in self.playing:
            playing.begun = time.monotonic()
            await playing.chapter.strike(stage)
        crashing = asyncio.ensure_future(self._crash(stage) if self.crashing else asyncio.sleep(0))
        try:
            while not self._over(stage, crashing) and time.monotonic() - begun < self.patience:
                await self._step(stage)
                await stage.view.changed(0.2)
        finally:
            crashing.cancel()
            if crashing.done() and not crashing.cancelled():
                crashing.result()
        await stage.observer.final_check()
        return self._summary(stage, stage.observer.report(), time.monotonic() - begun)

    def rows(self) -> list[Row]:
        """Every fault as it stands."""
        return [self._row(one) for one in self.playing]

    def hear(self, line: Line) -> None:
        """What was last said of a node."""
        self.words[line.node] = line

    # --- playing -----------------------------------------------------------------------------------------------------

    def _chapters(self, stage: Stage) -> list[Chapter]:
        return [one for one in chapters(stage.readers()) if not self.only or one.name in self.only]

    async def _step(self, stage: Stage) -> None:
        for one in self.playing:
            if not one.done:
                one.done = await one.chapter.step(stage)
            if one.ending is None and one.done:
                one.ending = one.chapter.ending(stage)
                one.seconds = time.monotonic() - one.begun
                if one.ending is not None:
                    node = one.chapter.nodes[0] if len(one.chapter.nodes) == 1 else "nfs"
                    stage.tell(Line(node, one.ending.outcome, "; ".join(one.ending.wrong) or "as the story tells"))

    def _over(self, stage: Stage, crashing: "asyncio.Future[None]") -> bool:
        """Whether nothing is left to wait for; a controller that ended by itself ends the show, too."""
        told = all(one.ending is not None for one in self.playing)
        return (told and crashing.done()) or (stage.controller.ended and self.crash is None)

    async def _crash(self, stage: Stage) -> None:
        """In the middle of the repairs the controller is killed; another one goes on where it stopped."""
        wanted = min(AT_WORK, len(self.playing))
        while sum(_at_work(case) for case in stage.view.all(CASES)) < wanted:
            await stage.view.changed(0.5)
        self.crash = Progress(self.playing[0].chapter, time.monotonic())
        killed = stage.controller.name
        stage.tell(Line("controller", "Crashed", f"{killed} is killed with {wanted} nodes in repair"))
        await stage.controller.kill()
        stage.observer.killed()
        await stage.controller.start()
        while await self._leader(stage) != stage.controller.name:
            await stage.view.changed(0.2)
        self.crash.seconds = time.monotonic() - self.crash.begun
        self.crash.ending = Ending("Resumed")
        stage.tell(Line("controller", "Resumed", f"{stage.controller.name} leads"))

    async def _leader(self, stage: Stage) -> str:
        leases = await stage.client.list_all(LEASE, namespace=names.SYSTEM_NAMESPACE)
        return next((one.spec.holder_identity for one in leases if one.metadata["name"] == "remediator"), "")

    # --- telling -----------------------------------------------------------------------------------------------------

    def _row(self, one: Progress) -> Row:
        nodes = one.chapter.nodes
        place = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes"
        if one.ending is not None:
            text = "; ".join(one.ending.wrong) or one.chapter.tells
            return Row(one.chapter.name, place, one.ending.outcome, text, one.seconds)
        said = self.words.get(nodes[0])
        return Row(one.chapter.name, place, said.word if said else "", said.text if said else one.chapter.tells, None)

    def _summary(self, stage: Stage, checked: Mapping[str, Checked], seconds: float) -> Summary:
        issues = list(stage.github.issues(REPOSITORY))
        return Summary(
            faults=[*map(_outcome, self.playing), *([_crashed(self.crash)] if self.crashing else [])],
            seconds=seconds,
            reboots=sum(len(host.reboots()) for host in stage.hosts.values()),
            evictions=stage.evictions(),
            opened=len(issues),
            closed=sum(not issue.open for issue in issues),
            invariants=checked,
            scheduled=stage.extender.asked,
            violations=[str(found) for found in stage.github.violations],
            whole=not self.only,
        )


def _at_work(case: dict[str, dict[str, object]]) -> bool:
    return case.get("status", {}).get("phase") in ("Operating", "Verifying")


def _outcome(one: Progress) -> Outcome:
    wrong = one.ending.wrong if one.ending else ("it had not ended when time was up",)
    word = one.ending.outcome if one.ending else "Unfinished"
    return Outcome(one.chapter.name, one.chapter.nodes, word, one.seconds, wrong, one.chapter.tells)


def _crashed(crash: Progress | None) -> Outcome:
    if crash is None or crash.ending is None:
        return Outcome(CRASH, (), "Unfinished", 0.0, ("no other controller took over",), "")
    return Outcome(CRASH, (), crash.ending.outcome, crash.seconds, (), "killed in the middle; another one went on")
