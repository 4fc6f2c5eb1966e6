"""The fleet as the extender sees it: one row per node, from the watches of this replica, leader or not."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import structlog

from remediator.clock import Clock
from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.core.spare import NOTHING, PodHolding
from remediator.core.trust import own_ages, untimely
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer, synced
from remediator.metrics import Contained
from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.gang.siblings import Siblings
from remediator.scheduler.gang.topology import Topology
from remediator.scheduler.health.book import FailureBook
from remediator.scheduler.health.case_summary import repaired_recently
from remediator.scheduler.health.history import level
from remediator.scheduler.health.node_cases import NodeCases
from remediator.scheduler.health.node_health import health
from remediator.scheduler.health.policy_index import PolicyIndex
from remediator.scheduler.health.silence import silent_conditions
from remediator.scheduler.holdings import Holdings
from remediator.scheduler.mps import mps
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.shared.books import Books

SOON = 0.05  # seconds until what events say is judged, if no request comes before: who repairs the node goes first
ROUND_SECONDS = 60.0  # evidence grows old and repairs are forgotten without any event
PODS_SLICE = 500
MOST_ALIKE = 4096  # rows that are shared; thousands of nodes share few
SLICE = 20  # nodes judged without letting a request in
log = structlog.get_logger(__name__)


class TimedFacts(NamedTuple):
    """All of a node's verdict that time changes without any event."""

    untimely: tuple[tuple[str, bool], ...]
    own_ages: tuple[bool, ...]
    silent: tuple[str, ...]
    repaired_recently: bool
    history: int


