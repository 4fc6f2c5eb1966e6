"""Tickets over the embedded server, a channel in memory whose faults are scripted, and a clock turned by hand."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from remediator.clock import Clock
from remediator.core.names import Namespaces
from remediator.core.ticket import About, Alert, NewestAlerts, Subject, Ticket, bounded
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.informers import Informers
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.floods.limits import FloodLimits
from remediator.tickets.floods.line import OpeningQueue
from remediator.tickets.reconcile.actions import ACTIONS
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.observe import Times
from remediator.tickets.reconcile.reconciler import TicketReconciler
from remediator.tickets.reconcile.store import TicketStore
from remediator.tickets.webhook.receiver import Received, Receiver
from remediator_sim.apiserver import EmbeddedServer
from tests.harness.cluster import MemoryCluster, with_kinds
from tests.harness.kinds import CASES, NODES, POLICIES
from tests.remediator.tickets.memory_channel import START, MemoryChannel

PAYLOADS = Path(__file__).parents[1] / "remediator/tickets/payloads"
GPU = Subject(About.NODE, node="gpu-17")


def payload(name: str) -> bytes:
    """A delivery as a real Alertmanager made it."""
    return (PAYLOADS / f"{name}.json").read_bytes()


def delivery(*alerts: dict[str, Any], truncated: int = 0) -> bytes:
    """A delivery of these alerts."""
    status = "firing" if any(alert["status"] == "firing" for alert in alerts) else "resolved"
    return json.dumps({"version": "4", "status": status, "alerts": alerts, "truncatedAlerts": truncated}).encode()


def merged(known: Iterable[Alert], received: Iterable[Alert], now: datetime) -> tuple[Alert, ...]:
    """What a Ticket holds after one delivery, in one step."""
    newest = NewestAlerts(known, now)
    newest.add(received)
    return bounded(newest)


def fires(name: str = "NodeDown", node: str = "gpu-17", minute: int = 0, **labels: str) -> dict[str, Any]:
    """One alert that fires since `minute`; its fingerprint follows from name, node and labels."""
    marks = {"alertname": name, "node": node, "severity": "warning"} | labels
    return {
        "status": "firing",
        "labels": {key: value for key, value in marks.items() if value},
        "annotations": {"summary": f"{name} on {node}"},
        "startsAt": (START + timedelta(minutes=minute)).isoformat(),
        "endsAt": "0001-01-01T00:00:00Z",
        "fingerprint": f"{name}-{node}-{labels.get('gpu', '')}",
    }


def ends(name: str = "NodeDown", node: str = "gpu-17", minute: int = 0, end: int = 1, **labels: str) -> dict[str, Any]:
    """The same alert, resolved at minute `end`."""
    ended = (START + timedelta(minutes=end)).isoformat()
    return fires(name, node, minute, **labels) | {"status": "resolved", "endsAt": ended}


class TicketHarness(MemoryCluster):
    """One leader. `now` moves only by `later`; caches are read from the server before each round."""

    def __init__(
        self,
        channel: MemoryChannel | None = None,
        server: EmbeddedServer | None = None,
        limits: FloodLimits | None = None,
        **times: timedelta,
    ) -> None:
        self.now = START
        self.clock = Clock(lambda: self.now, lambda: 0.0)
        super().__init__(server or EmbeddedServer(clock=self.clock, like=with_kinds()))
        self.channel = channel or MemoryChannel()
        self.channel.clock = lambda: self.now
        self.routes = Routes(
            Route("org/default", ("ops",), ("ann",)), {"gpu": Route("org/gpu", ("gpu",))}, cluster="prod"
        )
        self.leads, self.limits = True, limits
        self.world = TicketCache(Informers(self.client, self.clock, Namespaces()), limits)
        self.store = TicketStore(self.client, self.world)
        self.receiver = Receiver(self.client, self.store, lambda: True, self.clock)
        self.times = Times(**times)
        self.restart()

    def restart(self) -> None:
        """Another process takes over: nothing in memory survives."""
        self.woken: list[Subject] = []
        line = OpeningQueue(self.limits, self.woken.append) if self.limits else None
        self.reconciler = TicketReconciler(
            self.store, self.channel, self.routes, self.times, ACTIONS, lambda: self.leads, line
        )
        self.due: dict[Subject, datetime] = {}

    async def prepare(self) -> None:
        """Some nodes."""
        await self.nodes("gpu-17", "gpu-18", "gpu-0001", "gpu-0002")

    async def nodes(self, *names: str) -> None:
        """More nodes."""
        for name in names:
            await self.client.create(NODES, {"metadata": {"name": name}})

    async def hear(self, body: bytes) -> Received:
        """Alertmanager posts."""
        await self.refresh()
        return await self.receiver.receive(body)

    async def refresh(self) -> None:
        """Bring the caches up to date."""
        informers = Informers(self.client, self.clock, Namespaces())
        self.world = self.store.cache = TicketCache(informers, self.limits)
        await informers.read()

    async def tickets(self) -> list[Ticket]:
        """All Tickets."""
        return [decode.ticket(wire) for wire in await self.client.list_all(api.TICKET)]

    async def ticket(self, subject: Subject = GPU) -> Ticket:
        """One Ticket."""
        return decode.ticket(await self.client.get(api.TICKET, subject.name))

    async def work(self) -> dict[Subject, float | None]:
        """One pass over everything; when each wants to be looked at again, in seconds."""
        await self.refresh()
        waits = {
            subject: await self.reconciler.reconcile(subject, self.now)
            for subject in sorted(self.world.every(), key=repr)
        }
        while self.woken:
            subjects, self.woken[:] = tuple(dict.fromkeys(self.woken)), ()
            waits |= {subject: await self.reconciler.reconcile(subject, self.now) for subject in subjects}
        return waits

    async def later(self, **delta: float) -> dict[Subject, float | None]:
        """Time goes by, then a pass."""
        self.now += timedelta(**delta)
        return await self.work()

    # --- cases -------------------------------------------------------------------------------------------------------

    async def policy(self, name: str = "gpu-lost", **spec: Any) -> None:
        """A policy that has a ticket for each case, unless told otherwise."""
        usual = {
            "mode": "Enforce",
            "nodeSelector": {},
            "allNodes": True,
            "when": [{"condition": "GpuLost", "for": "0s"}],
            "ladder": [{"operation": "reboot", "attempts": 2}],
            "ticket": {"when": "Always", "route": "gpu"},
        }
        await self.make(POLICIES, name, **{k: v for k, v in (usual | spec).items() if v is not None})

    async def case(self, name: str = "case-1", node: str = "gpu-17", policy: str = "gpu-lost", **status: Any) -> None:
        """A case, held unless told otherwise."""
        since, message = START.isoformat(), "GPU 3 has fallen off the bus"
        trigger = {"condition": "GpuLost", "status": "True", "reason": "Xid79", "message": message, "since": since}
        spec = {"nodeName": node, "nodeUID": f"uid-{node}", "policyName": policy, "trigger": trigger}
        await self.make(CASES, name, **spec)
        await self.becomes(name, **{"phase": "Held"} | status)

    async def becomes(self, name: str, phase: str, **status: Any) -> None:
        """What the controller writes of a case."""
        body = {"status": {"phase": phase} | status}
        await self.client.patch(CASES, name, body, subresource="status")

    async def escalates(self, name: str = "case-1") -> None:
        """The ladder has come to its end."""
        await self.becomes(name, "Escalated", reason="LadderExhausted", message="2 of 2 reboots failed")

    async def recovers(self, name: str = "case-1") -> None:
        """The node is well again."""
        ended = (self.now).strftime("%Y-%m-%dT%H:%M:%SZ")
        said = {"reason": "Verified", "message": "good for 5 minutes", "endedAt": ended, "blockedBy": None}
        await self.becomes(name, "Recovered", **said)
