"""Our nouns → Kubernetes' JSON, writing side: what we create and what we patch. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from remediator.core import names
from remediator.core.budget import Account, Budget, Claim
from remediator.core.case import Attempt, Case, CaseEvent, Operation, Trigger
from remediator.core.node import Node, Taint
from remediator.core.policy import RunOn, Template
from remediator.core.reasons import WARNINGS
from remediator.kube.wire.times import stamp

Body = dict[str, Any]
API_VERSION = f"{names.GROUP}/v1alpha1"


def time(at: datetime | None) -> str | None:
    """A timestamp in Kubernetes' spelling, whole seconds."""
    return stamp(at) if at else None


def node_marks(node: Node, taints: Iterable[Taint], **more: Any) -> Body:
    """A merge patch that gives the node exactly these taints, refused if the node has moved since we read it.

    `more`: `unschedulable` (bool or None for absent) and `annotations` (name → value, None to remove).
    """
    spec: Body = {"taints": [_taint(taint) for taint in taints] or None}
    if "unschedulable" in more:
        spec["unschedulable"] = more["unschedulable"]
    meta: Body = {"resourceVersion": node.version}
    if "annotations" in more:
        meta["annotations"] = more["annotations"]
    return {"metadata": meta, "spec": spec}


def _taint(taint: Taint) -> Body:
    added = {"timeAdded": taint.added} if taint.added else {}
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, "effect": taint.effect, **value, **added}


def new_case(name: str, node: Node, policy: str, trigger: Trigger) -> Body:
    """A NodeRemediation, holding our finalizer from birth."""
    seen = {
        "condition": trigger.condition,
        "status": trigger.status,
        "reason": trigger.reason[:128],
        "message": trigger.message[:4096],
        "since": time(trigger.since),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeRemediation",
        "metadata": {"name": name, "finalizers": [names.CASE_FINALIZER]},
        "spec": {"nodeName": node.name, "nodeUID": node.uid, "policyName": policy, "trigger": seen},
    }


def case_status(case: Case) -> Body:
    """A merge patch of the whole status, refused if the case has moved since we read it."""
    status = {
        "phase": case.phase.value,
        "reason": case.reason.value if case.reason else None,
        "message": case.message[:4096] or None,
        "rung": case.rung + 1,
        "blockedBy": [_block(case, index) for index in range(len(case.blocks))] or None,
        "diagnostics": {"outcome": case.diagnosis.value} if case.diagnosis else None,
        "evidence": case.evidence or None,
        "attempts": [_attempt(attempt, index + 1) for index, attempt in enumerate(case.attempts)] or None,
        "timeline": [
            {"at": time(entry.at), "reason": entry.reason.value, "message": entry.message[:4096]}
            for entry in case.timeline
        ],
        "startedAt": time(case.started),
        "endedAt": time(case.ended),
    }
    return {"metadata": {"resourceVersion": case.version}, "status": status}


def _block(case: Case, index: int) -> Body:
    found = case.blocks[index]
    until = {"until": time(found.until)} if found.until else {}
    return {"reason": found.reason.value, "message": found.message[:4096], **until}


def _attempt(attempt: Attempt, number: int) -> Body:
    body = {
        "operation": attempt.operation,
        "template": attempt.template,
        "rung": attempt.rung + 1,
        "attempt": number,
        "startedAt": time(attempt.started),
        "finishedAt": time(attempt.finished),
        "outcome": attempt.outcome.value,
        "message": attempt.message[:4096],
        "intent": {"bootID": attempt.boot_id} if attempt.boot_id else None,
        "follows": attempt.follows,
        "nodeHeartbeats": {name: time(at) for name, at in (attempt.heartbeats or {}).items()} or None,
    }
    return {key: value for key, value in body.items() if value not in (None, "")}


def with_finalizer(version: str, finalizers: Iterable[str], ours: str) -> Body:
    """A merge patch that puts our finalizer beside those of others."""
    return {"metadata": {"resourceVersion": version, "finalizers": [*finalizers, ours]}}


def without_finalizer(version: str, finalizers: Iterable[str], ours: str) -> Body:
    """A merge patch that takes our finalizer off and leaves those of others."""
    kept = [found for found in finalizers if found != ours]
    return {"metadata": {"resourceVersion": version, "finalizers": kept or None}}


def new_operation(case: Case, attempt: Attempt, number: int, parameters: Mapping[str, str]) -> Body:
    """A NodeOperation of a case, holding our finalizer until its outcome is in the case."""
    told = {"parameters": dict(parameters)} if parameters else {}
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeOperation",
        "metadata": {
            "name": attempt.operation,
            "finalizers": [names.CASE_FINALIZER],
            "labels": {names.CASE_UID_LABEL: case.uid},
            "ownerReferences": [_owner("NodeRemediation", case.name, case.uid)],
        },
        "spec": {
            "nodeName": case.node,
            "nodeUID": case.node_uid,
            "caseUID": case.uid,
            "attempt": number,
            "templateName": attempt.template,
            "requestedBy": case.name,
            **told,
        },
    }


