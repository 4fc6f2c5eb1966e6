"""Cases and operations as we write them."""

from collections.abc import Mapping

from remediator.core import names
from remediator.core.case import Attempt, Block, Case, CaseEvent, KeepOut, NewNode, PastCase, Trigger
from remediator.core.jobs_at_stake import BlastRadius, JobAtStake
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.outside_request import OutsideRequest
from remediator.kube import api
from remediator.kube.api.blast_radius import MOST
from remediator.kube.api.encode.objects import body, second, second_or_none, status_patch
from remediator.kube.api.patch import Body


def new_case(name: str, node: Node, policy: str, trigger: Trigger, gate: NewNode | None = None) -> Body:
    """A NodeRemediation, holding our finalizer from birth. `gate`: at which a new node waits."""
    seen = api.Trigger(
        condition=trigger.condition,
        status=trigger.status,
        reason=trigger.reason[:128],
        message=trigger.message[:4096],
        since=second(trigger.since),
        cause=trigger.cause[:4096],
        devices=dict(trigger.devices),
        layout=dict(trigger.layout),
    )
    spec = api.NodeRemediationSpec(
        node_name=node.name, node_uid=node.uid, policy_name=policy, trigger=seen, new_node=_new_node(gate)
    )
    meta = api.ObjectMeta(name=name, finalizers=(names.CASE_FINALIZER,))
    return body(api.NodeRemediation(metadata=meta, spec=spec))


def _new_node(gate: NewNode | None) -> api.NewNode | None:
    return api.NewNode(taint=gate.taint, machine=gate.machine) if gate else None


def _keep_out(terms: KeepOut | None) -> api.KeepOut | None:
    return api.KeepOut(until=second(terms.until), reason=terms.reason) if terms else None


def manual_case(name: str, operation: Operation) -> Body:
    """A NodeRemediation for an operation that a user has made, holding our finalizer from birth."""
    asked = api.Manual(
        operation=operation.name,
        uid=operation.uid,
        template_name=operation.template,
        parameters=dict(operation.parameters),
        requested_by=operation.requested_by or None,
    )
    spec = api.NodeRemediationSpec(
        node_name=operation.node,
        node_uid=operation.node_uid,
        manual=asked,
        keep_out=_keep_out(operation.keep_out),
    )
    meta = api.ObjectMeta(name=name, finalizers=(names.CASE_FINALIZER,), labels=_asked_by(operation.source))
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
        history=tuple(_past(past) for past in case.history),
        blast_radius=_blast_radius(case.blast) if case.blast else None,
        started_at=second_or_none(case.started),
        ended_at=second_or_none(case.ended),
        healthy_since=second_or_none(case.healthy_since),
        retries=case.retries,
        retried_at=second_or_none(case.retried),
        retried_after=case.retried_after,
    )
    return status_patch(case.version, status)


def _past(past: PastCase) -> api.PastCase:
    return api.PastCase(
        case=past.case,
        node_name=past.node,
        policy_name=past.policy,
        ended_at=second(past.ended),
        operations=past.operations,
        outcome=past.outcome,
    )


def _blast_radius(radius: BlastRadius) -> api.BlastRadius:
    return api.BlastRadius(
        at=second(radius.at),
        unknown=radius.unknown[:4096],
        pods=_number(radius.pods),
        gpus_on_node=_number(radius.here),
        jobs=_number(radius.count),
        gpus=_number(radius.gpus),
        gpu_hours=_number(radius.gpu_hours),
        largest=tuple(_at_stake(job) for job in radius.jobs),
    )


def _at_stake(job: JobAtStake) -> api.JobAtStake:
    return api.JobAtStake(
        kind=job.kind,
        namespace=job.namespace,
        name=job.name,
        gpus_on_node=_number(job.here),
        gpus=_number(job.gpus),
        since=second_or_none(job.since),
        gpu_hours=_number(job.gpu_hours),
    )


def _number(count: int) -> int:
    """One too large would have the whole status refused, and nothing of the case would be written."""
    return min(count, MOST)


def _blocker(block: Block) -> api.Blocker:
    return api.Blocker(
        reason=block.reason,
        message=block.message[:4096],
        since=second_or_none(block.since),
        until=second_or_none(block.until),
        reported=block.reported,
    )


def _attempt(attempt: Attempt, number: int) -> api.Attempt:
    return api.Attempt(
        operation=attempt.operation,
        template=attempt.template,
        rung=attempt.rung + 1,
        attempt=number,
        follows=attempt.follows,
        probe=attempt.probe,
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


def asked_operation(node: Node, template: str, user: str, terms: KeepOut | None = None) -> Body:
    """A NodeOperation that a user asks for; the server makes its name.

    Args:
        node: On which.
        template: What.
        user: Who asks; "": that is not known.
        terms: Of one after which the user keeps the node.
    """
    spec = api.NodeOperationSpec(
        node_name=node.name,
        node_uid=node.uid,
        template_name=template,
        requested_by=user or None,
        keep_out=_keep_out(terms),
    )
    made = body(api.NodeOperation(metadata=api.ObjectMeta(), spec=spec))
    what = "take-out" if terms else template
    return made | {"metadata": {"generateName": f"{what}-{node.name[:30].rstrip('-.')}-"}}


def requested_operation(request: OutsideRequest, node: Node) -> Body:
    """The NodeOperation of an object by which another controller asks for a repair."""
    spec = api.NodeOperationSpec(
        node_name=node.name,
        node_uid=node.uid,
        template_name=request.template,
        requested_by=request.requester[:1024],
    )
    meta = api.ObjectMeta(name=request.operation, labels=_asked_by(request.source))
    return body(api.NodeOperation(metadata=meta, spec=spec))


def _asked_by(source: str) -> dict[str, str]:
    return {names.ASKED_BY_LABEL: source} if source else {}


def operation_status(operation: Operation) -> Body:
    """A merge patch of the status fields that are ours; `drain` is the drain Pod's."""
    intent = api.Intent(boot_id=operation.intent_boot_id, at=second_or_none(operation.intent_at))
    status = api.NodeOperationStatus(
        phase=operation.phase,
        case_name=operation.case_name or None,
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
