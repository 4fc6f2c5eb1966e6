"""ClusterCache → the inputs of the decision table of a case, and of its plans. Pure: it only reads stores."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from remediator.controller import marks
from remediator.controller.cache import ClusterCache
from remediator.controller.fleet import hosted
from remediator.core import evidence, guard, names
from remediator.core.absence import NEVER_AWAY, Absences
from remediator.core.case import (
    MOST_ATTEMPTS,
    Attempt,
    AttemptOutcome,
    Block,
    Case,
    Diagnosis,
    Operation,
    Phase,
    reason_to_end,
)
from remediator.core.case_table import CaseObservation, Tried
from remediator.core.decide import onsets
from remediator.core.evidence import Health, Proof
from remediator.core.ladder import Next, follow_up, next_rung
from remediator.core.node import Node
from remediator.core.pod import Pod
from remediator.core.policy import Policy, Template
from remediator.core.reasons import Reason

# How long a case waits for a policy that somebody deleted: then it escalates, or ends where it holds no node.
WITHOUT_POLICY = timedelta(minutes=30)
# Ends by which a user says that the node is to be left as it is.
BY_USER = frozenset({Reason.CASE_DELETED, Reason.RELEASED_BY_USER, Reason.TAINT_REMOVED_BY_USER})


@dataclass(frozen=True, slots=True)
class CaseView:
    """One case with all that its pass needs.

    Attributes:
        leave: Why the case must end; None where it need not.
        next: What the ladder offers, or why it offers nothing.
        follow_up: The template that completes the newest attempt; None where nothing is left to complete.
        look_again: When the proof of health may be complete, or its time over.
        diagnostics: The template of collect-diagnostics.
        stops: What a user, or what the node runs, stops the case with.
        absences: When nobody could act.
        gone: Uids on the node's marks whose cases are no more.
        handled: Names of cases that the node must remember when this one is over; empty while it is not.
        standing: Names that the cases have for all that is found on the node now; empty while it is not over.
    """

    observation: CaseObservation
    case: Case
    node: Node | None
    policy: Policy | None
    operation: Operation | None
    pods: tuple[Pod, ...]
    leave: Reason | None
    next: Next | Reason
    follow_up: str | None
    look_again: datetime | None
    diagnostics: Template | None
    stops: tuple[Block, ...] = ()
    absences: Absences = NEVER_AWAY
    gone: frozenset[str] = frozenset()
    handled: tuple[str, ...] = ()
    standing: frozenset[str] = frozenset()


def case_view(cache: ClusterCache, case: Case, now: datetime) -> CaseView:
    """What is observed of a case."""
    node = cache.nodes.get(case.node)
    policy = cache.policies.get(case.policy)
    operation = cache.operations.get(case.attempt.operation) if case.attempt else None
    # Pods of a node that is gone have nobody to end them; the API server collects them.
    pods = tuple(pod for pod in cache.pods.by("case_uid", case.uid) if node is not None or pod.node != case.node)
    leave = reason_to_end(case, node) or _abandoned(case, policy, now)
    proof, again = _proof(case, node, policy, cache.absences, now)
    following = next_rung(policy, case, cache.cases.by("node", case.node), now) if policy else Reason.POLICY_MISSING
    tried, follows = _tried(case, operation, node), follow_up(case, _after(cache, case))
    follow = tried is Tried.SUCCEEDED and _succeeded(case) and follows is not None
    full = follow and len(case.attempts) >= MOST_ATTEMPTS  # what completes it has no room: a person must look
    stops = guard.stops(case, node, policy, cache.paused, hosted(cache, node.name)) if node else ()
    handled, standing = _handled(cache, case, node) if case.ended is not None else ((), frozenset())
    observation = CaseObservation(
        ended=case.ended is not None,
        escalated=case.phase is Phase.ESCALATED,
        leave=leave is not None,
        pods=bool(pods),
        marks=_marks(cache, case, node),
        claimed=case.claimed,
        diagnosed=case.diagnosis is not Diagnosis.PENDING,
        health=evidence.health(node, policy, now) if node and policy else Health.UNKNOWN,
        tried=tried,
        proof=Proof.TIMED_OUT if full else proof,
        rungs=isinstance(following, Next),
        follow=follow and not full,
        uncordoned=node is not None and marks.uncordoned(node, case),
        stopped=bool(stops),
    )
    diagnostics = cache.templates.get(names.DIAGNOSTICS_TEMPLATE)
    return CaseView(
        observation,
        case,
        node,
        policy,
        operation,
        pods,
        leave,
        following,
        follows,
        again,
        diagnostics,
        stops,
        cache.absences,
        handled=handled,
        standing=standing,
    )


def _handled(cache: ClusterCache, case: Case, node: Node | None) -> tuple[tuple[str, ...], frozenset[str]]:
    """What the node must remember of an ended case, and what is found on the node now.

    A user who gives a node back means all that its policy finds there, not only what the case was opened for.
    """
    if node is None or node.uid != case.node_uid or not marks.to_remember(case):
        return (), frozenset()
    policy = cache.policies.get(case.policy)
    given_back = onsets(node, [policy]) if policy and (case.deleting or case.reason in BY_USER) else ()
    selecting = [policy for policy in cache.policies if policy.selects(node)]
    return tuple(dict.fromkeys((case.name, *given_back))), frozenset(onsets(node, selecting))


def _abandoned(case: Case, policy: Policy | None, now: datetime) -> Reason | None:
    """A case that holds no node ends some time after its policy was deleted: nobody knows what it waits for."""
    last = case.timeline[-1] if case.timeline else None
    if policy is not None or case.claimed or last is None or last.reason is not Reason.POLICY_MISSING:
        return None
    return Reason.POLICY_MISSING if now - last.at >= WITHOUT_POLICY else None


def _after(cache: ClusterCache, case: Case) -> tuple[str, ...]:
    """What the template of the newest try wants done after it."""
    template = cache.templates.get(case.tries[-1].template) if case.tries else None
    return template.after if template else ()


def _succeeded(case: Case) -> bool:
    """Whether what follows the newest attempt may be done: one that was cancelled in time has nothing to complete."""
    attempt = case.newest_counted
    return attempt is not None and (attempt.outcome is AttemptOutcome.SUCCEEDED or _does_not_apply(attempt))


def _does_not_apply(attempt: Attempt) -> bool:
    """A follow-up that has nothing to do on this node: what it would complete is complete without it."""
    return bool(attempt.follows) and attempt.nothing_to_do


def _proof(
    case: Case, node: Node | None, policy: Policy | None, absences: Absences, now: datetime
) -> tuple[Proof, datetime | None]:
    """Recovery is proven from the end of the newest attempt, or, before any, from the claim."""
    attempt = case.newest_counted
    ended = attempt.finished if attempt else case.started
    if node is None or ended is None:
        return Proof.WAITING, None
    if policy is None:  # it may come back; without it nobody can say what healthy means
        late = absences.deadline(ended, WITHOUT_POLICY)
        return (Proof.TIMED_OUT, None) if now >= late else (Proof.WAITING, min(late, now + timedelta(seconds=10)))
    return evidence.prove(node, policy, (attempt.heartbeats if attempt else None) or {}, ended, now, absences)


def _marks(cache: ClusterCache, case: Case, node: Node | None) -> bool:
    """Whether anything of ours is still to be taken off."""
    return case.finalizer or bool(ledgers_of(cache, case)) or (node is not None and marks.marked(node, case))


def ledgers_of(cache: ClusterCache, case: Case) -> list[str]:
    """The budgets that hold an entry of this case, in name order; one that cannot be read drops its entries later."""
    ledgers = (cache.budgets.get(name) for name in cache.entries.of(case.uid))
    return sorted(ledger.name for ledger in ledgers if ledger is not None and not ledger.unreadable)


def _tried(case: Case, operation: Operation | None, node: Node | None) -> Tried:
    """The state of the newest attempt. One after which the node has booted is not known to have failed: what it asked
    for may have come late, and what the node shows may be from before.
    """
    attempt = case.attempt
    if attempt is None:
        return Tried.NONE
    if attempt.outcome is AttemptOutcome.OPEN:
        return Tried.REPORTED if operation and operation.phase.outcome is not AttemptOutcome.OPEN else Tried.OPEN
    if attempt.stopped:
        return _tried(replace(case, attempts=case.counted), operation, node)
    if node is not None and attempt.before_boot(node.boot_id):
        return Tried.SUCCEEDED
    succeeded = _does_not_apply(attempt) or attempt.outcome in (AttemptOutcome.SUCCEEDED, AttemptOutcome.CANCELLED)
    return Tried.SUCCEEDED if succeeded else Tried.FAILED
