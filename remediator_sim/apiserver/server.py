"""The embedded API server: one cluster, its dispatcher, and the two ways to reach it."""

from collections import deque
from contextlib import AbstractAsyncContextManager
from random import Random

from remediator.clock import SYSTEM, Clock
from remediator_sim.apiserver import budgets, crd, http, namespaces, nodes
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.dispatch import ApiDispatcher, Mutation
from remediator_sim.apiserver.faults import Faults
from remediator_sim.apiserver.transport import MemoryTransport


class EmbeddedServer:
    """A small kube-apiserver in this process.

    `clock` gives the time that objects are stamped with; `seed` makes uids and generated names repeatable;
    `history` is how many changes of each kind are remembered at least; `like` is a server whose kinds and objects are
    there from the beginning, which costs nothing. One instance belongs to one event loop.
    """

    def __init__(
        self,
        *,
        clock: Clock = SYSTEM,
        seed: int | None = None,
        history: int = 2048,
        like: "EmbeddedServer | None" = None,
    ) -> None:
        self.cluster = Cluster(clock, Random(seed), history)
        self.cluster.followers |= {
            "namespaces": namespaces.follow,
            "nodes": nodes.follow,
            "pods": budgets.follow_pod,
            budgets.STORAGE: budgets.follow_budget,
            **dict.fromkeys(("replicasets.apps", "deployments.apps", "statefulsets.apps"), budgets.follow_owner),
            crd.STORAGE: crd.follow,
        }
        if like is None:
            namespaces.begin(self.cluster)
        else:
            self.cluster.registry.adopt(like.cluster.registry)
            self.cluster.store.restore(like.cluster.store.snapshot())
        self.faults = Faults(self.cluster.store.compact)
        self._dispatcher = ApiDispatcher(self.cluster, self.faults)

    @property
    def audit(self) -> deque[Mutation]:
        """The mutating requests that were carried out, oldest first; the newest 100,000."""
        return self._dispatcher.audit

    def transport(self, user: str = "admin") -> MemoryTransport:
        """A transport without a network, for one user."""
        return MemoryTransport(self._dispatcher, user)

    def serve(self, port: int = 0) -> AbstractAsyncContextManager[http.Endpoint]:
        """Listen on https://127.0.0.1 while the context is open; port 0 takes a free one."""
        return http.listen(self._dispatcher, port)
