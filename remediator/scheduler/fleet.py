"""The fleet as the extender sees it: one row per node, from the watches of this replica, leader or not."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import structlog

from remediator.clock import Clock
from remediator.core.case import Case
from remediator.core.evidence import untimely
from remediator.core.node import Gpus, Node
from remediator.core.policy import Policy
from remediator.kube.api import gpu_pods
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer, synced
from remediator.metrics import Contained
from remediator.scheduler.verdict import (
    CaseSummary,
    NodeState,
    VerdictReason,
    counts,
    health,
    repaired_recently,
    summary,
)

ROUND_SECONDS = 60.0  # evidence grows old and repairs are forgotten without any event
SLICE = 20  # nodes judged without letting a request in
log = structlog.get_logger(__name__)


class Holding(NamedTuple):
    """The GPUs that one Pod holds. Most Pods hold none, and all of those are this one fact."""

    node: str = ""
    gpus: Gpus = ()

    @property
    def version(self) -> str:
        """None: no write of ours is ever awaited."""
        return ""


NOTHING = Holding()


class TimedFacts(NamedTuple):
    """All of a node's verdict that time changes without any event."""

    untimely: tuple[tuple[str, bool], ...]
    repaired_recently: bool


class Fleet:
    """Follows nodes, Pods, cases and policies; `on_row(name, old, new)` tells of each node whose row has changed.

    `on_judged()` is called after some rows, or `paused`, may have changed.

    Nothing is judged before every list is complete, and `complete` is set when all are. It watches all Pods by itself.
    """

    def __init__(
        self,
        informers: Informers,
        on_row: Callable[[str, NodeState | None, NodeState | None], None],
        on_judged: Callable[[], None],
        clock: Clock,
    ) -> None:
        self.rows: dict[str, NodeState] = {}
        self.complete = asyncio.Event()
        self._known = False  # whether every list is complete
        self._on_row, self._on_judged, self._clock = on_row, on_judged, clock
        self._used: dict[str, Counter[str]] = {}
        self._cases: dict[str, dict[str, CaseSummary]] = {}
        self._judged_on: dict[str, TimedFacts] = {}  # by node, when its row was made
        self._policies_changed = asyncio.Event()
        self._nodes, self._policies = informers.nodes, informers.policies
        pods = informers.watch("gpu-pods", gpu_pods.POD, holding, fields=gpu_pods.RUNNING)
        self._pause = informers.pause
        self._informers: tuple[Informer[Any], ...] = (self._nodes, self._policies, informers.cases, pods)
        self._nodes.on_change(self._on_node)
        self._policies.on_change(self._on_policy)
        informers.cases.on_change(self._on_case)
        pods.on_change(self._on_pod)
        self._pause.on_change(lambda *_: self._judge(()))

    async def run(self) -> None:
        """Judge nodes, from when everything is known until cancelled."""
        await synced(*self._informers)
        self._known = True
        names = self._nodes.keys()
        for at in range(0, len(names), SLICE):
            self._judge(names[at : at + SLICE])
            await asyncio.sleep(0)
        self.complete.set()
        self._on_judged()
        log.info("extender synced", nodes=len(self.rows))
        await self._keep_judging()

    def fresh(self) -> bool:
        """Whether everything is known and every watch shows signs of life."""
        return self.complete.is_set() and all(informer.fresh() for informer in self._informers)

    @property
    def paused(self) -> bool:
        """Whether somebody stopped everything new; where that cannot be read, nobody did."""
        return any(pause.paused for pause in self._pause)

    def row(self, node: Node) -> NodeState:
        """The row of a node as somebody else describes it, with what we know of its cases and Pods."""
        return self._row(node, list(self._policies), self._clock.wall())

    # --- events ------------------------------------------------------------------------------------------------------

    def _on_node(self, key: str, old: Node | None, new: Node | None) -> None:
        self._judge([key])

    def _on_case(self, key: str, old: Case | None, new: Case | None) -> None:
        """Most writes to a case change nothing that placing goes by."""
        before = self._cases.get(old.node, {}).get(key) if old is not None else None
        after = self._summary(new)
        if before == after:
            return
        if before is not None:
            self._forget(key, before.node)
        if after is not None:
            self._cases.setdefault(after.node, {})[key] = after
        self._judge(dict.fromkeys(case.node for case in (before, after) if case is not None))

    def _summary(self, case: Case | None) -> CaseSummary | None:
        """None of a case that placing does not go by any more, of which there are thousands."""
        short = summary(case) if case is not None else None
        return short if short is not None and counts(short, self._clock.wall()) else None

    def _forget_old(self, node: str, now: datetime) -> None:
        """Of its cases, those that time alone has taken out of placing."""
        for key in [key for key, case in self._cases.get(node, {}).items() if not counts(case, now)]:
            self._forget(key, node)

    def _forget(self, key: str, node: str) -> None:
        cases = self._cases.get(node, {})
        cases.pop(key, None)
        if not cases:
            self._cases.pop(node, None)

    def _on_pod(self, key: str, old: Holding | None, new: Holding | None) -> None:
        """GPUs change hands; health has nothing to do with it, so nothing is judged anew."""
        old, new = old or NOTHING, new or NOTHING
        if old == new:
            return
        self._used.setdefault(old.node, Counter()).subtract(dict(old.gpus))
        self._used.setdefault(new.node, Counter()).update(dict(new.gpus))
        for name in dict.fromkeys((old.node, new.node)):
            used, row = self._held(name), self.rows.get(name)
            if row is not None:
                self._put(name, row._replace(used=used))

    def _on_policy(self, key: str, old: Policy | None, new: Policy | None) -> None:
        """Status and versions of a policy change often; what it says of nodes, seldom."""
        if old is None or new is None or old.watches != new.watches:
            self._policies_changed.set()

    # --- judging -----------------------------------------------------------------------------------------------------

    def _judge(self, names: Iterable[str], *, aged: bool = False) -> None:
        """Make these rows anew; with `aged`, only those that time may have changed."""
        if not (self._known or self.complete.is_set()):
            return
        now, policies = self._clock.wall(), list(self._policies)
        for name in names:
            with Contained("verdict", name):
                self._forget_old(name, now)
                node = self._nodes.get(name)
                facts = self._timed_facts(node, now) if node else None
                if aged and facts is not None and facts == self._judged_on.get(name):
                    continue
                self._put(name, self._row(node, policies, now) if node else None)
                self._note(name, facts)
        if self.complete.is_set():
            self._on_judged()

    def _timed_facts(self, node: Node, now: datetime) -> TimedFacts:
        cases = self._cases.get(node.name)
        return TimedFacts(
            untimely(node, now), any(repaired_recently(case, now) for case in cases.values()) if cases else False
        )

    def _note(self, name: str, facts: TimedFacts | None) -> None:
        if facts is None:
            self._judged_on.pop(name, None)
        else:
            self._judged_on[name] = facts

    def _row(self, node: Node, policies: list[Policy], now: datetime) -> NodeState:
        reason = (
            VerdictReason.CLAIMED if node.case_uid else VerdictReason.HEALTH_UNKNOWN
        )  # of one that cannot be judged
        with Contained("verdict", node.name):
            reason = health(node, self._cases.get(node.name, {}).values(), policies, now)
        return NodeState(reason, node.gpus, self._held(node.name))

    def _held(self, name: str) -> Gpus:
        used = +self._used.get(name, Counter())
        if not used:
            self._used.pop(name, None)
        return tuple(sorted(used.items()))

    def _put(self, name: str, row: NodeState | None) -> None:
        old = self.rows.get(name)
        if old == row:
            return
        self._on_row(name, old, row)  # stored after it, so that one that raises is told again
        if row is None:
            del self.rows[name]
        else:
            self.rows[name] = row

    async def _keep_judging(self) -> None:
        """What time may have changed once a minute, a few nodes at a time; all of them when a policy has changed.

        Rows, too: that of a node that has gone may rest on a write of ours, which the watch never shows. And nodes of
        which only cases are left.
        """
        while True:
            hurried = self._policies_changed.is_set()
            self._policies_changed.clear()
            names = list(dict.fromkeys((*self._nodes.keys(), *self.rows, *self._cases)))
            for at in range(0, len(names) or 1, SLICE):
                self._judge(names[at : at + SLICE], aged=not hurried)
                if hurried:
                    await asyncio.sleep(0)
                elif await self._changed_within(ROUND_SECONDS * SLICE / max(len(names), SLICE)):
                    break

    async def _changed_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._policies_changed.wait()
        return False


def holding(wire: gpu_pods.Pod) -> Holding:
    """What a Pod that runs somewhere holds."""
    gpus = gpu_pods.asked(wire)
    return Holding(wire.spec.node_name or "", gpus) if gpus else NOTHING
