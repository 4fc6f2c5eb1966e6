"""Tiny histories, written by hand: a line for each write, as the server would have carried it out."""

import copy
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from remediator_sim.invariants.checker import Checker
from remediator_sim.invariants.contract import BUDGETS, CASES, NAMESPACES, NODES, OPERATIONS, PODS, POLICIES, TICKETS
from remediator_sim.invariants.event import FINAL, ISSUES, KILLED, PERSON, PROBE, REBOOT, TICK, Event
from remediator_sim.invariants.results import Checked
from remediator_sim.invariants.tracked import Limits

FAULT = "GpuLost"


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


LIMITS = Limits(
    breaker_starts=2,
    breaker_window=seconds(60),
    bound=seconds(100),
    settle=seconds(10),
    grace=seconds(3),
    stale=seconds(900),
)


class Recording:
    """A checker, and the objects that it knows. A policy `p`, its ladder reset (1) and reboot (2), stands already.

    Every write comes a second after the one before it, so that nothing is forgiven for having just been changed only
    where a test says `later`.
    """

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
        self.checker = Checker(LIMITS)
        self.stored: dict[tuple[str, str], dict[str, Any]] = {}
        self.policy()

    # --- events ----------------------------------------------------------------------------------------------------

    def hear(self, kind: str, new: dict[str, Any] | None = None, old: dict[str, Any] | None = None) -> None:
        self.now += seconds(0.1)
        self.checker.hear(Event(kind, self.now, old, new))

    def write(self, kind: str, name: str, space: str = "", **parts: Any) -> None:
        """Store an object; `parts` (metadata, spec, status) replace what stood there, entry by entry."""
        old = self.stored.get((kind, name))
        meta = {"name": name, "uid": f"uid-{name}"} | ({"namespace": space} if space else {})
        new = copy.deepcopy(old) if old else {"metadata": meta}
        for part, entries in parts.items():
            new[part] = {key: value for key, value in (new.get(part, {}) | entries).items() if value is not None}
        self.stored[kind, name] = new
        self.hear(kind, new, old)

    def remove(self, kind: str, name: str) -> None:
        self.hear(kind, None, self.stored.pop((kind, name)))

    def later(self, count: float) -> None:
        """Let time pass, with a look at the clock each second; heartbeats of nodes go on."""
        for _ in range(int(count)):
            self.now += seconds(1)
            self.checker.hear(Event(TICK, self.now))

    def end(self) -> None:
        self.hear(FINAL)

    def killed(self) -> None:
        self.hear(KILLED)

    def person(self, node: str, **set_: Any) -> None:
        self.hear(PERSON, {"node": node, "labels": {}, "annotations": {}, "taints": [], "cordon": False} | set_)

    def issues(self, *found: tuple[int, bool, str], by_user: tuple[int, ...] = ()) -> None:
        """The issues as they are now: number, open, subject; a user opened or closed those of `by_user` last."""
        issues = [
            {"repository": "o/r", "number": one[0], "open": one[1], "subject": one[2], "by_user": one[0] in by_user}
            for one in found
        ]
        self.hear(ISSUES, {"issues": issues})

    def answers(self, asked: Iterable[str], names: Iterable[str], failed: Iterable[str] = ()) -> None:
        lists = {"NodeNames": list(names), "FailedNodes": {}}
        refused = {"FailedAndUnresolvableNodes": dict.fromkeys(failed, "node(s) sick"), "Error": ""}
        self.hear(PROBE, {"asked": list(asked), "answer": lists | refused})

    def reboot(self, node: str, attempt: str, boot: str = "boot-1") -> None:
        self.hear(REBOOT, {"node": node, "attemptID": attempt, "bootID": boot, "time": self.now.isoformat()})

    # --- objects ---------------------------------------------------------------------------------------------------

    def policy(self, mode: str = "Enforce", most: int = 4, **spec: Any) -> None:
        usual = {
            "mode": mode,
            "nodeSelector": {},
            "allNodes": True,
            "when": [{"condition": FAULT, "for": "0s"}],
            "ladder": [{"operation": "reset", "attempts": 1}, {"operation": "reboot", "attempts": 2}],
            "verify": {"settle": "5s", "fresh": "5s", "timeout": "60s"},
            "attempts": {"max": most, "window": "1h"},
            "ticket": {"when": "OnEscalation"},
        }
        edited = (POLICIES, "p") in self.stored
        self.write(POLICIES, "p", spec=usual | spec)
        if edited:
            self.now += LIMITS.grace  # until then, somebody may still act on what it said before

    def node(self, name: str, fault: str = "True", ready: str = "True", stale: str = "", age: float = 0) -> None:
        """What a kubelet and a detector say; `age` is how old the detector's heartbeat is."""
        said = {FAULT: fault, "Ready": ready, "DetectorStale": stale}
        beats = {FAULT: self.now - seconds(age)}
        conditions = [
            {"type": kind, "status": status, "lastHeartbeatTime": beats.get(kind, self.now).isoformat()}
            for kind, status in said.items()
            if status
        ]
        self.write(NODES, name, status={"conditions": conditions, "nodeInfo": {"bootID": "boot-1"}})

    def mark(self, name: str, **spec: Any) -> None:
        self.write(NODES, name, spec=spec)

    def taint(self, name: str, case: str, *others: dict[str, str]) -> None:
        ours = [{"key": "remediator.dev/case", "value": f"uid-{case}", "effect": "NoSchedule"}] if case else []
        self.mark(name, taints=[*ours, *others])

    def budget(self, name: str = "b", most: int | str = 1, **spec: Any) -> None:
        self.write(BUDGETS, name, spec={"selector": {}, "maxUnavailable": most} | spec)

    def claims(self, name: str = "b", **held: str) -> None:
        """The whole ledger: case=node."""
        entries = [{"case": f"uid-{case}", "node": node.replace("_", "-")} for case, node in held.items()]
        self.write(BUDGETS, name, status={"claims": entries})

    def case(self, name: str, node: str = "", phase: str = "", **status: Any) -> None:
        stamp = self.now.isoformat()
        for word in ("startedAt", "endedAt"):
            if status.get(word) is True:
                status[word] = stamp
        spec = {"spec": {"nodeName": node, "policyName": "p"}} if node else {}
        finalizer = {"metadata": {"finalizers": ["remediator.dev/release"]}} if (CASES, name) not in self.stored else {}
        meta = {"name": name, "uid": f"uid-{name}"}
        finalizer = {"metadata": meta | finalizer["metadata"]} if finalizer else {}
        self.write(CASES, name, **finalizer, **spec, status={"phase": phase} | status)

    def let_go(self, name: str) -> None:
        """The finalizer is taken off."""
        self.write(CASES, name, metadata={"finalizers": None})

    def operation(self, name: str, case: str, number: int = 1, **status: Any) -> None:
        spec = {"caseUID": f"uid-{case}", "attempt": number, "templateName": "reboot", "nodeName": "n1"}
        self.write(OPERATIONS, name, spec=spec, status=status)

    def pod(self, name: str, operation: str, template: str = "reboot", boot: str = "boot-1", case: str = "a") -> None:
        labels = {"operation": template, "operation-uid": f"uid-{operation}", "case-uid": f"uid-{case}"}
        meta = {
            "name": name,
            "uid": f"uid-{name}",
            "namespace": "remediator-operations",
            "labels": {f"remediator.dev/{key}": value for key, value in labels.items()},
        }
        env = [{"name": "EXPECTED_BOOT_ID", "value": boot}]
        self.write(PODS, name, metadata=meta, spec={"nodeName": "n1", "containers": [{"env": env}]})

    def ticket(self, name: str, node: str, number: int = 0) -> None:
        issue = {"phase": "Open", "issue": {"repository": "o/r", "number": number}} if number else {}
        self.write(TICKETS, name, spec={"subject": {"kind": "Node", "nodeName": node}}, status=issue)

    def paused(self, now: bool) -> None:
        notes = {"annotations": {"remediator.dev/paused": "by alice"} if now else None}
        meta = {"name": "remediator-system", "uid": "uid-system"}
        self.write(NAMESPACES, "remediator-system", metadata=meta | notes)

    # --- what came of it -------------------------------------------------------------------------------------------

    def found(self, name: str) -> Checked:
        return self.checker.report()[name]


def tried(*operations: str, rung: int | None = None, outcome: str = "Failed") -> list[dict[str, Any]]:
    """Attempts of a case: `reset-1` is on rung 1, `reboot-…` on rung 2; all but the last have failed."""
    found = [
        {"operation": name, "rung": rung or (1 if name.startswith("reset") else 2), "outcome": "Failed"}
        for name in operations
    ]
    if found:
        found[-1]["outcome"] = outcome
    return found
