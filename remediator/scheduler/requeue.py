"""Makes kube-scheduler try waiting Pods again when a node that was refused may be used again.

kube-scheduler tries a refused Pod again when an object that it watches changes, otherwise after five minutes. It does
not watch cases, policies or the age of a condition. It may also see a change before us and get an answer from our older
state. So a node that was refused to any Pod gets an annotation once it may be let through: kube-scheduler sees this
change.
"""

from collections.abc import Collection, Set
from contextlib import suppress

from remediator.clock import Clock
from remediator.core import names
from remediator.kube.api import encode
from remediator.kube.api.builtin import NODE
from remediator.kube.runtime.queue import WorkQueue
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.scheduler import metrics
from remediator.scheduler.row import NodeState, proven_again, schedulable_again


class Requeuer:
    """Remembers what was refused until that is over, and says so then, once. Each replica tells of what it refused."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._refused: set[str] = set()
        self._unproven: set[str] = set()  # of these, to Pods that require proven health
        self._queue: WorkQueue[str] = WorkQueue("extender")

    async def run(self) -> None:
        """Mark nodes, one after the other, until cancelled."""
        try:
            await self._queue.run(self._mark, 1)
        finally:
            self._queue.close()

    def refused(self, nodes: Collection[Set[str]], proven: bool = False) -> None:
        """The scheduler has just been told not to take these nodes of the cluster.

        `proven`: for a Pod that requires proven health.
        """
        self._refused.update(*nodes)
        if proven:
            self._unproven.update(*nodes)

    def moved(self, name: str, old: NodeState | None, new: NodeState | None) -> None:
        """What is so of a node has changed; None where there was none, or is none any more."""
        if name not in self._refused or (old and new and not self._again(name, old, new)):
            return
        self._refused.discard(name)
        self._unproven.discard(name)
        if new is not None:
            self._queue.add(name)

    def _again(self, name: str, old: NodeState, new: NodeState) -> bool:
        return schedulable_again(old, new) or (name in self._unproven and proven_again(old, new))

    def let_through(self, names: Collection[str]) -> None:
        """Health refuses these no more, though nothing about them has changed."""
        for name in [name for name in names if name in self._refused]:
            self._refused.discard(name)
            self._queue.add(name)

    async def _mark(self, name: str) -> None:
        """With the time to the microsecond: the same mark again would be no change."""
        mark = encode.annotations({names.SCHEDULABLE_AGAIN_AT: self._clock.wall().isoformat()})
        with suppress(errors.NotFound):
            await self._client.patch(NODE, name, mark)
            metrics.REQUEUED.inc()
