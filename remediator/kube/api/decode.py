"""Kubernetes' JSON ↔ our nouns, reading side: one function for each kind that we watch."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from sys import intern

from remediator.core import budget, case, names, pod, policy
from remediator.core.node import Condition, Node, Status, Taint
from remediator.core.reasons import Reason
from remediator.core.selector import Operator, Requirement, Selector
from remediator.kube import api
from remediator.kube.api import builtin as objects

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MIRROR = "kubernetes.io/config.mirror"


def node(wire: objects.Node) -> Node:
    """A Node. A status that is none of the three words reads as Unknown; a missing time as long ago."""
    annotations = wire.metadata.annotations
    return Node(
        name=wire.metadata.name,
        uid=wire.metadata.uid,
        labels={intern(key): intern(value) for key, value in wire.metadata.labels.items()},
        conditions={found.type: _condition(found) for found in wire.status.conditions},
        taints=tuple(Taint(taint.key, taint.value, taint.effect, taint.time_added) for taint in wire.spec.taints),
        unschedulable=wire.spec.unschedulable,
        boot_id=wire.status.node_info.boot_id,
        last_case=annotations.get(names.LAST_CASE, ""),
        cordoned_by=annotations.get(names.CORDONED_BY, ""),
        version=wire.metadata.resource_version,
    )


def _condition(wire: objects.WireCondition) -> Condition:
    since = wire.last_transition_time or EPOCH
    status = Status(wire.status) if wire.status in _STATUSES else Status.UNKNOWN
    return Condition(wire.type, status, wire.reason, since, wire.last_heartbeat_time or since, wire.message)


_STATUSES = frozenset(Status)


def operation_pod(wire: objects.Pod) -> pod.Pod:
    """A Pod, of ours or not."""
    labels, owners = wire.metadata.labels, wire.metadata.owner_references
    ended = wire.status.container_statuses[0].state.terminated if wire.status.container_statuses else None
    return pod.Pod(
        name=wire.metadata.name,
        namespace=wire.metadata.namespace,
        uid=wire.metadata.uid,
        node=wire.spec.node_name,
        phase=pod.PodPhase(wire.status.phase) if wire.status.phase in _POD_PHASES else pod.PodPhase.UNKNOWN,
        operation_uid=labels.get(names.OPERATION_UID_LABEL, ""),
        case_uid=labels.get(names.CASE_UID_LABEL, ""),
        template=labels.get(names.OPERATION_LABEL, ""),
        exit_code=ended.exit_code if ended else None,
        message=(ended.message if ended else "") or wire.status.message or _unscheduled(wire),
        reason=wire.status.reason or (ended.reason if ended else ""),
        deletion=wire.metadata.deletion_timestamp,
        finalizers=wire.metadata.finalizers,
        daemon=any(owner.kind == "DaemonSet" and owner.controller for owner in owners),
        mirror=MIRROR in wire.metadata.annotations,
        ready=any(found.type == "Ready" and found.status == "True" for found in wire.status.conditions),
        version=wire.metadata.resource_version,
    )


_POD_PHASES = frozenset(pod.PodPhase)


def _unscheduled(wire: objects.Pod) -> str:
    """Why the scheduler could not place it: what a person must know of a Pod that never starts."""
    waits = (found for found in wire.status.conditions if found.type == "PodScheduled" and found.status == "False")
    return next((found.message for found in waits), "")


def selector(wire: api.LabelSelector) -> Selector:
    """A label selector; matchLabels are requirements, too."""
    equal = [Requirement(key, Operator.IN, (value,)) for key, value in sorted(wire.match_labels.items())]
    more = [Requirement(row.key, row.operator, row.values) for row in wire.match_expressions]
    return Selector((*equal, *more))


def duration(text: str) -> timedelta:
    """ "1h30m" as a timedelta."""
    return timedelta(seconds=api.seconds(text))


def remediation_policy(wire: api.RemediationPolicy) -> policy.Policy:
    """A policy."""
    spec = wire.spec
    ready = next((found for found in wire.status.conditions if found.type == "Ready"), None)
    return policy.Policy(
        name=wire.metadata.name,
        selector=selector(spec.node_selector),
        when=tuple(_when(entry) for entry in spec.when),
        ladder=tuple(policy.Rung(rung.operation, rung.attempts, rung.parameters) for rung in spec.ladder),
        severity=spec.severity,
        verify=policy.Verify(
            *(duration(text) for text in (spec.verify.settle, spec.verify.fresh, spec.verify.timeout))
        ),
        attempts_max=spec.attempts.max,
        attempts_window=duration(spec.attempts.window),
        cooldown=duration(spec.cooldown),
        mode=spec.mode,
        urgency=spec.urgency.mode if spec.urgency else policy.Urgency.NOW,
        ticket=spec.ticket.when if spec.ticket else policy.TicketWhen.NEVER,
        route=(spec.ticket.route if spec.ticket else None) or "",
        correlation=_correlation(spec.correlation),
        generation=wire.metadata.generation,
        ready=f"{ready.status}/{ready.reason}/{ready.observed_generation}" if ready else "",
        version=wire.metadata.resource_version,
    )


def _correlation(wire: api.Correlation | None) -> policy.Correlation | None:
    return policy.Correlation(wire.nodes, duration(wire.within)) if wire else None


def _when(wire: api.When) -> policy.When:
    entries: Iterable[api.ConditionMatch | api.When] = wire.all or (wire,)
    return policy.When(tuple(_clause(entry) for entry in entries), duration(wire.for_))


def _clause(wire: api.ConditionMatch | api.When) -> policy.Clause:
    return policy.Clause(wire.condition or "", wire.status, frozenset(wire.reasons))


def template(wire: api.NodeOperationTemplate) -> policy.Template:
    """A template."""
    spec, skip = wire.spec, wire.spec.drain.skip_wait_for_delete
    return policy.Template(
        name=wire.metadata.name,
        strategy=spec.drain.strategy,
        drain_timeout=duration(spec.drain.timeout),
        skip_wait_for_delete=duration(skip) if skip else None,
        cordon=spec.cordon,
        run_on=spec.run_on,
        timeout=duration(spec.timeout),
        boot_id_changed=spec.success.boot_id_changed,
        node_ready=spec.success.node_ready,
        pod=spec.pod_template,
        version=wire.metadata.resource_version,
        after=spec.after,
    )


def disruption_budget(wire: api.NodeDisruptionBudget) -> budget.Budget:
    """A budget with its ledger."""
    meta, status = wire.metadata, wire.status
    return budget.Budget(
        name=meta.name,
        uid=meta.uid,
        selector=selector(wire.spec.selector),
        max_unavailable=_amount(wire.spec.max_unavailable),
        min_available=_amount(wire.spec.min_available),
        fallback=wire.spec.fallback,
        generation=meta.generation,
        adopted=(status.adopted_uid, status.adopted_generation) == (meta.uid, meta.generation),
        claims=tuple(budget.Claim(claim.node, claim.case, claim.since or EPOCH) for claim in status.claims),
        numbers=(status.total, status.unavailable, status.allowed),
        version=meta.resource_version,
    )


def _amount(wire: int | str | None) -> budget.Amount | None:
    if wire is None or isinstance(wire, int):
        return None if wire is None else budget.Amount(wire)
    return budget.Amount(int(wire.removesuffix("%")), percent=True)


def remediation_case(wire: api.NodeRemediation) -> case.Case:
    """A case."""
    meta, spec, status = wire.metadata, wire.spec, wire.status
    return case.Case(
        name=meta.name,
        uid=meta.uid,
        node=spec.node_name,
        node_uid=spec.node_uid,
        policy=spec.policy_name,
        trigger=_trigger(spec.trigger),
        created=meta.creation_timestamp or EPOCH,
        version=meta.resource_version,
        hold=spec.hold,
        release=spec.release,
        deleting=meta.deletion_timestamp is not None,
        finalizers=meta.finalizers,
        phase=status.phase,
        rung=(status.rung or 1) - 1,
        attempts=tuple(_attempt(attempt) for attempt in status.attempts),
        blocks=tuple(case.Block(_reason(found.reason), found.message, found.until) for found in status.blocked_by),
        diagnosis=status.diagnostics.outcome if status.diagnostics else case.Diagnosis.PENDING,
        evidence=status.evidence,
        timeline=tuple(case.CaseEvent(entry.at, _reason(entry.reason), entry.message) for entry in status.timeline),
        started=status.started_at,
        ended=status.ended_at,
        reason=_reason(status.reason) if status.reason else None,
        message=status.message,
    )


def _reason(word: str) -> Reason:
    """Words of a newer controller are kept out of our decisions, not an error."""
    return Reason(word) if word in _REASONS else Reason.DETECTED


_REASONS = frozenset(Reason)


def _trigger(wire: api.Trigger) -> case.Trigger | None:
    if not wire.condition:
        return None
    return case.Trigger(wire.condition, wire.status, wire.reason, wire.message, wire.since or EPOCH)


def _attempt(wire: api.Attempt) -> case.Attempt:
    return case.Attempt(
        operation=wire.operation,
        template=wire.template,
        rung=wire.rung - 1,
        started=wire.started_at or EPOCH,
        finished=wire.finished_at,
        outcome=wire.outcome,
        message=wire.message,
        boot_id=wire.intent.boot_id if wire.intent else "",
        heartbeats=wire.node_heartbeats,
        follows=wire.follows,
    )


def operation(wire: api.NodeOperation) -> case.Operation:
    """An operation."""
    meta, spec, status = wire.metadata, wire.spec, wire.status
    return case.Operation(
        name=meta.name,
        uid=meta.uid,
        node=spec.node_name,
        node_uid=spec.node_uid,
        case_uid=spec.case_uid or "",
        template=spec.template_name,
        parameters=spec.parameters,
        created=meta.creation_timestamp or EPOCH,
        version=meta.resource_version,
        deleting=meta.deletion_timestamp is not None,
        finalizers=meta.finalizers,
        phase=status.phase or case.OperationPhase.PENDING,
        drain_round=status.drain_round,
        drained=status.drained,
        drain_started=status.drain_started_at,
        drain_pod=status.drain_pod or "",
        pod=status.pod or "",
        left=status.drain.left if status.drain else None,
        blocked=_blocked(status.drain),
        intent_boot_id=status.intent.boot_id if status.intent else "",
        intent_at=status.intent.at if status.intent else None,
        finished=status.finished_at,
        reason=status.reason,
        message=status.message,
    )


def _blocked(wire: api.DrainStatus | None) -> str:
    """The pods in the way, for a person."""
    found = wire.blocked if wire else ()
    return ", ".join(f"{entry.pod} ({entry.pdb})" if entry.pdb else entry.pod for entry in found)


def paused(wire: objects.Namespace) -> bool:
    """Whether somebody stopped everything new."""
    return names.PAUSED in wire.metadata.annotations