class Fleet:
    """Follows nodes, Pods, cases and policies; `on_row(name, old, new)` tells of each node whose row has changed.

    `on_judged()` is called after some rows, or `paused`, may have changed; `on_placed(holding)` for each Pod that
    takes GPUs, or CPU of a node with GPUs.

    `domains`: labels of nodes, from the narrowest domain to the widest (see gang/topology.py).
    Nothing is judged before every list is complete, and `complete` is set when all are. It watches all Pods by itself.
    `books`: what is known of GPUs that Pods share; None where that is off.
    """

    def __init__(
        self,
        informers: Informers,
        on_row: Callable[[str, NodeState | None, NodeState | None], None],
        on_judged: Callable[[], None],
        clock: Clock,
        domains: Sequence[str] = (),
        on_placed: Callable[[PodHolding], None] = lambda _: None,
        books: Books | None = None,
    ) -> None:
        self.rows: dict[str, NodeState] = {}
        self._alike: dict[NodeState, NodeState] = {}
        self.complete = asyncio.Event()
        self._known = False  # whether every list is complete
        self._on_row, self._on_judged, self._on_placed, self._clock = on_row, on_judged, on_placed, clock
        self._books = books
        self.holdings = Holdings()
        self._cases = NodeCases()
        self.siblings = Siblings()
        self.topology = Topology(domains)
        self._failures = FailureBook()
        self._policy_index: PolicyIndex | None = None  # None once a policy has changed
        self._judged_on: dict[str, TimedFacts] = {}  # by node, when its row was made
        self._due: dict[str, None] = {}  # nodes that events have told of since they were judged
        self._timer: asyncio.TimerHandle | None = None
        self._policies_changed = asyncio.Event()
        self._nodes, self._policies = informers.nodes, informers.policies
        pods = informers.gpu_pods
        self._pods, self._pause = pods, informers.pause
        self._informers: tuple[Informer[Any], ...] = (self._nodes, self._policies, informers.cases, pods)
        self._nodes.on_change(self._on_node)
        self._nodes.on_view(self.topology.moved)
        self._policies.on_change(self._on_policy)
        self._policies.on_view(self._on_policy_view)
        informers.cases.on_change(self._on_case)
        pods.on_change(self._on_pod)
        self._pause.on_change(lambda *_: self._judge_soon(()))
        if books is not None:
            self._informers = (*self._informers, *books.informers)
            books.on_node(lambda name: self._judge_soon([name]))

    async def run(self) -> None:
        """Judge nodes, from when everything is known until cancelled."""
        await synced(*self._informers)
        self._known = True
        names = self._nodes.keys()
        for at in range(0, len(names), SLICE):
            self._judge(names[at : at + SLICE])
            await asyncio.sleep(0)
        await self._tell_all_placed()
        self.complete.set()
        self._on_judged()
        log.info("extender synced", nodes=len(self.rows))
        try:
            await self._keep_judging()
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def look(self) -> None:
        """Judge every node at once, for a command that has read all lists and follows nothing."""
        self._known = True
        self._judge(self._nodes.keys())

    async def _tell_all_placed(self) -> None:
        """Pods that were there before us, in an order of their own, which is the same in every replica."""
        pods = [pod for key in sorted(self._pods.keys()) if (pod := self._pods.get(key)) is not None]
        for at in range(0, len(pods), PODS_SLICE):
            for pod in pods[at : at + PODS_SLICE]:
                self._tell_placed(pod)
            await asyncio.sleep(0)

    def fresh(self) -> bool:
        """Whether everything is known and every watch shows signs of life."""
        return self.complete.is_set() and all(informer.fresh() for informer in self._informers)

    @property
    def paused(self) -> bool:
        """Whether somebody stopped everything new; where that cannot be read, nobody did."""
        return any(pause.paused for pause in self._pause)

    def stand(self, rows: Mapping[str, NodeState]) -> None:
        """Take these rows for all that is known, instead of following a cluster."""
        for name, row in rows.items():
            self._put(name, row)
        self.complete.set()

    def row(self, node: Node) -> NodeState:
        """The row of a node as somebody else describes it, with what we know of its cases and Pods."""
        now = self._clock.wall()
        return self._row(node, self._history(node.name, now), now)

    # --- events ------------------------------------------------------------------------------------------------------

    def _on_node(self, key: str, old: Node | None, new: Node | None) -> None:
        self._judge_soon([key])

    def _on_case(self, key: str, old: Case | None, new: Case | None) -> None:
        now, case = self._clock.wall(), new or old
        if self._failures.put(key, new, now) and case is not None:
            self._judge_soon([case.node])
        if names := self._cases.moved(key, old, new, now):
            self._judge_soon(names)

    def _on_pod(self, key: str, old: PodHolding | None, new: PodHolding | None) -> None:
        """GPUs change hands; health has nothing to do with it, so nothing is judged anew."""
        old, new = old or NOTHING, new or NOTHING
        if old == new:
            return
        self.siblings.moved(old, new)
        self.holdings.moved(old, new)
        for name in dict.fromkeys((old.node, new.node)):
            used, row, node = self.holdings.gpus(name), self.rows.get(name), self._nodes.get(name)
            if row is not None:
                self._put(name, row._replace(used=used, cpu=self.holdings.free_cpu(node) if node else row.cpu))
        if self._known and new.node != old.node:
            self._tell_placed(new)

    def _tell_placed(self, holding: PodHolding) -> None:
        """Pods without GPUs count where they take CPU from GPUs; those of a DaemonSet are on every node, wherever."""
        node = self._nodes.get(holding.node)
        if (holding.gpus or (node is not None and node.gpus)) and not holding.daemon:
            self._on_placed(holding)

    def _on_policy(self, key: str, old: Policy | None, new: Policy | None) -> None:
        """Status and versions of a policy change often; what it says of nodes, seldom."""
        if old is None or new is None or old.watches != new.watches:
            self._policies_changed.set()

    def _on_policy_view(self, old: Policy | None, new: Policy | None) -> None:
        self._policy_index = None

    @property
    def _asked(self) -> PolicyIndex:
        """What policies ask now."""
        if self._policy_index is None:
            self._policy_index = PolicyIndex(self._policies)
        return self._policy_index

    # --- judging -----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Judge all that events have told of. Before each answer, so that none rests on less than the watches know."""
        self._judge_due(len(self._due))

    def _judge_soon(self, names: Iterable[str]) -> None:
        """Several events of a node are judged once, and after the pass of the controller that they ask for."""
        if not self._known:
            return
        self._due.update(dict.fromkeys(names))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SOON, self._judge_due, SLICE)

    def _judge_due(self, most: int) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        names = list(islice(self._due, most))
        for name in names:
            del self._due[name]
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(0.0, self._judge_due, SLICE) if self._due else None
        self._judge(names)

    def _judge(self, names: Iterable[str], *, aged: bool = False) -> None:
        """Make these rows anew; with `aged`, only those that time may have changed."""
        if not (self._known or self.complete.is_set()):
            return
        now = self._clock.wall()
        for name in names:
            with Contained("verdict", name):
                self._cases.forget_old(name, now)
                self._failures.forget_old(name, now)
                node = self._nodes.get(name)
                facts = self._timed_facts(node, now) if node else None
                if aged and facts is not None and facts == self._judged_on.get(name):
                    continue
                self._put(name, self._row(node, facts.history, now) if node and facts else None)
                self._note(name, facts)
        if self.complete.is_set():
            self._on_judged()

    def _timed_facts(self, node: Node, now: datetime) -> TimedFacts:
        return TimedFacts(
            untimely(node, now),
            own_ages(node, self._asked.own_ages, now),
            silent_conditions(node, now),
            any(repaired_recently(case, now) for case in self._cases.of(node.name)),
            self._history(node.name, now),
        )

    def _history(self, name: str, now: datetime) -> int:
        return level(self._failures.counted(name, self._asked.repairing, now))

    def _note(self, name: str, facts: TimedFacts | None) -> None:
        if facts is None:
            self._judged_on.pop(name, None)
        else:
            self._judged_on[name] = facts

    def _row(self, node: Node, history: int, now: datetime) -> NodeState:
        reason = (
            VerdictReason.CLAIMED if node.case_uid else VerdictReason.HEALTH_UNKNOWN
        )  # of one that cannot be judged
        with Contained("verdict", node.name):
            reason = health(node, self._cases.of(node.name), self._asked, now)
        facts, cpu = facts_of(node.labels), self.holdings.free_cpu(node)
        cards = self._books.cards(node) if self._books else None
        return NodeState(reason, node.gpus, self.holdings.gpus(node.name), facts, history, cpu, cards, mps(node, now))

    def _put(self, name: str, row: NodeState | None) -> None:
        old = self.rows.get(name)
        if old == row:
            return
        row = self._shared(row) if row is not None else None
        self._on_row(name, old, row)  # stored after it, so that one that raises is told again
        if row is None:
            del self.rows[name]
        else:
            self.rows[name] = row

    def _shared(self, row: NodeState) -> NodeState:
        """The row that nodes which are alike share, so that a new shape of Pod meets it once."""
        if len(self._alike) >= MOST_ALIKE and row not in self._alike:
            self._alike.clear()
        return self._alike.setdefault(row, row)

    async def _keep_judging(self) -> None:
        """What time may have changed once a minute, a few nodes at a time; all of them when a policy has changed.

        Rows, too: that of a node that has gone may rest on a write of ours, which the watch never shows. And nodes of
        which only cases are left.
        """
        while True:
            hurried = self._policies_changed.is_set()
            self._policies_changed.clear()
            names = list(
                dict.fromkeys((*self._nodes.keys(), *self.rows, *self._cases.nodes(), *self._failures.nodes()))
            )
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
