"""One run of the demo: inject the faults, let the system work, compare every end with what is expected."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from remediator.clock import SYSTEM, Clock
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.kube.api.builtin import LEASE
from remediator_sim.controller import COMMAND
from remediator_sim.invariants import SIMULATED, Checked
from remediator_sim.scenarios.ending import FaultEnding
from remediator_sim.scenarios.environment import BREAKER, Environment
from remediator_sim.scenarios.fleet import ALL
from remediator_sim.scenarios.scenarios import Scenario, scenarios
from remediator_sim.scenarios.summary import FaultOutcome, Summary
from remediator_sim.scenarios.tui import FaultRow
from remediator_sim.scenarios.view import CASES, ViewLine

CRASH = "controller-crash"
AT_WORK = 3  # nodes that are being repaired when the controller is killed
UNFINISHED = FaultEnding("Unfinished", ("it had not ended when time was up",))


@dataclass(slots=True)
class Progress:
    """One fault on its way. `start` is monotonic; `done` once people have done all that the scenario asks of them."""

    scenario: Scenario
    start: float
    done: bool = False
    ending: FaultEnding | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class DemoRunner:
    """One run.

    `command` starts the controller, which is killed in the middle if `crashing`; `only` runs some scenarios;
    `patience` is in seconds.
    """

    directory: Path
    console: Console
    nodes: int = ALL
    command: Sequence[str] = COMMAND
    only: Sequence[str] = ()
    breaker: Breaker = BREAKER
    crashing: bool = True
    patience: float = 120.0
    clock: Clock = SYSTEM
    progress: list[Progress] = field(default_factory=list)
    last_lines: dict[str, ViewLine] = field(default_factory=dict)  # by node
    crash: Progress | None = None
    _issues: dict[int, bool] = field(default_factory=dict)  # number → open, as reported

    async def run(self, environment: Environment) -> Summary:
        """Inject every fault, wait for every end, check everything once more."""
        start = self.clock.monotonic()
        for scenario in scenarios(environment.readers()):
            if not self.only or scenario.name in self.only:
                self.progress.append(Progress(scenario, self.clock.monotonic()))
                await scenario.inject(environment)
        crashing = asyncio.ensure_future(self._crash(environment) if self.crashing else asyncio.sleep(0))
        try:
            while not self._over(environment, crashing) and self.clock.monotonic() - start < self.patience:
                await self._step(environment)
                await environment.view.changed(0.2)
        finally:
            crashing.cancel()
            if crashing.done() and not crashing.cancelled():
                crashing.result()
        await environment.observer.final_check()
        return self._summary(environment, environment.observer.report(), self.clock.monotonic() - start)

    def rows(self) -> list[FaultRow]:
        """Every fault as it stands."""
        return [self._row(progress) for progress in self.progress]

    def note(self, line: ViewLine) -> None:
        """Remember the newest line of a node."""
        self.last_lines[line.node] = line

    # --- running -----------------------------------------------------------------------------------------------------

    async def _step(self, environment: Environment) -> None:
        self._report_issues(environment)
        for progress in self.progress:
            if not progress.done:
                progress.done = await progress.scenario.step(environment)
            if progress.ending is None and progress.done:
                progress.ending = progress.scenario.ending(environment)
                progress.seconds = self.clock.monotonic() - progress.start
                if progress.ending is not None:
                    text = "; ".join(progress.ending.wrong) or "as expected"
                    environment.report(ViewLine(progress.scenario.subject, progress.ending.outcome, text))

    def _report_issues(self, environment: Environment) -> None:
        shared = {issue.number for issue in environment.shared_issues()}
        for issue in environment.issues():
            if self._issues.get(issue.number) != issue.open:
                self._issues[issue.number] = issue.open
                reason = "IssueOpened" if issue.open else "IssueClosed"
                subject = "nfs" if issue.number in shared else issue.title.partition(":")[0]
                environment.report(ViewLine(subject, reason, f'"{issue.title}" {environment.link(issue)}'))

    def _over(self, environment: Environment, crashing: "asyncio.Future[None]") -> bool:
        """Whether nothing is left to wait for; a controller that ended by itself ends the run, too."""
        ended = all(progress.ending is not None for progress in self.progress)
        return (ended and crashing.done()) or (environment.controller.ended and self.crash is None)

    async def _crash(self, environment: Environment) -> None:
        """In the middle of the repairs the controller is killed; another one goes on where it stopped."""
        wanted = min(AT_WORK, len(self.progress))
        while sum(_at_work(case) for case in environment.view.all(CASES)) < wanted:
            await environment.view.changed(0.5)
        self.crash = Progress(self.progress[0].scenario, self.clock.monotonic())
        killed = environment.controller.name
        environment.report(ViewLine("controller", "Killed", f"on purpose: {killed}, with {wanted} nodes in repair"))
        await environment.controller.kill()
        environment.observer.killed()
        await environment.controller.start()
        while await self._leader(environment) != environment.controller.name:
            await environment.view.changed(0.2)
        self.crash.seconds = self.clock.monotonic() - self.crash.start
        self.crash.ending = FaultEnding("Resumed")
        environment.report(ViewLine("controller", "Resumed", f"{environment.controller.name} leads"))

    async def _leader(self, environment: Environment) -> str:
        leases = await environment.client.list_all(LEASE, namespace=names.SYSTEM_NAMESPACE)
        return next((lease.spec.holder_identity for lease in leases if lease.metadata["name"] == "remediator"), "")

    # --- reporting ---------------------------------------------------------------------------------------------------

    def _row(self, progress: Progress) -> FaultRow:
        scenario, ending = progress.scenario, progress.ending
        place = scenario.nodes[0] if len(scenario.nodes) == 1 else f"{len(scenario.nodes)} nodes"
        if ending is not None:
            text = "; ".join(ending.wrong) or scenario.text
            return FaultRow(scenario.name, place, ending.outcome, text, progress.seconds)
        line = self.last_lines.get(scenario.subject, ViewLine("", "", scenario.text))
        return FaultRow(scenario.name, place, line.reason, line.text, None)

    def _summary(self, environment: Environment, checked: Mapping[str, Checked], seconds: float) -> Summary:
        return Summary(
            faults=[*map(_outcome, self.progress), *([_crashed(self.crash)] if self.crashing else [])],
            seconds=seconds,
            reboots=sum(len(environment.reboots(node)) for node in environment.hosts),
            evictions=environment.evictions(),
            issues=environment.reported_issues(),
            invariants={name: check for name, check in checked.items() if check.checks or name not in SIMULATED},
            advised=environment.extender.asked,
            placements=environment.placements,
            packing=environment.packing,
            violations=[str(violation) for violation in environment.github.violations],
            whole=not self.only,
        )


def _at_work(case: dict[str, dict[str, object]]) -> bool:
    return case.get("status", {}).get("phase") in ("Operating", "Verifying")


def _outcome(progress: Progress) -> FaultOutcome:
    scenario, ending = progress.scenario, progress.ending or UNFINISHED
    return FaultOutcome(scenario.name, scenario.nodes, ending.outcome, progress.seconds, ending.wrong, scenario.text)


def _crashed(crash: Progress | None) -> FaultOutcome:
    if crash is None or crash.ending is None:
        return FaultOutcome(CRASH, (), "Unfinished", 0.0, ("no other controller took over",), "")
    return FaultOutcome(CRASH, (), crash.ending.outcome, crash.seconds, (), "killed in the middle; another one went on")
