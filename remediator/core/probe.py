"""The probe: an operation that must succeed on a node that looks healthy, before the node is given back."""

from datetime import datetime, timedelta

from remediator.core.case import MOST_ATTEMPTS, Attempt, AttemptOutcome, Case, Phase
from remediator.core.health import Health
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.core.proof import Proof

# One that could not tell is made again this much later, twice as long each time.
PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
INVERSE = {Health.HEALTHY: Health.UNHEALTHY, Health.UNHEALTHY: Health.HEALTHY, Health.UNKNOWN: Health.UNKNOWN}


def of_this_proof(case: Case) -> tuple[Attempt, ...]:
    """The probes that have ended since the newest operation on the node, oldest first."""
    newest = case.newest_counted
    since = case.attempts.index(newest) + 1 if newest else 0
    if case.new_node:  # one that tries again tries its probe again: there is no rung that would make it old
        since = max(since, case.retried_after)
    later = (attempt for attempt in case.attempts[since:] if attempt.probe and not attempt.stopped)
    return tuple(attempt for attempt in later if attempt.outcome is not AttemptOutcome.OPEN)


def judged(
    case: Case, policy: Policy, node: Node, proof: Proof, health: Health, deadline: datetime, now: datetime
) -> tuple[Proof, datetime | None]:
    """What the conditions prove, with what the probe says, and when to look again where that is a time of its own.

    Args:
        case: The case, with its probes.
        policy: It names the probe, or none.
        node: As it is now: a probe of another boot says nothing.
        proof: What the conditions prove.
        health: What they say now.
        deadline: When the time for proof is over. A probe that cannot tell is made again until then.
        now: Aware UTC.
    """
    if not policy.verify.probe or proof is Proof.TIMED_OUT:
        return proof, None
    newest = next((probe for probe in reversed(of_this_proof(case)) if not probe.before_boot(node.boot_id)), None)
    if newest is not None and newest.outcome is AttemptOutcome.FAILED and health is Health.HEALTHY:
        return Proof.REFUTED, None
    if proof is not Proof.PASSED:
        return proof, None
    if untouched(case) or (newest is not None and newest.outcome is AttemptOutcome.SUCCEEDED):
        return Proof.PASSED, None
    if len(case.attempts) >= MOST_ATTEMPTS or (newest is not None and now >= deadline):
        return Proof.TIMED_OUT, None
    due = again_at(case, newest)
    return (Proof.PROBE, None) if now >= due else (Proof.WAITING, min(due, deadline))


def untouched(case: Case) -> bool:
    """Whether no operation ran on the node, so that there is nothing to try out: the fault has gone by itself.

    A probe would find the GPUs busy there: no drain has run, or one that left Pods. A case that a person has had is
    none: they may have worked on the node. Nor is one of a new node, which asks for nothing but the probe.
    """
    if case.new_node:
        return False
    handed_over = case.phase is Phase.ESCALATED or case.retried is not None
    return not handed_over and not any(attempt.operated for attempt in case.counted)


def again_at(case: Case, newest: Attempt | None) -> datetime:
    """When a probe may begin after one that could not tell."""
    if newest is None:
        return case.created
    doublings: int = min(len(of_this_proof(case)) - 1, 10)
    pause: timedelta = min(PAUSE * 2**doublings, LONGEST_PAUSE)
    return (newest.finished or newest.started) + pause


def calls_for(case: Case, operation: str, health: Health, short: bool = False) -> Health:
    """What the node's health means for an operation of the case: UNHEALTHY where it is called for.

    A probe is called for on a node that looks healthy. What completes a try is called for on such a node, too, and so
    is what comes after a probe that has failed: that is the fault, and no condition shows it. `short`: so are devices
    that have not come back in time.
    """
    names = [attempt.operation for attempt in case.attempts]
    if operation not in names:
        return health
    place = names.index(operation)
    attempt = case.attempts[place]
    if attempt.probe:
        return INVERSE[health]
    before = next((earlier for earlier in reversed(case.attempts[:place]) if not earlier.stopped), None)
    refuted = before is not None and before.probe and before.outcome is AttemptOutcome.FAILED
    return Health.UNHEALTHY if health is Health.HEALTHY and (attempt.follows or refuted or short) else health


def begins_a_try(case: Case | None, operation: str) -> bool:
    """Whether the operation is a try of its own: neither completes one nor proves what it did."""
    attempts = [attempt for attempt in case.attempts if attempt.operation == operation] if case else []
    return not any(attempt.follows or attempt.probe for attempt in attempts)


def is_probe(case: Case | None, operation: str) -> bool:
    """Whether this operation of the case only proves health."""
    return case is not None and any(attempt.probe and attempt.operation == operation for attempt in case.attempts)
