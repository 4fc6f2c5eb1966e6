"""Cases and operations as we write them."""

from collections.abc import Mapping

from remediator.core import names
from remediator.core.case import Attempt, Block, Case, CaseEvent, Operation, Trigger
from remediator.core.node import Node
from remediator.kube import api
from remediator.kube.api.encode.objects import body, second, second_or_none, status_patch
from remediator.kube.api.patch import Body


def new_case(name: str, node: Node, policy: str, trigger: Trigger) -> Body:
    """A NodeRemediation, holding our finalizer from birth."""
    seen = api.Trigger(
        condition=trigger.condition,
        status=trigger.status,
        reason=trigger.reason[:128],
        message=trigger.message[:4096],
        since=second(trigger.since),
        cause=trigger.cause[:4096],
    )
    spec = api.NodeRemediationSpec(node_name=node.name, node_uid=node.uid, policy_name=policy, trigger=seen)
    meta = api.ObjectMeta(name=name, finalizers=(names.CASE_FINALIZER,))
    return body(api.NodeRemediation(metadata=meta, spec=spec))


def case_status(case: Case) -> Body:
    """A merge patch of the whole status, refused if the case has moved since we read it."""
    status = api.NodeRemediationStatus(
        phase=case.phase,
        reason=case.reason or "",
        message=case.message[:4096],
        rung=case.rung + 1,
        blocked_by=tuple(_blocker(block) for block in case.blocks),
        diagnostics=api.Diagnostics(outcome=case.diagnosis) if case.diagnosis else None,
        evidence=dict(case.evidence or {}),
        attempts=tuple(_attempt(attempt, number) for number, attempt in enumerate(case.attempts, 1)),
        timeline=tuple(timeline_entry(entry) for entry in case.timeline),
        started_at=second_or_none(case.started),
        ended_at=second_or_none(case.ended),
    )
    return status_patch(case.version, status)


def _blocker(block: Block) -> api.Blocker:
    return api.Blocker(
        reason=block.reason, message=block.message[:4096], until=second_or_none(block.until), reported=block.reported
    )


def _attempt(attempt: Attempt, number: int) -> api.Attempt:
    return api.Attempt(
        operation=attempt.operation,
        template=attempt.template,
        rung=attempt.rung + 1,
        attempt=number,
        follows=attempt.follows,
        counts=attempt.counts,
        intent=api.Intent(boot_id=attempt.boot_id) if attempt.boot_id else None,
        started_at=second(attempt.started),
        finished_at=second_or_none(attempt.finished),
        outcome=attempt.outcome,
        reason=attempt.reason,
        message=attempt.message[:4096],
        node_heartbeats={condition: second(at) for condition, at in (attempt.heartbeats or {}).items()},
    )


def timeline_entry(entry: CaseEvent) -> api.TimelineEntry:
    """What the API server keeps of it."""
    return api.TimelineEntry(at=second(entry.at), reason=entry.reason, message=entry.message[:4096])


def new_operation(case: Case, attempt: Attempt, number: int, parameters: Mapping[str, str]) -> Body:
    """A NodeOperation of a case, holding our finalizer until its outcome is in the case."""
    owner = api.OwnerReference(api_version=api.API_VERSION, kind=api.CASE.name, name=case.name, uid=case.uid)
    meta = api.ObjectMeta(
        name=attempt.operation,
        finalizers=(names.CASE_FINALIZER,),
        labels={names.CASE_UID_LABEL: case.uid},
        owner_references=(owner,),
    )
    spec = api.NodeOperationSpec(
        node_name=case.node,
        node_uid=case.node_uid,
        case_uid=case.uid,
        attempt=number,
        template_name=attempt.template,
        parameters=dict(parameters),
        requested_by=case.name,
    )
    return body(api.NodeOperation(metadata=meta, spec=spec))


def operation_status(operation: Operation) -> Body:
    """A merge patch of the status fields that are ours; `drain` is the drain Pod's."""
    intent = api.Intent(boot_id=operation.intent_boot_id, at=second_or_none(operation.intent_at))
    status = api.NodeOperationStatus(
        phase=operation.phase,
        reason=operation.reason,
        message=operation.message[:4096],
        started_at=second(operation.created),
        finished_at=second_or_none(operation.finished),
        drain_started_at=second_or_none(operation.drain_started),
        drain_pod=operation.drain_pod or None,
        pod=operation.pod or None,
        drain_round=operation.drain_round,
        drained_at=second_or_none(operation.drained_at),
        intent=intent if operation.intent_at else None,
    )
    return status_patch(operation.version, status, "drain")
