"""Cases and operations as we read them. There are thousands: the words that many of them have in common are shared."""

from collections.abc import Mapping
from sys import intern
from types import MappingProxyType

from remediator.core import case
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api.decode.times import EPOCH, moment

NONE: Mapping[str, str] = MappingProxyType({})  # parameters of most operations


def remediation_case(wire: api.NodeRemediation) -> case.Case:
    """A case; of one that has ended and given its finalizer up only what is still needed of it."""
    whole = _case(wire)
    return case.slim(whole) if whole.ended is not None and not whole.finalizers else whole


def _case(wire: api.NodeRemediation) -> case.Case:
    meta, spec, status = wire.metadata, wire.spec, wire.status
    return case.Case(
        name=meta.name,
        uid=intern(meta.uid),
        node=intern(spec.node_name),
        node_uid=intern(spec.node_uid),
        policy=intern(spec.policy_name),
        trigger=_trigger(spec.trigger),
        created=moment(meta.creation_timestamp) or EPOCH,
        version=meta.resource_version,
        hold=spec.hold,
        release=spec.release,
        deleting=meta.deletion_timestamp is not None,
        finalizers=meta.finalizers,
        phase=status.phase,
        rung=_rung(status.rung or 1),
        attempts=tuple(_attempt(attempt) for attempt in status.attempts),
        blocks=tuple(
            case.Block(_reason(block.reason), block.message, moment(block.until), block.reported)
            for block in status.blocked_by
        ),
        diagnosis=status.diagnostics.outcome if status.diagnostics else case.Diagnosis.PENDING,
        evidence=status.evidence,
        timeline=tuple(
            case.CaseEvent(moment(entry.at), _reason(entry.reason), entry.message) for entry in status.timeline
        ),
        started=moment(status.started_at),
        ended=moment(status.ended_at),
        reason=_reason(status.reason) if status.reason else None,
        message=intern(status.message),
    )


def _block(wire: api.Blocker) -> case.Block:
    return case.Block(_reason(wire.reason), wire.message, moment(wire.until), wire.reported)


def _reason(word: str) -> Reason:
    """Words of a newer controller are kept out of our decisions, not an error."""
    return Reason(word) if word in _REASONS else Reason.DETECTED


_REASONS = frozenset(Reason)


def _trigger(wire: api.Trigger) -> case.Trigger | None:
    if not wire.condition:
        return None
    return case.Trigger(
        intern(wire.condition),
        intern(wire.status),
        intern(wire.reason),
        intern(wire.message),
        moment(wire.since) or EPOCH,
        intern(wire.cause),
    )


def _rung(number: int) -> int:
    """The index into a ladder, of which none has more than 16 rungs."""
    return min(max(number - 1, 0), 16)


def _attempt(wire: api.Attempt) -> case.Attempt:
    return case.Attempt(
        operation=wire.operation,
        template=intern(wire.template),
        rung=_rung(wire.rung),
        started=moment(wire.started_at) or EPOCH,
        finished=moment(wire.finished_at),
        outcome=wire.outcome,
        reason=intern(wire.reason),
        message=intern(wire.message),
        boot_id=wire.intent.boot_id if wire.intent else "",
        heartbeats={name: moment(at) for name, at in wire.node_heartbeats.items()},
        follows=wire.follows,
        counts=wire.counts,
    )


def operation(wire: api.NodeOperation) -> case.Operation:
    """An operation."""
    meta, spec, status = wire.metadata, wire.spec, wire.status
    return case.Operation(
        name=meta.name,
        uid=meta.uid,
        node=intern(spec.node_name),
        node_uid=intern(spec.node_uid),
        case_uid=intern(spec.case_uid or ""),
        template=intern(spec.template_name),
        requested_by=intern(spec.requested_by or ""),
        parameters=spec.parameters or NONE,
        created=moment(meta.creation_timestamp) or EPOCH,
        version=meta.resource_version,
        deleting=meta.deletion_timestamp is not None,
        finalizers=meta.finalizers,
        phase=status.phase or case.OperationPhase.PENDING,
        drain_round=status.drain_round,
        drained_at=moment(status.drained_at),
        drain_started=moment(status.drain_started_at),
        drain_pod=status.drain_pod or "",
        pod=status.pod or "",
        left=status.drain.left if status.drain else None,
        blocked=_blocked(status.drain),
        intent_boot_id=status.intent.boot_id if status.intent else "",
        intent_at=moment(status.intent.at) if status.intent else None,
        finished=moment(status.finished_at),
        reason=intern(status.reason),
        message=intern(status.message),
    )


def _blocked(wire: api.DrainStatus | None) -> str:
    """The pods in the way, for a person."""
    blocked = wire.blocked if wire else ()
    return ", ".join(f"{entry.pod} ({entry.pdb})" if entry.pdb else entry.pod for entry in blocked)
