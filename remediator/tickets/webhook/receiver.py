"""Stores what Alertmanager posts in Tickets before it answers. It does not wait for GitHub."""

import asyncio
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

import structlog
from msgspec.structs import replace

from remediator.clock import Clock
from remediator.core.alerts import node_names
from remediator.core.ticket import Alert, Subject, Ticket, late_refires
from remediator.kube.api.builtin import NODE
from remediator.kube.runtime.turns import by_few, in_parts, sliced
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets import metrics
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.routes import Routes
from remediator.tickets.reconcile.store import SLICE, TicketStore
from remediator.tickets.webhook.destination import BadParameter, NotAllowed, destination
from remediator.tickets.webhook.payload import ParsedAlert, alerts_in
from remediator.tickets.webhook.posted import BadPayload
from remediator.tickets.webhook.subject import of_alert

log = structlog.get_logger()
WRITERS = 16  # tickets written at once: a delivery may name 500 nodes, and Alertmanager waits 10 s
READERS = 16  # nodes looked up at once; apart from the writers, who must not wait for a slow look-up
LATER_SECONDS = 5


class Result(Enum):
    """How a delivery went."""

    STORED = "stored"
    BAD = "bad"
    LATER = "later"
    INVALID = "invalid"  # a parameter of its URL
    FORBIDDEN = "forbidden"  # where that leads


@dataclass(frozen=True, slots=True)
class Received:
    """The answer to one delivery; `message` is for the user who reads Alertmanager's log."""

    result: Result
    message: str = ""


