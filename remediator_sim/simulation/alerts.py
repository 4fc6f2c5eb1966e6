"""Alertmanager: groups of alerts by node, posted to the replicas until each is taken, again later, and twice."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

import msgspec

from remediator.prometheus.alerts import ListedAlert, Listing
from remediator.prometheus.reading import CannotTell, Doubt
from remediator_sim.simulation.clock import now, true_time
from remediator_sim.simulation.hosts import ReplicaHost

WAIT, INTERVAL, REPEAT = 30.0, 60.0, 1200.0  # seconds: group_wait, group_interval, repeat_interval
TWICE, POSTED_AGAIN, BEHIND = 0.2, 0.15, 200.0  # how often the other instance posts too, and a post comes so late again
ANSWER = 0.1  # seconds until it has answered what fires
ZERO = "0001-01-01T00:00:00Z"  # what Alertmanager writes for the end of an alert that fires


@dataclass(slots=True)
class Alert:
    """One alert. `told`: how the newest post that was taken has it: "", firing or resolved."""

    name: str
    node: str
    begun: datetime
    ended: datetime | None = None
    told: str = ""

    @property
    def fingerprint(self) -> str:
        """The same for the same labels."""
        return f"{self.name}-{self.node or 'cluster'}"

    @property
    def status(self) -> str:
        """As it is posted."""
        return "resolved" if self.ended else "firing"

    def listed(self) -> ListedAlert:
        """As an Alertmanager lists it while it fires."""
        labels: dict[str, str] = self.wire()["labels"]
        return ListedAlert(self.fingerprint, labels, {}, self.begun, True, ("remediator",))

    def wire(self) -> dict[str, Any]:
        """As it is posted."""
        labels = {"alertname": self.name, "severity": "critical"} | ({"node": self.node} if self.node else {})
        return {
            "status": self.status,
            "labels": labels,
            "annotations": {"summary": f"{self.name} fires"},
            "startsAt": self.begun.isoformat(),
            "endsAt": self.ended.isoformat() if self.ended else ZERO,
            "fingerprint": self.fingerprint,
        }


@dataclass(slots=True)
class Group:
    """The alerts of one node, by fingerprint."""

    alerts: dict[str, Alert] = field(default_factory=dict)
    posted: float = float("-inf")

    def due(self) -> bool:
        """Whether something is to be posted."""
        changed = any(alert.status != alert.told for alert in self.alerts.values())
        return changed or now() - self.posted >= REPEAT


class Alertmanager:
    """Two instances that know the same alerts, before a Service that leads to the replicas by chance.

    `away`: whether they answer nobody who asks what fires.
    """

    def __init__(self, replicas: list[ReplicaHost], chance: Random, note: Callable[[str, str], None]) -> None:
        self._replicas, self._chance, self._note = replicas, chance, note
        self._groups: dict[str, Group] = {}
        self.away = False
        self._tasks: set[asyncio.Future[Any]] = set()

    def fire(self, name: str, node: str) -> Alert:
        """An alert fires from now on."""
        group = self._groups.get(node)
        if group is None:
            group = self._groups[node] = Group()
            self._spawn(self._keep(node, group))
        alert = Alert(name, node, true_time())
        return group.alerts.setdefault(alert.fingerprint, alert)

    def resolve(self, alert: Alert) -> None:
        """It does not fire any more."""
        alert.ended = alert.ended or true_time()

    def taken(self) -> list[str]:
        """The fingerprints of alerts that fire, and of which a replica has said that it has stored that."""
        alerts = (alert for group in self._groups.values() for alert in group.alerts.values())
        return sorted(alert.fingerprint for alert in alerts if alert.told == alert.status == "firing")

    def listing(self) -> Listing:
        """What fires now, or that nobody can tell."""
        if self.away:
            return CannotTell(Doubt.UNREACHABLE, "it cannot be reached")
        alerts = (alert for group in self._groups.values() for alert in group.alerts.values())
        return tuple(alert.listed() for alert in alerts if alert.ended is None)

    def stop(self) -> None:
        """Post nothing more."""
        for task in list(self._tasks):
            task.cancel()

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(self, node: str, group: Group) -> None:
        """Post a group until all of it is resolved and that was taken."""
        await asyncio.sleep(WAIT)
        while group.alerts:
            if group.due():
                await self._post(group)
            await asyncio.sleep(INTERVAL)
        del self._groups[node]

    async def _post(self, group: Group) -> None:
        body, told = _payload(group), {name: alert.status for name, alert in group.alerts.items()}
        if self._chance.random() < TWICE:
            self._spawn(self._again(body, 0.0))
        if self._chance.random() < POSTED_AGAIN:
            self._spawn(self._again(body, BEHIND))
        status = await self._chance.choice(self._replicas).post(body)
        self._note("alerts", f"{', '.join(f'{name} {word}' for name, word in told.items())}: answer {status}")
        if status == 200:
            group.posted = now()
            for name, word in told.items():
                group.alerts[name].told = word
        over = [name for name, alert in group.alerts.items() if alert.told == "resolved"]
        for name in over:
            del group.alerts[name]

    async def _again(self, body: bytes, seconds: float) -> None:
        """A post of the other instance, or one that was on its way for long."""
        await asyncio.sleep(seconds)
        await self._chance.choice(self._replicas).post(body)


class AlertList:
    """The Alertmanagers as a replica asks them."""

    def __init__(self, alertmanager: Callable[[], Alertmanager]) -> None:
        self._alertmanager = alertmanager

    async def alerts(self) -> Listing:
        """What fires there now."""
        await asyncio.sleep(ANSWER)
        return self._alertmanager().listing()

    async def aclose(self) -> None:
        """Nothing to give back."""


def _payload(group: Group) -> bytes:
    alerts = [alert.wire() for alert in group.alerts.values()]
    status = "firing" if any(alert["status"] == "firing" for alert in alerts) else "resolved"
    return msgspec.json.encode({"version": "4", "status": status, "truncatedAlerts": 0, "alerts": alerts})
