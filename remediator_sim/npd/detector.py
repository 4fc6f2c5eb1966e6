"""The node-problem-detector of one simulated node: its monitors, and what it publishes of them."""

import asyncio
from collections.abc import Mapping, Sequence

from remediator.clock import SYSTEM, Clock
from remediator.kube.wire.client import Client
from remediator_sim.npd import plugin
from remediator_sim.npd.config import Monitor, Rule
from remediator_sim.npd.exporter import Exporter
from remediator_sim.npd.monitor import repeat
from remediator_sim.npd.runner import Processes, Runner
from remediator_sim.npd.status import conclude, initial

HEARTBEAT = 300.0


class NodeProblemDetector:
    """Runs the programs of `monitors` and keeps the node's conditions; `run` it as a task and cancel it to end it.

    `env` is all that a program sees of the environment; `heartbeat`, in seconds, is how long the conditions may go
    without being sent; `runner` starts the programs and may be shared by many nodes.
    """

    def __init__(
        self,
        client: Client,
        node_name: str,
        monitors: Sequence[Monitor],
        *,
        env: Mapping[str, str],
        heartbeat: float = HEARTBEAT,
        runner: Runner | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._monitors, self._env, self._runner, self._clock = monitors, env, runner or Processes(), clock
        self._exporter = Exporter(client, node_name, heartbeat, clock)

    async def run(self) -> None:
        """Detect and publish until cancelled; then no program that it started is left."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._exporter.run())
            for monitor in self._monitors:
                group.create_task(self._watch(monitor))

    async def _watch(self, monitor: Monitor) -> None:
        conditions = initial(monitor, self._clock.wall())
        if not monitor.skip_initial_status:
            self._exporter.tell(monitor.source, conditions)

        async def one(rule: Rule) -> None:
            nonlocal conditions
            result = await plugin.run(monitor, rule, self._runner, self._env)
            conditions, events = conclude(monitor, conditions, result, self._clock.wall())
            self._exporter.tell(monitor.source, conditions, events)

        await repeat(monitor, one)