class Receiver:
    """Takes deliveries on every replica. `ready` says whether the caches are fresh, `clock` when.

    Where Alertmanagers are asked what fires (`asked`), only they say that an alert has ended.
    """

    def __init__(
        self,
        client: Client,
        store: TicketStore,
        ready: Callable[[], bool],
        clock: Clock,
        *,
        asked: bool = False,
        routes: Routes | LiveRoutes | None = None,
    ) -> None:
        self._client, self._store, self._ready, self._clock, self._asked = client, store, ready, clock, asked
        self._routes = routes
        # Of all deliveries together: `by_few` bounds what one of them has under way, and many may come at once.
        self._writers, self._readers = asyncio.Semaphore(WRITERS), asyncio.Semaphore(READERS)

    async def receive(self, body: bytes, parameters: Sequence[tuple[str, str]] = ()) -> Received:
        """Store one delivery. The same one twice, at once or in another order ends in the same Tickets.

        `parameters` of its URL say where its issues should go.
        """
        received = await self._received(body, parameters, self._clock.now())  # the time before any waiting here
        metrics.DELIVERIES.labels(received.result.value).inc()
        return received

    async def _received(self, body: bytes, parameters: Sequence[tuple[str, str]], now: datetime) -> Received:
        try:
            alerts = await _read(body)
            alerts = await self._led(alerts, parameters, now) if parameters else alerts
        except NotAllowed as error:
            return Received(Result.FORBIDDEN, str(error))
        except BadParameter as error:
            return Received(Result.INVALID, str(error))
        except BadPayload as error:
            return Received(Result.BAD, str(error))
        if not self._ready():
            return Received(Result.LATER, "the caches are not fresh yet")
        believed = [parsed async for parsed in sliced(alerts, SLICE) if parsed.alert.firing or not self._asked]
        failure = await self._stored(believed, now)
        if failure is not None:
            log.warning("alerts are to be sent again", failed=str(failure), alerts=len(alerts))
            return Received(Result.LATER, f"later: {failure}")
        firing = sum([parsed.alert.firing async for parsed in sliced(alerts, SLICE)])
        for word, count in (("firing", firing), ("resolved", len(alerts) - firing)):
            metrics.ALERTS.labels(word).inc(count)
        return Received(Result.STORED, f"{len(alerts)} alerts")

    async def _led(
        self, alerts: Iterable[ParsedAlert], parameters: Sequence[tuple[str, str]], now: datetime
    ) -> list[ParsedAlert]:
        """The alerts with what the URL says of their issues. Raises NotAllowed and BadParameter."""
        routes = self._routes.current(now) if self._routes else None
        to = destination(parameters, routes.url if routes else (), routes.problem if routes else lambda route: "")
        return [
            replace(parsed, alert=dataclasses.replace(parsed.alert, destination=to))
            async for parsed in sliced(alerts, SLICE)
        ]

    async def _stored(self, alerts: Collection[ParsedAlert], now: datetime) -> errors.ApiError | None:
        """Write every Ticket, whatever happens to one; the first failure, None where all is durable."""
        try:
            groups = await self._grouped(alerts)
        except errors.ApiError as failure:
            return failure
        # No write is left behind, also where Alertmanager hangs up: `_store_group` returns what fails, so each group is
        # tried, and `by_few` ends only once all that it began have ended. A write that went on could store these
        # alerts after those of the next delivery.
        failures = await by_few(lambda group: self._store_group(*group, now), list(groups.items()), WRITERS)
        return next((failure for failure in failures if failure is not None), None)

    async def _grouped(self, alerts: Collection[ParsedAlert]) -> Mapping[Subject, list[Alert]]:
        names = {name async for parsed in sliced(alerts, SLICE) for name in node_names(parsed.labels)}
        nodes = await self._nodes(names)
        groups: defaultdict[Subject, list[Alert]] = defaultdict(list)
        async for parsed in sliced(alerts, SLICE):
            groups[self._subject(parsed, nodes)].append(parsed.alert)
        return groups

    def _subject(self, parsed: ParsedAlert, nodes: Set[str]) -> Subject:
        """A node that came after its alert changes nothing: the alert goes on where it is held as firing."""
        alone = of_alert(parsed.labels, ())
        ticket = self._store.cache.ticket(alone.name)
        held = ticket.alerts if ticket else ()
        if any(alert.firing and alert.fingerprint == parsed.alert.fingerprint for alert in held):
            return alone
        return of_alert(parsed.labels, nodes)

    async def _nodes(self, names: Set[str]) -> Set[str]:
        """Which of the names are nodes; what the cache does not know is read, once. Raises ApiError."""
        known = {name async for name in sliced(names, SLICE) if self._store.cache.knows_node(name)}
        unknown = sorted(names - known)
        answers = await by_few(self._exists, unknown, READERS)
        return known | {name for name, exists in zip(unknown, answers, strict=True) if exists}

    async def _exists(self, node: str) -> bool:
        async with self._readers:
            try:
                await self._client.get(NODE, node)
            except (errors.NotFound, errors.Invalid):  # no node, and what cannot be one
                return False
            return True

    async def _store_group(self, subject: Subject, alerts: list[Alert], now: datetime) -> errors.ApiError | None:
        """Why the alerts of one subject are to be sent again, or None.

        After a 200 Alertmanager sends nothing for a whole repeat_interval. What is refused it repeats, in the end as
        things are then: an alert that fires again is still firing when the window has passed.
        """
        async with self._writers:
            try:
                before = await self._store.merge(subject, alerts, now)
            except errors.ApiError as failure:
                return failure
        late = {} if self._asked or before is None else await _late(before, alerts, now)
        ended = ", ".join(f"alert {alert.name} ended at {alert.ended:%Y-%m-%d %H:%M:%S} UTC" for alert in late.values())
        return errors.Unavailable(0, "LateRefire", f"{ended}; send again whether it fires") if late else None


async def _read(body: bytes) -> list[ParsedAlert]:
    """The alerts of a delivery. Raises BadPayload."""
    alerts: list[ParsedAlert] = []
    async for parsed in sliced(alerts_in(body), SLICE):
        if parsed is None:
            await asyncio.sleep(0)
        else:
            alerts.append(parsed)
    return alerts


async def _late(before: Ticket, alerts: Collection[Alert], now: datetime) -> Mapping[str, Alert]:
    """The ends that may be newer than what was received, by fingerprint, however often that came."""
    late: dict[str, Alert] = {}
    async for part in in_parts(alerts, SLICE):
        late |= {alert.fingerprint: alert for alert in late_refires(before.alerts, part, now)}
    return late
