"""Whether the Lease of a silent kubelet has expired: watched by our own clock, since that of the node may be wrong."""

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from remediator.kube.api.builtin import LEASE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client

NAMESPACE = "kube-node-lease"
USUAL = 40.0  # seconds that a Lease is good for where it does not say
FRESH, FORGET = 5.0, 600.0  # seconds that one look is good for, and until a node that nobody asks about is forgotten
GAP = 60.0  # seconds between two looks, at the longest: in more nobody knows whether a kubelet could renew its Lease
AT_ONCE, MOST = 16, 100  # looks at once, and looks in one pass


@dataclass(slots=True)
class _Seen:
    """The Lease as it was when we first saw it so: its version, how long it is good for, since when, looked at when.

    `begun`: since when it is watched, with no GAP, whatever its version was.
    """

    version: str
    seconds: float
    begun: float
    since: float
    looked: float

    def is_over(self) -> bool:
        """Whether it was found unchanged for as long as it is good for."""
        return self.looked - self.since >= self.seconds


class KubeletLeases:
    """Reads Leases of single nodes, only those that are asked about: a watch would tell of each renewal in the fleet.

    A Lease has expired when looks over as long a time as it is good for have found it unchanged, none of which has
    failed: while the API server is away no kubelet can renew its Lease, so afterwards each has its whole time again.
    What was seen is kept in memory alone: another leader watches anew, which costs it that time.
    """

    def __init__(self, client: Client, monotonic: Callable[[], float]) -> None:
        self._client, self._monotonic = client, monotonic
        self._seen: dict[str, _Seen] = {}

    def clear(self) -> None:
        """Forget what was seen: for a time we did not lead, and may have been cut off from the API server."""
        self._seen.clear()

    async def among(self, nodes: Iterable[str]) -> dict[str, str]:
        """Why the Lease of each of these has not expired, "" where it has; those beyond MOST have their turn later."""
        now = self._monotonic()
        self._seen = {name: seen for name, seen in self._seen.items() if now - seen.looked < FORGET}
        names = sorted(set(nodes), key=lambda name: self._turn(name, now))[:MOST]
        turn = asyncio.Semaphore(AT_ONCE)

        async def look(name: str) -> str:
            async with turn:
                seen = self._seen.get(name)
                recent = seen is not None and now - seen.looked < FRESH
                return self._verdict(name) if recent else await self.alive(name)

        return dict(zip(names, await asyncio.gather(*map(look, names)), strict=True))

    async def alive(self, node: str) -> str:
        """Why the Lease has not expired, read live; "" where it has."""
        try:
            lease = await self._client.get(LEASE, node, namespace=NAMESPACE)
            version, seconds = lease.version, float(lease.spec.lease_duration_seconds or USUAL)
        except errors.NotFound:
            version, seconds = "", USUAL
        except errors.ApiError as error:
            self._seen.pop(node, None)
            return f"its Lease cannot be read: {error}"
        now, seen = self._monotonic(), self._seen.get(node)
        if seen is not None and now - seen.looked > GAP:
            seen = None
        if seen is None or seen.version != version:
            self._seen[node] = _Seen(version, seconds, seen.begun if seen else now, now, now)
        else:
            seen.seconds, seen.looked = seconds, now
        return self._verdict(node)

    def _turn(self, node: str, now: float) -> tuple[bool, float, str]:
        """Whose Lease is looked at first: those that are watched, until it is known; then who waits longest."""
        seen = self._seen.get(node)
        if seen is None:
            return True, -math.inf, node
        known = seen.is_over() or now - seen.looked > GAP or seen.looked - seen.begun > 2 * seen.seconds
        return known, seen.looked, node

    def _verdict(self, node: str) -> str:
        seen = self._seen[node]
        if seen.is_over():
            return ""
        return f"its Lease was renewed, or could not be watched, less than {seen.seconds:g} s ago"
