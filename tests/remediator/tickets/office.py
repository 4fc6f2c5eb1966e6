"""Tickets over the embedded server, a tracker in memory whose faults are scripted, and a clock turned by hand."""

import json
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from remediator.clock import Clock
from remediator.core.ticket import About, Subject, Ticket
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.api import decode as codec
from remediator.kube.manifests import crd
from remediator.kube.wire.client import Client
from remediator.tickets.channels.base import Draft, Issue, Refused, Unsure
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile.cache import TicketCache, slim
from remediator.tickets.reconcile.observe import Times
from remediator.tickets.reconcile.reconciler import Reconciler
from remediator.tickets.reconcile.store import TicketStore
from remediator.tickets.webhook.receiver import Received, Receiver
from remediator_sim.apiserver import EmbeddedServer
from tests.harness.kinds import CASES, CRDS, NODES, POLICIES

PAYLOADS = Path(__file__).parent / "payloads"
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
GPU = Subject(About.NODE, node="gpu-17")


def payload(name: str) -> bytes:
    """A delivery as a real Alertmanager made it."""
    return (PAYLOADS / f"{name}.json").read_bytes()


def delivery(*alerts: dict[str, Any], truncated: int = 0) -> bytes:
    """A delivery of these alerts."""
    status = "firing" if any(alert["status"] == "firing" for alert in alerts) else "resolved"
    return json.dumps({"version": "4", "status": status, "alerts": alerts, "truncatedAlerts": truncated}).encode()


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


