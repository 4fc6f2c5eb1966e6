"""Looks at the nodes of cases that wait for Pods to end, by live lists: nobody watches the Pods of all nodes for it."""

import asyncio
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog

from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import CaseView
from remediator.core import idle
from remediator.core.idle import Work
from remediator.core.reasons import Reason
from remediator.kube.api import decode
from remediator.kube.api.builtin import POD, USER_PODS, on_node
from remediator.kube.wire.client import Client
from remediator.kube.wire.errors import ApiError
from remediator.metrics import Contained

log = structlog.get_logger()
EVERY = timedelta(seconds=25)  # a node on which Pods work is looked at again after this time
MOST, WITHIN = 50, timedelta(seconds=10)  # so many lists in so much time, whatever the size of the fleet


async def work_on(client: Client, node: str, operations_namespace: str, now: datetime) -> Work:
    """Which Pods work on a node, read live. Raises ApiError."""
    listed = await client.list_all(POD, fields=on_node(node), limit=USER_PODS)
    return Work(idle.working(map(decode.user_pod, listed), operations_namespace, now), now)


class IdleLooks:
    """Keeps `working` of the cache up to date for the cases that are about to begin their first attempt."""

    def __init__(self, cache: ClusterCache, client: Client) -> None:
        self._cache, self._client = cache, client
        self._made: deque[datetime] = deque()  # when lists were made lately
        self._looked: dict[str, datetime] = {}  # when each case that waits had its last look, by its uid

    async def look(self, views: Iterable[CaseView], now: datetime) -> float | None:
        """List the Pods where it is time to; seconds until the next look, where some node has to wait for its turn.

        That a node is idle is believed in one pass only: in the next one a Pod may have come. Whose last look, whatever
        it has found, lies furthest back is looked at first: of N nodes each has its turn within N/5 seconds.
        """
        waiting = {view.case.uid: view.case.node for view in views if about_to_begin(view, now)}
        known = self._cache.working
        for uid in [uid for uid, work in known.items() if uid not in waiting or not work.pods]:
            del known[uid]
        self._looked = {uid: at for uid, at in self._looked.items() if uid in waiting and at <= now}
        due = sorted((uid for uid in waiting if _old(known.get(uid), now)), key=self._turn)
        room = self._room(now)
        await asyncio.gather(*(self._list(uid, waiting[uid], now) for uid in due[:room]))
        return WITHIN.total_seconds() if len(due) > room else None

    def _room(self, now: datetime) -> int:
        """How many lists may be made now; those that a clock which was set back puts into the future do not count."""
        while self._made and not now - WITHIN < self._made[0] <= now:
            self._made.popleft()
        return MOST - len(self._made)

    def _turn(self, uid: str) -> float:
        """The time of its last look; one that had none comes first, and so does one whose look a clock has made up."""
        looked = self._looked.get(uid)
        return looked.timestamp() if looked is not None else 0.0

    async def _list(self, uid: str, node: str, now: datetime) -> None:
        self._made.append(now)
        self._looked[uid] = now
        with Contained("idle", node):
            try:
                self._cache.working[uid] = await work_on(self._client, node, self._cache.namespaces.operations, now)
            except ApiError as error:
                log.warning("Pods of a node not listed: nothing starts on it", node=node, answer=str(error))


def about_to_begin(view: CaseView, now: datetime) -> bool:
    """Whether nothing but Pods that work, as far as a case itself can tell, keeps it from its first attempt."""
    if view.policy is None or not idle.waits(view.case, view.policy, now, view.absences):
        return False
    return all(block.reason is Reason.WAITING_FOR_IDLE for block in view.stops)


def _old(work: Work | None, now: datetime) -> bool:
    return work is None or not timedelta(0) <= now - work.at < EVERY
