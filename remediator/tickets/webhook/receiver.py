"""What Alertmanager posts becomes durable in Tickets before it is answered; GitHub is not waited for."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

import structlog

from remediator.clock import Clock
from remediator.core.ticket import Alert, Subject, Ticket, late_refires, merged
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.api.builtin import NODE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets import metrics
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.subject import of_alert, to_look_up
from remediator.tickets.webhook.payload import BadPayload, ParsedAlert, parse

log = structlog.get_logger()
WRITERS = 16  # tickets written at once: a delivery may name 500 nodes, and Alertmanager waits 10 s
CONFLICTS = 10
LATER_SECONDS = 5


class Result(Enum):
    """How a delivery went."""

    STORED = "stored"
    BAD = "bad"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Received:
    """The answer to one delivery; `message` is for the person who reads Alertmanager's log."""

    result: Result
    message: str = ""


class Receiver:
    """Takes deliveries on every replica. `ready` says whether the caches are fresh, `clock` when."""

    def __init__(self, client: Client, world: TicketCache, ready: Callable[[], bool], clock: Clock) -> None:
        self._client, self._world, self._ready, self._clock = client, world, ready, clock
        self._turns = asyncio.Semaphore(WRITERS)

    async def receive(self, body: bytes) -> Received:
        """Store one delivery. The same one twice, at once or in another order ends in the same Tickets."""
        now = self._clock.now()  # when it was received, before any waiting here
        try:
            found = parse(body)
        except BadPayload as error:
            return self._answer(Received(Result.BAD, str(error)))
        if not self._ready():
            return self._answer(Received(Result.LATER, "the caches are not fresh yet"))
        failed = await self._stored(found, now)
        if failed is not None:
            log.warning("alerts are to be sent again", failed=str(failed), alerts=len(found))
            return self._answer(Received(Result.LATER, f"later: {failed}"))
        for one in found:
            metrics.ALERTS.labels("firing" if one.alert.firing else "resolved").inc()
        return self._answer(Received(Result.STORED, f"{len(found)} alerts"))

    @staticmethod
    def _answer(received: Received) -> Received:
        metrics.DELIVERIES.labels(received.result.value).inc()
        return received

    async def _grouped(self, found: Iterable[ParsedAlert]) -> Mapping[Subject, list[Alert]]:
        exists: dict[str, bool] = {}
        groups: defaultdict[Subject, list[Alert]] = defaultdict(list)
        for one in found:
            for name in to_look_up(one.labels):
                if name not in exists:
                    exists[name] = await self._exists(name)
            nodes = [name for name, there in exists.items() if there]
            groups[of_alert(one.labels, nodes)].append(one.alert)
        return groups

    async def _exists(self, node: str) -> bool:
        try:
            await self._client.get(NODE, node)
        except (errors.NotFound, errors.Invalid):  # no node, and what cannot be one
            return False
        return True

    async def _stored(self, found: Iterable[ParsedAlert], now: datetime) -> errors.ApiError | None:
        """Write every Ticket, whatever happens to one; the first failure, None where all is durable."""
        try:
            groups = await self._grouped(found)
        except errors.ApiError as failed:
            return failed
        writes = (self._write(subject, alerts, now) for subject, alerts in groups.items())
        return next((failed for failed in await asyncio.gather(*writes) if failed is not None), None)

    async def _write(self, subject: Subject, alerts: list[Alert], now: datetime) -> errors.ApiError | None:
        """Merge alerts into the Ticket of a subject; why that could not be done, or None."""
        async with self._turns:
            try:
                return await self._try(subject, alerts, now)
            except errors.ApiError as failed:
                return failed

    async def _try(self, subject: Subject, alerts: list[Alert], now: datetime) -> errors.ApiError | None:
        ticket = self._world.ticket(subject.name)
        for _ in range(CONFLICTS):
            try:
                await self._merge(subject, ticket, alerts, now)
                return _doubt(ticket, alerts, now)
            except (errors.Conflict, errors.AlreadyExists, errors.NotFound):
                ticket = await self._live(subject)
        return errors.Unavailable(0, "Busy", f"Ticket {subject.name} moves faster than we can write")

    async def _merge(self, subject: Subject, ticket: Ticket | None, alerts: list[Alert], now: datetime) -> None:
        """One write, or none where the Ticket says it all already: alerts in it only ever grow newer."""
        if ticket is None:
            wire = await self._client.create(api.TICKET, encode.new_ticket(subject, merged((), alerts, now)))
        else:
            wanted = merged(ticket.alerts, alerts, now)
            if wanted == ticket.alerts:
                return
            wire = await self._client.patch(api.TICKET, ticket.name, encode.with_alerts(ticket, wanted))
        self._world.note(decode.ticket(wire))

    async def _live(self, subject: Subject) -> Ticket | None:
        try:
            return decode.ticket(await self._client.get(api.TICKET, subject.name))
        except errors.NotFound:
            return None


def _doubt(ticket: Ticket | None, alerts: list[Alert], now: datetime) -> errors.ApiError | None:
    """Why a delivery is to be sent again, or None. After a 200 Alertmanager says no word for a whole repeat_interval.

    It repeats what is refused, and in the end as things are then: what fires again is still firing when it is believed.
    """
    found = late_refires(ticket.alerts if ticket else (), alerts, now)
    said = (f"alert {alert.name} ended at {alert.ended:%Y-%m-%d %H:%M:%S} UTC" for alert in found)
    return errors.Unavailable(0, "Doubtful", f"{', '.join(said)}; send again whether it fires") if found else None
