"""What has become of the attempts of a case, and what its node proves since the newest one. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from remediator.core import manual, probe
from remediator.core.absence import Absences
from remediator.core.case import Attempt, AttemptOutcome, Case, Phase
from remediator.core.case_table import Tried
from remediator.core.health import Health, health_of
from remediator.core.inventory import Devices
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.policy import Policy
from remediator.core.proof import LOOK_AGAIN, Proof
from remediator.core.proof import prove as prove_by_conditions
from remediator.core.reasons import Reason

# How long a case waits for a policy that somebody deleted: then it escalates, or ends where it holds no node.
WITHOUT_POLICY = timedelta(minutes=30)
# Of a case that a person has: probes that could not tell, and when it is looked at again.
MOST_PROBES, LONGEST_LOOK = 8, timedelta(hours=1)


def end_of_try(case: Case) -> tuple[datetime | None, Mapping[str, datetime]]:
    """From when on health is proven, and the node's heartbeats then: the end of the newest attempt, or the claim."""
    attempt = case.newest_counted
    return (attempt.finished, attempt.heartbeats or {}) if attempt else (case.started, {})


def tried(case: Case, operation: Operation | None, node: Node | None) -> Tried:
    """The state of the newest attempt. One after which the node has booted is not known to have failed: what it asked
    for may have come late, and what the node shows may be from before.
    """
    attempt = case.attempt
    if attempt is None:
        return Tried.NONE
    if attempt.outcome is AttemptOutcome.OPEN:
        return Tried.REPORTED if operation and operation.phase.outcome is not AttemptOutcome.OPEN else Tried.OPEN
    if attempt.stopped or attempt.probe:
        return tried(replace(case, attempts=case.counted), operation, node)
    if node is not None and attempt.before_boot(node.boot_id):
        return Tried.SUCCEEDED
    succeeded = _does_not_apply(attempt) or attempt.outcome in (AttemptOutcome.SUCCEEDED, AttemptOutcome.CANCELLED)
    return Tried.SUCCEEDED if succeeded else Tried.FAILED


def has_succeeded(case: Case) -> bool:
    """Whether what follows the newest attempt may be done: one that was cancelled in time has nothing to complete."""
    attempt = case.newest_counted
    return attempt is not None and (attempt.outcome is AttemptOutcome.SUCCEEDED or _does_not_apply(attempt))


def keeps_node(case: Case, node: Node | None) -> bool:
    """Whether the operation of a user who keeps its node has succeeded. A node that is uncordoned works already."""
    cordoned = node is not None and node.unschedulable
    return case.keep_out is not None and cordoned and manual.carried_out(case) and has_succeeded(case)


def _does_not_apply(attempt: Attempt) -> bool:
    """A follow-up that has nothing to do on this node: what it would complete is complete without it."""
    return bool(attempt.follows) and attempt.nothing_to_do


def prove(
    case: Case, node: Node | None, policy: Policy | None, absences: Absences, devices: Devices, now: datetime
) -> tuple[Proof, datetime | None]:
    """Recovery is proven from the end of the newest attempt, or, before any, from the claim.

    Conditions that are well prove nothing of devices: a node that lacks some is refuted in the end, and of one that
    does not count them nobody knows.
    """
    ended, base = end_of_try(case)
    if node is None or ended is None:
        return Proof.WAITING, None
    if case.manual and not manual.carried_out(case):  # the proof of a try before this one had its time
        return (Proof.TIMED_OUT if case.retried else Proof.WAITING), None
    if policy is None:
        return _without_policy(case, ended, absences, now)
    health = health_of(node, policy, now)
    # A case that tries again has its time for proof anew; one whose fault shows needs none.
    begun = max(ended, case.retried) if case.retried and health is not Health.UNHEALTHY else ended
    proof, again = prove_by_conditions(node, policy, base, begun, now, absences)
    deadline = absences.deadline(begun, policy.verify.timeout)
    if case.phase is Phase.ESCALATED:  # a person has it, and no time runs
        deadline = now + LONGEST_LOOK if len(probe.of_this_proof(case)) < MOST_PROBES else now
    if proof is Proof.PASSED and (devices.lacking or devices.unknown):
        if now < deadline or case.phase is Phase.ESCALATED:
            return Proof.WAITING, min(now + LOOK_AGAIN, max(deadline, now))
        return (Proof.REFUTED if devices.lacking else Proof.TIMED_OUT), None
    proof, due = probe.judged(case, policy, node, proof, health, deadline, now)
    return proof, due or again


def _without_policy(case: Case, ended: datetime, absences: Absences, now: datetime) -> tuple[Proof, datetime | None]:
    """It may come back; without it nobody can say what healthy means. Its time runs from when the case has said so: a
    policy that is deleted and made again is away for a second, however long the case has waited.
    """
    soon = now + timedelta(seconds=10)
    since = next((block.since for block in case.blocks if block.reason is Reason.POLICY_MISSING), None)
    if since is None:
        return Proof.WAITING, soon
    late = absences.deadline(max(since, ended), WITHOUT_POLICY)
    return (Proof.TIMED_OUT, None) if now >= late else (Proof.WAITING, min(late, soon))
