"""Policies, templates and budgets as we read them."""

from collections.abc import Iterable

from remediator.core import budget, names, policy
from remediator.core.selector import Operator, Requirement, Selector
from remediator.kube import api
from remediator.kube.api.decode.times import EPOCH, duration, moment, moment_of_node


def selector(wire: api.LabelSelector) -> Selector:
    """A label selector; matchLabels are requirements, too."""
    equal = [Requirement(key, Operator.IN, (value,)) for key, value in sorted(wire.match_labels.items())]
    more = [Requirement(row.key, row.operator, row.values) for row in wire.match_expressions]
    return Selector((*equal, *more))


def remediation_policy(wire: api.RemediationPolicy) -> policy.Policy:
    """A policy."""
    spec = wire.spec
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
        closed_at=moment_of_node(wire.metadata.annotations.get(names.BREAKER_CLOSED_AT)),
        breaker=_breaker(wire.status.breaker),
        readiness=_readiness(wire.status.conditions),
        version=wire.metadata.resource_version,
    )


def _breaker(wire: api.FailureBreaker | None) -> policy.FailureBreaker:
    if wire is None:
        return policy.FailureBreaker()
    records = tuple(
        policy.AttemptRecord(record.operation, record.template, moment(record.ended_at), record.in_vain, record.node)
        for record in wire.attempts
    )
    return policy.FailureBreaker(moment(wire.opened_at), wire.message, records)


def _readiness(conditions: Iterable[api.Condition]) -> policy.Readiness | None:
    ready = next((condition for condition in conditions if condition.type == "Ready"), None)
    return policy.Readiness(ready.status, ready.reason, ready.observed_generation) if ready else None


def _correlation(wire: api.Correlation | None) -> policy.Correlation | None:
    return policy.Correlation(wire.nodes, duration(wire.within), wire.by or (policy.MESSAGE,)) if wire else None


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
        claims=tuple(claim(entry) for entry in status.claims),
        shown=_counts(status),
        version=meta.resource_version,
        max_quarantined=_amount(wire.spec.max_quarantined) or budget.DEFAULT_QUARANTINED,
        group_by=wire.spec.group_by or "",
        grouped_by=status.grouped_by,
    )


def claim(wire: api.Claim) -> budget.Claim:
    """One entry of a ledger."""
    return budget.Claim(wire.node, wire.case, moment(wire.since) or EPOCH, wire.quarantined, wire.group)


def _counts(wire: api.NodeDisruptionBudgetStatus) -> budget.Counts | None:
    if wire.total is None or wire.unavailable is None or wire.allowed is None or wire.quarantined is None:
        return None
    groups = tuple(
        budget.GroupCounts(group.group, group.total, group.unavailable, group.allowed, group.quarantined)
        for group in wire.groups
    )
    shown = (wire.total, wire.unavailable, wire.allowed, wire.quarantined)
    return budget.Counts(*shown, wire.group_total, wire.groups_full, wire.ungrouped, groups)


def _amount(wire: int | str | None) -> budget.Amount | None:
    if wire is None or isinstance(wire, int):
        return None if wire is None else budget.Amount(wire)
    return budget.Amount(int(wire.removesuffix("%")), percent=True)
