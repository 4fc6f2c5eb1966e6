"""Budgets, and the status of policies, as we write them."""

from collections.abc import Iterable
from datetime import datetime

from remediator.core import names
from remediator.core.budget import Budget, Claim, Counts, GroupCounts
from remediator.core.policy import FailureBreaker, NewCriterion, Readiness
from remediator.kube import api
from remediator.kube.api.encode.objects import body, second, second_or_none, status_patch
from remediator.kube.api.patch import Body, MergePatch, MetaPatch, whole


def ledger(budget: Budget, counts: Counts) -> Body:
    """A merge patch of a budget's whole status, refused if the ledger has moved since we read it."""
    status = api.NodeDisruptionBudgetStatus(
        claims=tuple(_claim(claim) for claim in budget.claims),
        total=counts.total,
        unavailable=counts.unavailable,
        allowed=counts.allowed,
        quarantined=counts.quarantined,
        group_total=counts.group_total,
        groups_full=counts.groups_full,
        ungrouped=counts.ungrouped,
        groups=tuple(_group(group) for group in counts.groups),
        grouped_by=budget.group_by,
        breaker=_failures(budget.failing) if budget.failing != FailureBreaker() else None,
        observed_generation=budget.generation,
        adopted_generation=budget.generation,
        adopted_uid=budget.uid,
    )
    return status_patch(budget.version, status)


def _claim(claim: Claim) -> api.Claim:
    since = second(claim.since)
    return api.Claim(node=claim.node, case=claim.case, since=since, quarantined=claim.quarantined, group=claim.group)


def _group(counts: GroupCounts) -> api.GroupStatus:
    return api.GroupStatus(
        group=counts.group,
        total=counts.total,
        unavailable=counts.unavailable,
        allowed=counts.allowed,
        quarantined=counts.quarantined,
    )


def default_budget() -> Body:
    """The budget of nodes that no other budget selects: one node, or 5 % where that is more."""
    spec = api.NodeDisruptionBudgetSpec(selector=api.LabelSelector(), max_unavailable="5%", fallback=True)
    return body(api.NodeDisruptionBudget(metadata=api.ObjectMeta(name=names.DEFAULT_BUDGET), spec=spec))


def policy_ready(readiness: Readiness, message: str, now: datetime) -> Body:
    """A merge patch of a policy's status: whether it can act."""
    condition = api.Condition(
        type="Ready",
        status=readiness.status,
        reason=readiness.reason,
        message=message,
        last_transition_time=second(now),
        observed_generation=readiness.generation,
    )
    status = api.RemediationPolicyStatus(observed_generation=readiness.generation, conditions=(condition,))
    return body(MergePatch(status=whole(status, ("breaker", "selected_nodes", "criteria"))))


def policy_selected(nodes: int) -> Body:
    """A merge patch of a policy's status: how many nodes it selects."""
    return body(MergePatch(status={"selectedNodes": nodes}))


def policy_criteria(version: str, criteria: Iterable[NewCriterion]) -> Body:
    """A merge patch of what a policy does by new criteria, refused if the policy has moved since we read it."""
    rows = [
        api.NewCriterion(
            criterion=row.criterion,
            state=row.state,
            since=second(row.since),
            until=second(row.until),
            shared_at=second_or_none(row.shared),
        )
        for row in criteria
    ]
    return body(MergePatch(metadata=MetaPatch(resource_version=version), status={"criteria": rows or None}))


def policy_breaker(version: str, breaker: FailureBreaker) -> Body:
    """A merge patch of a policy's breaker on failures, refused if the policy has moved since we read it."""
    return body(MergePatch(metadata=MetaPatch(resource_version=version), status={"breaker": whole(_failures(breaker))}))


def _failures(breaker: FailureBreaker) -> api.FailureBreaker:
    attempts = tuple(
        api.AttemptRecord(
            operation=record.operation,
            template=record.template,
            ended_at=second(record.ended),
            in_vain=record.in_vain,
            node=record.node,
        )
        for record in breaker.records
    )
    return api.FailureBreaker(
        opened_at=second_or_none(breaker.opened), message=breaker.message[:4096], attempts=attempts
    )
