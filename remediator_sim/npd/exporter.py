"""How conditions and events reach the API server: looked at every second, sent when something is new or it is time."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from remediator.clock import Clock
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.times import stamp
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.npd.status import Condition, ReportedEvent
from remediator_sim.npd.text import on_the_wire, printed
from remediator_sim.plain import NODES, Object, patiently

EVENTS = Kind("", "v1", "events", "Event", Object, namespaced=True)
NAMESPACE = "default"
CHECK = 1.0  # seconds between two looks
RETRY = 10.0  # seconds after a patch that failed
TRIES, PAUSE = 5, 0.01  # of one patch
REMEMBERED = 256  # events that are counted on when they come again
log = logging.getLogger(__name__)


class Exporter:
    """Publishes for one node. `heartbeat`: seconds after which everything is sent though nothing is new."""

    def __init__(self, client: Client, node_name: str, heartbeat: float, clock: Clock) -> None:
        self._client, self._node, self._heartbeat, self._clock = client, node_name, heartbeat, clock
        self._conditions: dict[str, Condition] = {}
        self._fresh = False
        self._events: asyncio.Queue[tuple[str, ReportedEvent]] = asyncio.Queue()
        self._told: dict[tuple[str, ReportedEvent], Object] = {}
        self._named = 0

    def tell(self, source: str, conditions: Iterable[Condition], events: Iterable[ReportedEvent] = ()) -> None:
        """Take note of a monitor's conditions, the newest of each type, and of its events."""
        for condition in conditions:
            self._fresh |= self._conditions.get(condition.type) != condition
            self._conditions[condition.type] = condition
        for event in events:
            self._events.put_nowait((source, event))

    async def run(self) -> None:
        """Publish until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._publish_conditions())
            group.create_task(self._publish_events())

    async def _publish_conditions(self) -> None:
        loop = asyncio.get_running_loop()
        looks, failed = loop.time(), False
        tried = looks - self._heartbeat
        while True:
            looks = max(looks + CHECK, loop.time())
            await asyncio.sleep(looks - loop.time())
            since = loop.time() - tried
            if self._fresh or since >= self._heartbeat or (failed and since >= RETRY):
                tried, self._fresh = loop.time(), False
                failed = not await self._sent()

    async def _sent(self) -> bool:
        """Whether the server has taken all conditions."""
        now = stamp(self._clock.wall())
        body = {"status": {"conditions": [_wire(condition, now) for condition in self._conditions.values()]}}
        for attempt in range(TRIES):
            try:
                await self._client.patch(NODES, self._node, body, subresource="status", content_type=STRATEGIC_PATCH)
            except errors.ApiError as error:
                log.warning("%s: conditions not published (try %d of %d): %s", self._node, attempt + 1, TRIES, error)
                await asyncio.sleep(PAUSE)
            else:
                return True
        return False

    async def _publish_events(self) -> None:
        while True:
            source, event = await self._events.get()
            try:
                await self._record(source, event)
            except errors.ApiError as error:
                log.warning("%s: event %s dropped: %s", self._node, event.reason, error)

    async def _record(self, source: str, event: ReportedEvent) -> None:
        """Count on the event that is there, or make a new one."""
        now, key = self._clock.wall(), (source, event)
        known = self._told.pop(key, None)
        told = await self._counted(known, now) if known else None
        self._told[key] = told or await self._created(self._body(source, event, now))
        if len(self._told) > REMEMBERED:
            del self._told[next(iter(self._told))]

    async def _counted(self, known: Object, now: datetime) -> Object | None:
        """The event, seen once more; None where it is gone."""
        change = {"count": known["count"] + 1, "lastTimestamp": stamp(now)}
        try:
            await patiently(partial(self._client.patch, EVENTS, known["metadata"]["name"], change, namespace=NAMESPACE))
        except errors.NotFound:
            return None
        return {**known, **change}

    async def _created(self, body: Object) -> Object:
        with suppress(errors.AlreadyExists):  # the answer to an earlier try was lost
            await patiently(partial(self._client.create, EVENTS, body, namespace=NAMESPACE))
        return body

    def _body(self, source: str, event: ReportedEvent, now: datetime) -> Object:
        self._named = max(self._named + 1, int(now.timestamp() * 1e9))
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{self._node}.{self._named:x}", "namespace": NAMESPACE},
            "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": self._node},
            "type": "Warning" if event.warning else "Normal",
            "reason": event.reason,
            "message": on_the_wire(printed(event.message)),
            "firstTimestamp": stamp(now),
            "lastTimestamp": stamp(now),
            "count": 1,
            "source": {"component": source, "host": self._node},
            "reportingComponent": source,
            "reportingInstance": self._node,
        }


def _wire(condition: Condition, now: str) -> dict[str, Any]:
    """A condition for a patch: an empty reason or message is left out, so that the node keeps the one before."""
    body = {
        "type": condition.type,
        "status": condition.status,
        "lastHeartbeatTime": now,
        "lastTransitionTime": stamp(condition.transition),
        "reason": on_the_wire(condition.reason),
        "message": on_the_wire(condition.message),
    }
    return {key: value for key, value in body.items() if value or key not in ("reason", "message")}
