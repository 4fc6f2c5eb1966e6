"""The Leases by which controllers of medik8s say who works on a node: taken for cases, renewed, given back."""

from collections.abc import Awaitable, Callable, Iterator, Set
from typing import Any

import structlog

from remediator import metrics
from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Retry
from remediator.controller.perform import DEPOSED, Performer
from remediator.core import node_lease
from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.node_lease import LeaseStanding, LeaseStep, NodeLease
from remediator.kube.api import node_leases
from remediator.kube.api.builtin import LEASE, Lease
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.wire import errors

log = structlog.get_logger()
LOOK = 15.0  # seconds between two looks at all Leases
REFUSED = 300.0  # seconds after which who could read Leases before, and must not now, repairs without
MOVED = Retry(1.0, "the Lease of the node has changed")
KEY = "all"


class NodeLeases:
    """Those in one namespace. Only who leads writes, each time under the version that it has read.

    Who must not read or write them, or has no such namespace, repairs without: that is said in the log and by the
    metric, and no other controller can know of us then.
    """

    def __init__(
        self, namespace: str, cache: ClusterCache, performer: Performer, clock: Clock, admit: Callable[[], None]
    ) -> None:
        self._namespace, self._cache, self._performer, self._clock = namespace, cache, performer, clock
        self._client, self._admit = performer.client, admit
        self._unusable = ""  # why there are none, as far as it was told
        self._refused_since: float | None = None  # by monotonic time: since when we must not ask, though we could
        self._ever_usable = False
        self.queue: LeaderQueue[str] = LeaderQueue(
            "node leases",
            self._pass,
            _everything,
            workers=1,
            informers=lambda: (cache.cases, cache.nodes),
            essential=False,
        )
        cache.cases.on_change(lambda _, old, new: self._on_case(old, new))

    def _on_case(self, old: Case | None, new: Case | None) -> None:
        if old is not None and node_lease.works(old) and (new is None or not node_lease.works(new)):
            self.queue.add(KEY)

    async def take(self, case: Case, node: Node) -> Retry | None:
        """Hold the Lease of the node for the case. None: it may work there; else when to ask again, and why."""
        try:
            lease = await self._read(node.name)
            retry = await self._take(lease, case, node)
        except errors.ApiError as error:
            retry = self._failed(error)
            if retry is not None and retry is not MOVED:
                self._cache.leases_untaken[node.name] = retry.why
                return retry
        self._no_longer_untaken({node.name})
        return retry

    async def _read(self, node: str) -> Lease | None:
        try:
            return await self._client.get(LEASE, node_lease.name(node), namespace=self._namespace)
        except errors.NotFound:
            return None

    async def _take(self, lease: Lease | None, case: Case, node: Node) -> Retry | None:
        now, known = self._clock.now(), node_leases.node_lease(lease) if lease else None
        if known and node_lease.standing(known, case, now) is LeaseStanding.HELD:
            self._cache.lease_holders[node.name] = known.holder
            return Retry(LOOK, node_lease.held(known.holder, node.name))
        match node_lease.step_of_case(known, case, now):
            case LeaseStep.TAKE if lease is None:
                wanted = node_leases.new(node, self._namespace, node_lease.holder(case), now)
                await self._written(lambda: self._client.create(LEASE, wanted, namespace=self._namespace))
            case LeaseStep.TAKE if lease is not None:
                await self._replace(node_leases.taken_over(lease, node, node_lease.holder(case), now))
            case LeaseStep.RENEW if lease is not None:
                await self._replace(node_leases.renewed(lease, now))
        self._usable("")
        return None

    async def _replace(self, lease: Lease) -> None:
        name = lease.metadata["name"]
        await self._written(lambda: self._client.replace(LEASE, name, lease, namespace=self._namespace))

    async def _written(self, write: Callable[[], Awaitable[Any]]) -> None:
        if not self._performer.leads():
            raise errors.Conflict(409, "Conflict", DEPOSED.why)
        await write()

    def _failed(self, error: errors.ApiError) -> Retry | None:
        """What a refusal means: somebody was faster, nobody answers, or there are no such Leases for us."""
        if isinstance(error, errors.Conflict | errors.AlreadyExists):
            return MOVED
        if isinstance(error, errors.NotFound) or (isinstance(error, errors.Forbidden) and self._stays_refused()):
            self._usable(str(error))
            return None
        return Retry(error.retry_after or MOVED.after, f"the Lease of the node: {error}")

    def _stays_refused(self) -> bool:
        """Whether a refusal is more than that of a server that starts, or of a token that is renewed."""
        if not self._ever_usable:
            return True
        now = self._clock.monotonic()
        self._refused_since = now if self._refused_since is None else self._refused_since
        return now - self._refused_since >= REFUSED

    def _usable(self, why_not: str) -> None:
        metrics.NODE_LEASES.set(0 if why_not else 1)
        if why_not and not self._unusable:
            log.warning("Leases of nodes are not taken", namespace=self._namespace, answer=why_not)
        self._unusable = why_not
        if not why_not:
            self._ever_usable, self._refused_since = True, None

    # --- all of them -------------------------------------------------------------------------------------------------

    async def _pass(self, key: str) -> float | None:
        """Renew those of cases that work, give the others back, and see which nodes other systems hold."""
        try:
            leases = await self._client.list_all(LEASE, namespace=self._namespace)
            self._usable("" if leases else self._unusable)
            self._hold(map(node_leases.node_lease, leases))
            for lease in leases:
                await self._keep(lease)
        except errors.ApiError as error:
            if self._failed(error) is None:
                self._hold(iter(()))
                self._no_longer_untaken(set(self._cache.leases_untaken))
            return LOOK
        untaken = self._cache.leases_untaken
        self._no_longer_untaken(untaken.keys() - set(self._nodes()))
        for case in [case for case in self._cache.unfinished if node_lease.works(case) or case.node in untaken]:
            await self._again(case, {lease.spec.holder_identity for lease in leases})
        return LOOK

    def _no_longer_untaken(self, nodes: Set[str]) -> None:
        """What held cases of these nodes is over: they may start."""
        held = [node for node in nodes if self._cache.leases_untaken.pop(node, "")]
        if held:
            self._admit()

    def _hold(self, leases: Iterator[NodeLease]) -> None:
        """Remember who else works where; what nobody holds any more may start."""
        now, before = self._clock.now(), dict(self._cache.lease_holders)
        others = {lease.name: lease.holder for lease in leases if not lease.ours and node_lease.valid(lease, now)}
        held = {node: others[name] for node in self._nodes() if (name := node_lease.name(node)) in others}
        self._cache.lease_holders.clear()
        self._cache.lease_holders.update(held)
        if before != held:
            self._admit()

    def _nodes(self) -> list[str]:
        return [case.node for case in self._cache.unfinished]

    async def _keep(self, lease: Lease) -> None:
        known, now = node_leases.node_lease(lease), self._clock.now()
        match node_lease.step_of_lease(known, self._cache.cases.get(known.case), now):
            case LeaseStep.RENEW:
                await self._one(self._replace(node_leases.renewed(lease, now)))
            case LeaseStep.GIVE_BACK:
                meta, client = lease.metadata, self._client
                which = {"namespace": self._namespace, "uid": meta["uid"], "version": lease.version}
                await self._one(self._written(lambda: client.delete(LEASE, meta["name"], **which)))

    async def _one(self, work: Awaitable[None]) -> None:
        """One Lease that cannot be written waits for the next look, and stops no other."""
        try:
            await work
        except (errors.Conflict, errors.NotFound) as error:
            log.debug("Lease of a node has changed", answer=str(error))
        except errors.Unavailable:
            raise  # of no other either
        except errors.ApiError as error:
            log.warning("Lease of a node cannot be written", answer=str(error))

    async def _again(self, case: Case, holders: set[str]) -> None:
        """What a case has lost while it works is taken again, unless another system has it now."""
        node = self._cache.nodes.get(case.node)
        lost = case.node in self._cache.leases_untaken or node_lease.holder(case) not in holders
        if lost and node is not None and node.uid == case.node_uid:
            await self.take(case, node)


def _everything() -> Iterator[str]:
    yield KEY
