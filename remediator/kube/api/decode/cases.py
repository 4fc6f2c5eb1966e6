"""Cases and operations as we read them. There are thousands: the words that many of them have in common are shared."""

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from types import MappingProxyType

from remediator.core import case, names
from remediator.core.command import LONGEST_REASON, hold_until
from remediator.core.gpus import gpus_of
from remediator.core.jobs_at_stake import BlastRadius, JobAtStake
from remediator.core.node import Gpus
from remediator.core.operation import Operation, OperationPhase
from remediator.core.reasons import Reason
from remediator.core.sharing import Layout
from remediator.kube import api
from remediator.kube.api.decode.times import EPOCH, moment

NONE: Mapping[str, str] = MappingProxyType({})  # parameters of most operations
LONGEST = 2000  # characters of what is said of the Pods in the way: it stands in each attempt


def remediation_case(wire: api.NodeRemediation) -> case.Case:
    """A case; of one that has ended and given its finalizer up only what is still needed of it."""
    whole = whole_case(wire)
    return case.slim(whole) if whole.ended is not None and not whole.finalizers else whole


def _set_by(spec: api.NodeRemediationSpec) -> case.SetBy:
    """Nearly always nobody is named, and then it is one object for all cases."""
    users = (spec.hold_set_by, spec.release_set_by, spec.approved_by, spec.retry_set_by)
    named = case.SetBy(*(intern(by or "") for by in users))
    return named if any(named) else case.NOBODY


def whole_case(wire: api.NodeRemediation) -> case.Case:
    """A case with all that is kept of it."""
    meta, spec, status = wire.metadata, wire.spec, wire.status
    return case.Case(
        name=meta.name,
        uid=intern(meta.uid),
        node=intern(spec.node_name),
        node_uid=intern(spec.node_uid),
        policy=intern(spec.policy_name or ""),
        manual=_manual(spec.manual, meta.labels.get(names.ASKED_BY_LABEL, "")),
        keep_out=_keep_out(spec.keep_out),
        new_node=_new_node(spec.new_node.taint, spec.new_node.machine) if spec.new_node else None,
        trigger=_trigger(spec.trigger),
        created=moment(meta.creation_timestamp) or EPOCH,
        version=meta.resource_version,
        hold=spec.hold,
        hold_terms=_hold_terms(wire),
        release=spec.release,
        approved=spec.approved,
        retry=spec.retry,
        set_by=_set_by(spec),
        deleting=meta.deletion_timestamp is not None,
        finalizers=meta.finalizers,
        phase=status.phase,
        rung=_rung(status.rung or 1),
        attempts=tuple(_attempt(attempt) for attempt in status.attempts),
        blocks=tuple(_block(block) for block in status.blocked_by),
        diagnosis=status.diagnostics.outcome if status.diagnostics else case.Diagnosis.PENDING,
        evidence=status.evidence,
        gpus=gpus_of(status.evidence, spec.trigger.condition or "", spec.trigger.message),
        history=tuple(_past(past) for past in status.history),
        blast=_blast_radius(status.blast_radius) if status.blast_radius else None,
        timeline=tuple(
            case.CaseEvent(moment(entry.at), _reason(entry.reason), entry.message) for entry in status.timeline
        ),
        started=moment(status.started_at),
        ended=moment(status.ended_at),
        reason=_reason(status.reason) if status.reason else None,
        message=intern(status.message),
        healthy_since=moment(status.healthy_since),
        retries=status.retries,
        retried=moment(status.retried_at),
        retried_after=status.retried_after,
    )


def _hold_terms(wire: api.NodeRemediation) -> case.HoldTerms:
    """Nearly no case has any. Those of comments are ended by who reads comments."""
    notes = wire.metadata.annotations
    by_comment = (wire.spec.hold_set_by or "").startswith(names.COMMENTER)
    ends = hold_until(notes) if names.HOLD_UNTIL in notes and not by_comment else None
    terms = case.HoldTerms(ends, notes.get(names.HOLD_REASON, "")[:LONGEST_REASON])
    return terms if any(terms) else case.NO_TERMS


def _past(wire: api.PastCase) -> case.PastCase:
    ended = moment(wire.ended_at) or EPOCH
    return case.PastCase(wire.case, wire.node_name, wire.policy_name, ended, wire.operations, wire.outcome)


def _blast_radius(wire: api.BlastRadius) -> BlastRadius:
    jobs = tuple(
        JobAtStake(job.kind, job.namespace, job.name, job.gpus_on_node, job.gpus, moment(job.since), job.gpu_hours)
        for job in wire.largest
    )
    numbers = (wire.jobs, wire.pods, wire.gpus_on_node, wire.gpus, wire.gpu_hours)
    return BlastRadius(moment(wire.at) or EPOCH, jobs, *numbers, unknown=wire.unknown)


def _block(wire: api.Blocker) -> case.Block:
    return case.Block(_reason(wire.reason), wire.message, moment(wire.until), wire.reported, moment(wire.since))


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
        _devices(tuple(sorted(wire.devices.items()))) if wire.devices else (),
        _layout(tuple(sorted(wire.layout.items()))) if wire.layout else (),
    )


@lru_cache(256)
def _devices(devices: Gpus) -> Gpus:
    """Nearly all nodes have the same: one object for all."""
    return devices


@lru_cache(256)
def _layout(layout: Layout) -> Layout:
    """The same for how they are divided and shared."""
    return layout


def _new_node(taint: str, machine: str) -> case.NewNode:
    return case.NewNode(intern(taint), machine)


def _manual(wire: api.Manual | None, source: str) -> case.Manual | None:
    if wire is None:
        return None
    template, user = intern(wire.template_name), intern(wire.requested_by or "")
    return case.Manual(wire.operation, wire.uid, template, wire.parameters, user, intern(source))


def _keep_out(wire: api.KeepOut | None) -> case.KeepOut | None:
    return case.KeepOut(moment(wire.until), wire.reason) if wire else None


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
        probe=wire.probe,
        counts=wire.counts,
    )


def operation(wire: api.NodeOperation) -> Operation:
    """An operation."""
    meta, spec, status = wire.metadata, wire.spec, wire.status
    return Operation(
        name=meta.name,
        uid=meta.uid,
        node=intern(spec.node_name),
        node_uid=intern(spec.node_uid),
        case_uid=intern(spec.case_uid or ""),
        template=intern(spec.template_name),
        requested_by=intern(spec.requested_by or ""),
        source=intern(meta.labels.get(names.ASKED_BY_LABEL, "")),
        parameters=spec.parameters or NONE,
        keep_out=_keep_out(spec.keep_out),
        created=moment(meta.creation_timestamp) or EPOCH,
        version=meta.resource_version,
        deleting=meta.deletion_timestamp is not None,
        finalizers=meta.finalizers,
        phase=status.phase or OperationPhase.PENDING,
        case_name=status.case_name or "",
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
    """The pods in the way, for a person, by what keeps them: PodDisruptionBudgets by name, else the message.

    Those come first whose evictions nobody judges, so that they are in the text however long it is.
    """
    kept = defaultdict[str, list[str]](list)
    for entry in wire.blocked if wire else ():
        kept[entry.pdb or entry.message].append(entry.pod)
    ordered = sorted(kept.items(), key=lambda each: not each[0].startswith(names.UNJUDGED))
    text = "; ".join(f"{', '.join(pods)} ({why})" if why else ", ".join(pods) for why, pods in ordered)
    return text[:LONGEST]