def _owner(kind: str, name: str, uid: str) -> Body:
    return {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": uid}


def operation_status(operation: Operation) -> Body:
    """A merge patch of the status fields that are ours; `drain` is the drain Pod's."""
    intent = {"bootID": operation.intent_boot_id, "at": time(operation.intent_at)}
    status = {
        "phase": operation.phase.value,
        "reason": operation.reason or None,
        "message": operation.message[:4096] or None,
        "startedAt": time(operation.created),
        "finishedAt": time(operation.finished),
        "drainStartedAt": time(operation.drain_started),
        "drainPod": operation.drain_pod or None,
        "pod": operation.pod or None,
        "drainRound": operation.drain_round,
        "drained": operation.drained,
        "intent": intent if operation.intent_at else None,
    }
    return {"metadata": {"resourceVersion": operation.version}, "status": status}


def ledger(budget: Budget, account: Account) -> Body:
    """A merge patch of a budget's whole status, refused if the ledger has moved since we read it."""
    status = {
        "claims": [_claim(claim) for claim in budget.claims],
        "total": account.total,
        "unavailable": len(account.unavailable),
        "allowed": account.allowed,
        "observedGeneration": budget.generation,
        "adoptedGeneration": budget.generation,
        "adoptedUID": budget.uid,
    }
    return {"metadata": {"resourceVersion": budget.version}, "status": status}


def _claim(claim: Claim) -> Body:
    return {"node": claim.node, "case": claim.case, "since": time(claim.since)}


def default_budget() -> Body:
    """The budget of nodes that no other budget selects: one node, or 5 % where that is more."""
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeDisruptionBudget",
        "metadata": {"name": names.DEFAULT_BUDGET},
        "spec": {"selector": {}, "maxUnavailable": "5%", "fallback": True},
    }


def policy_ready(ready: bool, reason: str, message: str, generation: int, now: datetime) -> Body:
    """A merge patch of a policy's status: whether it can act."""
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": time(now),
        "observedGeneration": generation,
    }
    return {"status": {"observedGeneration": generation, "conditions": [condition]}}


def event(name: str, node: Node | None, case: Case, moment: CaseEvent) -> Body:
    """An Event on the Node, where `kubectl describe node` shows it."""
    involved = {"apiVersion": "v1", "kind": "Node", "name": case.node, "uid": node.uid if node else ""}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": involved,
        "reason": moment.reason.value,
        "message": f"{case.name}: {moment.message}"[:1024],
        "type": "Warning" if moment.reason in WARNINGS else "Normal",
        "source": {"component": "remediator"},
        "firstTimestamp": time(moment.at),
        "lastTimestamp": time(moment.at),
        "count": 1,
    }


def pod(
    template: Template,
    name: str,
    target: str,
    *,
    labels: Mapping[str, str],
    env: Mapping[str, str],
    deadline: timedelta,
) -> Body:
    """The Pod of one operation: the template's, made ours.

    On the target it is bound at once, tolerates every taint, asks for nothing and may not be preempted; elsewhere the
    scheduler places it on any node but the target.
    """
    written = dict(template.pod)
    meta, spec = dict(written.get("metadata") or {}), dict(written.get("spec") or {})
    containers = [dict(container) for container in spec.get("containers") or [{}]]
    containers[0]["env"] = [*(containers[0].get("env") or []), *({"name": k, "value": v} for k, v in env.items())]
    if template.run_on is RunOn.TARGET:
        for container in containers:
            container["resources"] = {**(container.get("resources") or {}), "requests": {"cpu": "0", "memory": "0"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**(meta.get("labels") or {}), **labels},
            "annotations": meta.get("annotations") or {},
            "finalizers": [names.POD_FINALIZER],
        },
        "spec": {
            **spec,
            "containers": containers,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": max(1, int(deadline.total_seconds())),
            **_placement(template, spec, target),
        },
    }


def _placement(template: Template, spec: Mapping[str, Any], target: str) -> Body:
    if template.run_on is RunOn.TARGET:
        return {"nodeName": target, "tolerations": [{"operator": "Exists"}]}
    away = {"key": "metadata.name", "operator": "NotIn", "values": [target]}
    affinity = spec.get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(_REQUIRED) or {}
    terms = [
        {**term, "matchFields": [*(term.get("matchFields") or []), away]}
        for term in required.get("nodeSelectorTerms") or [{}]
    ]
    return {
        "affinity": {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: {**required, "nodeSelectorTerms": terms}}}
    }


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
