"""Policies, templates and budgets as we read them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from sys import intern
from typing import Any

from remediator.core import budget, names, policy
from remediator.core.alerts import condition_of
from remediator.core.node import Status
from remediator.core.node_events import EventRule
from remediator.core.reporters import Reporter
from remediator.core.selector import Operator, Requirement, Selector
from remediator.core.template import GRACE, DrainRule, Neighbours, Template, Toleration
from remediator.core.window import Window
from remediator.kube import api
from remediator.kube.api.decode.times import EPOCH, duration, limited, moment, moment_of_node

MOST_GRACE = 24 * 3600  # seconds of a Pod that has some written


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
        when=tuple(_when(entry, number) for number, entry in enumerate(spec.when)),
        ladder=tuple(policy.Rung(rung.operation, rung.attempts, rung.parameters) for rung in spec.ladder),
        severity=spec.severity,
        verify=_verify(spec.verify),
        attempts_max=spec.attempts.max,
        attempts_window=limited(spec.attempts.window, "spec.attempts.window"),
        cooldown=limited(spec.cooldown, "spec.cooldown"),
        mode=spec.mode,
        urgency=spec.urgency.mode if spec.urgency else policy.Urgency.NOW,
        idle_deadline=_idle_deadline(spec.urgency),
        windows=tuple(map(window, spec.windows)),
        approval=spec.approval,
        ticket=spec.ticket.when if spec.ticket else policy.TicketWhen.NEVER,
        route=(spec.ticket.route if spec.ticket else None) or "",
        correlation=_correlation(spec.correlation),
        confirm=_confirm(spec.confirm),
        release=spec.escalation.release if spec.escalation else policy.Release.MANUAL,
        require_spare_gpus=spec.require_spare_gpus,
        max_blast_radius=_blast_limit(spec.max_blast_radius),
        relapse=limited(spec.relapse.window, "spec.relapse.window") if spec.relapse else None,
        lemon=policy.Lemon(spec.lemon.cases, limited(spec.lemon.window, "spec.lemon.window")) if spec.lemon else None,
        admit=policy.Admit(spec.admit.probe, intern(spec.admit.taint)) if spec.admit else None,
        idle_test=_idle_test(spec.idle_test),
        generation=wire.metadata.generation,
        closed_at=closed_at(wire.metadata),
        breaker=failures(wire.status.breaker),
        readiness=_readiness(wire.status.conditions),
        selected=wire.status.selected_nodes,
        created=moment(wire.metadata.creation_timestamp),
        trusts=_trusted(wire.metadata.annotations.get(names.TRUSTED_CRITERIA, "")),
        criteria=tuple(map(_criterion, wire.status.criteria)),
        uid=wire.metadata.uid,
        version=wire.metadata.resource_version,
    )


def _trusted(text: str) -> frozenset[str]:
    """The criteria that an annotation names, with commas between them."""
    return frozenset(word.strip() for word in text.split(",")) - {""}


def _criterion(wire: api.NewCriterion) -> policy.NewCriterion:
    shared = moment(wire.shared_at)
    return policy.NewCriterion(wire.criterion, wire.state, moment(wire.since), moment(wire.until), shared)


def closed_at(meta: api.ObjectMeta) -> datetime | None:
    """When a user closed the breaker on failures last."""
    return moment_of_node(meta.annotations.get(names.BREAKER_CLOSED_AT))


def _verify(wire: api.Verify) -> policy.Verify:
    settle, fresh = limited(wire.settle, "spec.verify.settle"), limited(wire.fresh, "spec.verify.fresh")
    times = (settle, fresh, limited(wire.timeout, "spec.verify.timeout"))
    return policy.Verify(*times, wire.probe or "", wire.inventory)


def failures(wire: api.FailureBreaker | None) -> policy.FailureBreaker:
    """A breaker on failures, as a status says."""
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


def window(wire: api.Window) -> Window:
    """A time in which cases may start."""
    return Window(wire.cron, duration(wire.duration), wire.time_zone)


def _idle_test(wire: api.IdleTest | None) -> policy.IdleTest | None:
    if wire is None:
        return None
    percent = isinstance(wire.share, str)
    share = int(wire.share.removesuffix("%")) if isinstance(wire.share, str) else wire.share
    return policy.IdleTest(wire.probe, share, window(wire.window), percent)


def _idle_deadline(wire: api.Urgency | None) -> timedelta | None:
    """How long WhenIdle waits; None where it waits for ever, or another mode does not wait at all."""
    if wire is None or wire.mode is not policy.Urgency.WHEN_IDLE or wire.deadline == "None":
        return None
    return limited(wire.deadline or "24h", "spec.urgency.deadline")


def _correlation(wire: api.Correlation | None) -> policy.Correlation | None:
    if wire is None:
        return None
    within = limited(wire.within, "spec.correlation.within")
    return policy.Correlation(wire.nodes, within, wire.by or (policy.MESSAGE,))


def _confirm(wire: api.Confirm | None) -> policy.Confirm | None:
    return policy.Confirm(wire.prom_ql, duration(wire.within)) if wire else None


def _blast_limit(wire: api.MaxBlastRadius | None) -> policy.BlastLimit | None:
    return policy.BlastLimit(wire.jobs, wire.gpu_hours) if wire else None


def _when(wire: api.When, number: int) -> policy.When:
    entries: Iterable[api.ConditionMatch | api.When] = wire.all or (wire,)
    clauses = (policy.Clause(condition_of(wire.alert)),) if wire.alert else tuple(map(_clause, entries))
    if wire.event:
        clauses = (policy.Clause(_event_rule(wire.event, number).condition),)
    if wire.no_ready_pod:
        clauses = (policy.Clause(_reporter(wire.no_ready_pod), Status.FALSE),)
    if wire.stale_after or wire.reported_by:
        clauses = (replace(clauses[0], stale_after=_stale_after(wire, number), reporter=_reporter(wire.reported_by)),)
    return policy.When(clauses, limited(wire.for_, f"spec.when[{number}].for"))


def _event_rule(wire: api.EventMatch, number: int) -> EventRule:
    return EventRule(wire.reason, wire.count, limited(wire.within, f"spec.when[{number}].event.within"))


def _stale_after(wire: api.When, number: int) -> timedelta | None:
    return limited(wire.stale_after, f"spec.when[{number}].staleAfter") if wire.stale_after else None


def _reporter(wire: api.ReportedBy | None) -> str:
    return Reporter(wire.namespace, tuple(sorted(wire.match_labels.items()))).condition if wire else ""


def _clause(wire: api.ConditionMatch | api.When) -> policy.Clause:
    return policy.Clause(wire.condition or "", wire.status, frozenset(wire.reasons))


def template(wire: api.NodeOperationTemplate) -> Template:
    """A template."""
    spec, drain = wire.spec, wire.spec.drain
    skip, evict_for, override = drain.skip_wait_for_delete, drain.evict_for, drain.override_annotations_after
    return Template(
        name=wire.metadata.name,
        strategy=drain.strategy,
        drain_timeout=limited(drain.timeout, "spec.drain.timeout"),
        skip_wait_for_delete=limited(skip, "spec.drain.skipWaitForDelete") if skip else None,
        run_on=spec.run_on,
        timeout=limited(spec.timeout, "spec.timeout"),
        boot_id_changed=spec.success.boot_id_changed,
        node_ready=spec.success.node_ready,
        pod=spec.pod_template,
        version=wire.metadata.resource_version,
        after=spec.after,
        covers=spec.covers,
        tolerations=_tolerations(spec.pod_template),
        grace=_grace(spec.pod_template),
        drain_rules=tuple(_drain_rule(rule) for rule in drain.rules),
        evict_for=limited(evict_for, "spec.drain.evictFor") if evict_for else None,
        delete_bare_pods=drain.delete_bare_pods,
        delete_empty_dir_data=drain.delete_empty_dir_data,
        override_annotations_after=duration(override) if override else None,
        drain_condition=spec.drain.condition or "",
        pauses_gpu_operands=spec.pause_gpu_operands,
        neighbours=Neighbours(spec.neighbours.same_label, spec.neighbours.at_once) if spec.neighbours else None,
    )


def _drain_rule(wire: api.DrainRule) -> DrainRule:
    labels = wire.selector.match_labels if wire.selector else {}
    return DrainRule(wire.strategy, wire.namespaces, labels, wire.owners)


def _tolerations(pod: Mapping[str, Any]) -> tuple[Toleration, ...]:
    """What the Pod bears, as far as it can be read: the API server judges it when the Pod is made."""
    spec = pod.get("spec")
    listed = spec.get("tolerations") if isinstance(spec, dict) else None
    return tuple(_toleration(entry) for entry in listed or () if isinstance(entry, dict))


def _grace(pod: Mapping[str, Any]) -> timedelta:
    """How long the Pod has to end; what the API server will give it where nothing is written that can be read."""
    spec = pod.get("spec")
    seconds = spec.get("terminationGracePeriodSeconds") if isinstance(spec, dict) else None
    return timedelta(seconds=min(max(seconds, 1), MOST_GRACE)) if isinstance(seconds, int) else GRACE


def _toleration(entry: Mapping[str, Any]) -> Toleration:
    key, effect = str(entry.get("key") or ""), str(entry.get("effect") or "")
    exists = entry.get("operator") == "Exists"
    return Toleration(key, None if exists else str(entry.get("value") or ""), effect)


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
        breaker=breaker_rule(wire.spec.breaker),
        failing=failures(status.breaker),
        closed_at=closed_at(meta),
    )


def breaker_rule(wire: api.BudgetBreaker | None) -> budget.BreakerRule | None:
    """When nothing more starts under a budget; None where it does not say."""
    if wire is None:
        return None
    limit = wire.failures or api.FailureLimit()
    most = limit.most if wire.failures else None
    return budget.BreakerRule(wire.starts, wire.percent, duration(wire.window), limit.of, most)


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