class Tracker:
    """Issues in memory. `script(verb, fault)`: the next call of that verb ends so.

    Faults: an exception to raise; "lost": carried out, but the answer is Unsure; "dropped": not carried out, Unsure.
    `hidden` holds numbers that `find` does not show yet. `calls` are the verbs that changed something, in order.
    """

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.comments: defaultdict[int, list[str]] = defaultdict(list)
        self.calls: list[str] = []
        self.reads = 0
        self.hidden: set[int] = set()
        self.deleted: set[int] = set()
        self.clock: Callable[[], datetime] = lambda: START
        self._touched: dict[int, datetime] = {}
        self._faults: defaultdict[str, deque[Any]] = defaultdict(deque)

    def script(self, verb: str, *faults: Any) -> None:
        """What happens to the next calls of a verb; None lets one pass."""
        self._faults[verb].extend(faults)

    def left(self, verb: str) -> int:
        """How many scripted faults of a verb have not come to pass."""
        return len(self._faults[verb])

    def _fault(self, verb: str) -> Any:
        fault = self._faults[verb].popleft() if self._faults[verb] else None
        if isinstance(fault, Exception):
            raise fault
        if fault == "dropped":
            raise Unsure("the connection broke")
        return fault

    async def create(self, repository: str, draft: Draft) -> Issue:
        fault = self._fault("create")
        number = len(self.issues) + 1
        url = f"https://tracker.test/{repository}/issues/{number}"
        labels, people, now = draft.labels, draft.assignees, self.clock()
        made = Issue(repository, number, url, draft.title, draft.body, True, "", False, labels, people, now)
        self.issues.append(made)
        self._touched[number] = now
        self.calls.append("create")
        if fault == "lost":
            raise Unsure("the connection broke")
        return made

    async def get(self, repository: str, number: int) -> Issue:
        self._fault("get")
        self.reads += 1
        if number in self.deleted:
            raise Refused("the issue was deleted", "issue")
        return self.issue(number)

    async def find(self, repository: str, marker: str, label: str, since: datetime) -> list[Issue]:
        self._fault("find")
        shown = [issue for issue in self.issues if issue.repository == repository and issue.number not in self.hidden]
        return [issue for issue in shown if marker in issue.body and self._touched[issue.number] >= since]

    async def edit(self, repository: str, number: int, *, title: str | None = None, body: str | None = None) -> Issue:
        self._fault("edit")
        assert title is None, "titles are people's"
        return self._change("edit", number, body=body)

    async def close(self, repository: str, number: int, reason: str, duplicate_of: int | None = None) -> Issue:
        self._fault("close")
        assert (reason == "duplicate") == (duplicate_of is not None)
        return self._change("close", number, open=False, reason=reason, closed_by_user=False)

    async def reopen(self, repository: str, number: int) -> Issue:
        self._fault("reopen")
        return self._change("reopen", number, open=True, reason="reopened", closed_by_user=False)

    async def comment(self, repository: str, number: int, text: str) -> str:
        fault = self._fault("comment")
        self.comments[number].append(text)
        self.calls.append("comment")
        if fault == "lost":
            raise Unsure("the connection broke")
        return f"{self.issue(number).url}#1"

    async def label(self, repository: str, number: int, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        self._fault("label")
        kept = tuple(label for label in self.issue(number).labels if label not in remove)
        self._change("label", number, labels=tuple(dict.fromkeys((*kept, *add))))

    def _change(self, verb: str, number: int, **changes: Any) -> Issue:
        self.calls.append(verb)
        return self.change(number, **changes)

    # --- what people do and see --------------------------------------------------------------------------------------

    def issue(self, number: int) -> Issue:
        """One issue."""
        return self.issues[number - 1]

    def change(self, number: int, **changes: Any) -> Issue:
        """Change an issue, as a person does."""
        self.issues[number - 1] = replace(self.issue(number), **changes)
        self._touched[number] = self.clock()
        return self.issue(number)

    def shut(self, number: int) -> None:
        """A person closes it."""
        self.change(number, open=False, reason="completed", closed_by_user=True)

    def delete(self, number: int) -> None:
        """A person deletes it."""
        self.shut(number)
        self.hidden.add(number)
        self.deleted.add(number)

    @property
    def there(self) -> list[Issue]:
        """The issues that nobody deleted."""
        return [issue for issue in self.issues if issue.number not in self.deleted]

    @property
    def open(self) -> list[int]:
        """The numbers of open issues."""
        return [issue.number for issue in self.issues if issue.open]


class Office:
    """One leader at its desk. `now` moves only by `later`; caches are read from the server before each round."""

    def __init__(
        self, tracker: Tracker | None = None, server: EmbeddedServer | None = None, **times: timedelta
    ) -> None:
        self.server = server or EmbeddedServer()
        self.client = Client(self.server.transport())
        self.tracker = tracker or Tracker()
        self.now = START
        self.tracker.clock = lambda: self.now
        self.routes = Routes(
            Route("org/default", ("ops",), ("ann",)), {"gpu": Route("org/gpu", ("gpu",))}, cluster="prod"
        )
        self.leads = True
        self.clock = Clock(lambda: self.now, lambda: 0.0)
        self.world = TicketCache(lambda: 0.0)
        self.receiver = Receiver(self.client, self.world, lambda: True, self.clock)
        self.times = Times(**times)
        self.restart()

    def restart(self) -> None:
        """Another process takes over: nothing in memory survives."""
        desk = TicketStore(self.client, self.tracker, self.world, lambda: self.leads)
        self.keeper = Reconciler(desk, self.routes, self.times)
        self.due: dict[Subject, datetime] = {}

    async def prepare(self) -> None:
        """The kinds, and some nodes."""
        for kind in api.KINDS:
            await self.client.create(CRDS, crd.crd(kind))
        for name in ("gpu-17", "gpu-18"):
            await self.client.create(NODES, {"metadata": {"name": name}})

    async def hear(self, body: bytes) -> Received:
        """Alertmanager posts."""
        await self.refresh()
        return await self.receiver.receive(body)

    async def refresh(self) -> None:
        """Bring the caches up to date."""
        self.world = fresh = TicketCache(lambda: 0.0)
        fresh.tickets = {ticket.name: ticket for ticket in await self.tickets()}
        fresh.policies = {w.metadata.name: codec.remediation_policy(w) for w in await self.client.list_all(api.POLICY)}
        fresh.cases = {w.metadata.name: slim(codec.remediation_case(w)) for w in await self.client.list_all(api.CASE)}
        for name, case in fresh.cases.items():
            fresh.case_changed(name, None, case)
        self.keeper.desk.world = self.receiver._world = fresh

    async def tickets(self) -> list[Ticket]:
        """All Tickets."""
        return [decode.ticket(wire) for wire in await self.client.list_all(api.TICKET)]

    async def ticket(self, subject: Subject = GPU) -> Ticket:
        """One Ticket."""
        return decode.ticket(await self.client.get(api.TICKET, subject.name))

    async def work(self) -> dict[Subject, float | None]:
        """One pass over everything; when each wants to be looked at again, in seconds."""
        await self.refresh()
        return {subject: await self.keeper.visit(subject, self.now) for subject in sorted(self.world.every(), key=repr)}

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
        body = {"apiVersion": POLICIES.api_version, "kind": POLICIES.name, "metadata": {"name": name}}
        await self.client.create(POLICIES, body | {"spec": {k: v for k, v in (usual | spec).items() if v is not None}})

    async def case(self, name: str = "case-1", node: str = "gpu-17", policy: str = "gpu-lost", **status: Any) -> None:
        """A case, held unless told otherwise."""
        since, message = START.isoformat(), "GPU 3 has fallen off the bus"
        trigger = {"condition": "GpuLost", "status": "True", "reason": "Xid79", "message": message, "since": since}
        spec = {"nodeName": node, "nodeUID": f"uid-{node}", "policyName": policy, "trigger": trigger}
        meta = {"name": name}
        body = {"apiVersion": CASES.api_version, "kind": CASES.name, "metadata": meta, "spec": spec}
        await self.client.create(CASES, body)
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
