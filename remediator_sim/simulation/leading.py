"""Who holds the Lease of the controllers, and whether a replica that writes may: the Lease and its clock say so."""

from collections.abc import Callable

from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.store import Change, Listener
from remediator_sim.invariants.contract import SYSTEM, Obj, part
from remediator_sim.simulation.clock import HostClock, now

LEASES, NAME = "leases.coordination.k8s.io", "remediator"
# What only the leader writes, as it stands in paths: nodes and Tickets are written by all replicas.
OURS = ("noderemediations", "nodeoperations", "nodedisruptionbudgets", "/pods")
# Seconds that what was sent before may still come, and by which the clock of a leader may be wrong.
ON_ITS_WAY, SOUND, MOVED = 20.0, 31.0, 30.0
Tell = Callable[[str, str], None]


class Leading:
    """Follows the Lease. `tell` is given what is wrong with the lease, and with the clock, of a write; "" for none."""

    def __init__(self, cluster: Cluster, server: HostClock, tell: Tell) -> None:
        self._cluster, self._server, self._tell = cluster, server, tell
        self._lost: dict[str, float] = {}  # when who had led held it no more
        self._holder, self._written, self._lasts = "", now(), 0.0
        cluster.store.collection(LEASES).listen(Listener(None, self._hear, lambda: None))

    def restored(self) -> None:
        """The server was set back: whoever led before may not know of that yet."""
        entry = self._cluster.find(LEASES, SYSTEM, NAME)
        self._lost = dict.fromkeys([*self._lost, self._holder], now())
        self._take(part(entry.obj, "spec") if entry else {})

    def _hear(self, change: Change) -> None:
        meta = change.entry.obj["metadata"]
        if (meta.get("namespace"), meta["name"]) != (SYSTEM, NAME):
            return
        spec, before = part(change.entry.obj, "spec"), self._holder
        early = now() - self._written < self._lasts
        self._take(spec)
        if before and self._holder not in ("", before) and early:
            self._tell(f"{self._holder} took the Lease while {before} held it", "")

    def _take(self, spec: Obj) -> None:
        holder = spec.get("holderIdentity") or ""
        if holder != self._holder:
            self._lost[self._holder] = now()
        self._lost.pop(holder, None)
        self._holder, self._written, self._lasts = holder, now(), float(spec.get("leaseDurationSeconds") or 0)

    def wrote(self, identity: str, clock: HostClock, path: str, asked: float) -> None:
        """A write of a replica goes out, which asked for it then: before it was frozen, or just now."""
        if any(kind in path for kind in OURS):
            wrong = self._without_lease(identity, path, asked), self._wrong(identity, clock, path)
            if any(wrong):
                self._tell(*wrong)

    def _without_lease(self, identity: str, path: str, asked: float) -> str:
        lost = asked - self._lost.get(identity, float("-inf"))
        if identity == self._holder or lost <= ON_ITS_WAY:
            return ""
        return f"{identity} wrote {path}, and {self._holder or 'nobody'} holds the Lease"

    def _wrong(self, identity: str, clock: HostClock, path: str) -> str:
        ahead = clock.ahead - self._server.ahead
        if abs(ahead) <= SOUND or now() - max(clock.moved, self._server.moved) <= MOVED:
            return ""
        return f"{identity} wrote {path} with a clock that is {ahead:.0f} s ahead of the API server's"
