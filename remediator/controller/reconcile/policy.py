"""One pass over one policy."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog

from remediator import windows
from remediator.controller.confirmations import NOBODY_TO_ASK
from remediator.controller.effects import Done, Patch
from remediator.controller.fleet import attempt_records, missing
from remediator.controller.handlers.base import SOON, Dependencies, seconds
from remediator.controller.selected_nodes import SelectedNodes
from remediator.core import failures
from remediator.core.alerts import PREFIX, asked
from remediator.core.dead_node import DeadNodes, on_target
from remediator.core.node import Status
from remediator.core.policy import AttemptRecord, FailureBreaker, Policy, Readiness
from remediator.core.reasons import REMEDY, Reason
from remediator.kube import api
from remediator.kube.api import encode

log = structlog.get_logger()
READY, NO_ALERTMANAGER, LONGEST = "Ready", "NoAlertmanager", 4096  # of a message


class PolicyReconciler:
    """Writes on each policy whether it can act, what became of its attempts, and how many nodes it selects."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._made_for: tuple[datetime, int] | None = None
        self._selected = SelectedNodes(dependencies.cache)
        self._records: Mapping[str, tuple[AttemptRecord, ...]] = {}

    def _attempt_records(self, now: datetime) -> Mapping[str, tuple[AttemptRecord, ...]]:
        """Those of all policies: in a sweep every policy asks for them, and nothing has moved in between."""
        cache = self._dependencies.cache
        cache.cases.settle()
        if self._made_for != (now, cache.moved):
            self._made_for, self._records = (now, cache.moved), attempt_records(cache, now)
        return self._records

    async def reconcile(self, name: str, now: datetime) -> float | None:
        """Write what differs: the breaker on failures, then the Ready condition and the number of nodes."""
        policy = self._dependencies.cache.policies.get(name)
        if policy is None or policy.unreadable:
            return None
        breaker = failures.state(policy, self._attempt_records(now), now)
        if breaker != policy.breaker:
            return await self._write_breaker(policy, breaker)
        operations = {rung.operation for rung in policy.ladder} | ({policy.verify.probe} - {""})
        unknown = sorted(missing(self._dependencies.cache, operations))
        unasked = policy.confirm is not None and self._dependencies.confirmations.source is None
        needing = DeadNodes(on_target(self._dependencies.cache.templates)).need_kubelet(policy)
        wrong = [f"spec.{problem.field}: {problem.why}" for problem in windows.problems(policy.windows)]
        unheard = [] if self._dependencies.alerts else sorted(type.removeprefix(PREFIX) for type in asked(policy))
        reason, message = _standing(unknown, needing if policy.asks_unknown else [], unasked, wrong, unheard)
        readiness = Readiness(Status.TRUE if reason == READY else Status.FALSE, reason, policy.generation)
        writes = self._selected.effects(policy, now)
        if policy.readiness != readiness:
            writes.insert(0, Patch(api.POLICY, name, encode.policy_ready(readiness, message, now), "", "status"))
        if not writes:
            return _until_closed(policy, now)
        return seconds(await self._dependencies.performer.all(writes))

    async def _write_breaker(self, policy: Policy, breaker: FailureBreaker) -> float | None:
        """Under the version that was read: who has not seen the newest attempts must not take them away."""
        if breaker.opened and not policy.breaker.opened:
            log.warning("the breaker on failures opens", policy=policy.name, because=breaker.message)
        patch = Patch(api.POLICY, policy.name, encode.policy_breaker(policy.version, breaker), "", "status")
        result = await self._dependencies.performer.all([patch])
        if isinstance(result, Done):
            self._dependencies.request_admission()
            return SOON
        return seconds(result)


def _standing(
    unknown: Sequence[str],
    needing: Sequence[str],
    unasked: bool,
    wrong: Sequence[str] = (),
    unheard: Sequence[str] = (),
) -> tuple[str, str]:
    """Reason and message of the Ready condition."""
    if unknown:
        return Reason.UNKNOWN_OPERATION.value, f"no NodeOperationTemplate {', '.join(unknown)}"
    if needing:
        message = f"{', '.join(needing)} would run on a node whose kubelet does not report"
        return Reason.NEEDS_KUBELET.value, f"{message}; {REMEDY[Reason.NEEDS_KUBELET]}"
    if wrong:
        return Reason.WINDOW_INVALID.value, "; ".join(wrong)[:LONGEST]
    if unasked:
        return Reason.CONFIRMATION_UNKNOWN.value, NOBODY_TO_ASK.why
    if unheard:
        alerts = f"nobody is asked whether {', '.join(unheard)} fires"
        return NO_ALERTMANAGER, f"{alerts}, so it starts nothing; give the controller --alertmanager-url"
    return READY, "every operation is known"


def _until_closed(policy: Policy, now: datetime) -> float | None:
    """Seconds until the time comes at which a user closes the breaker; the sweep finds one that lies far ahead."""
    if policy.breaker.opened is None or policy.closed_at is None or not now < policy.closed_at <= now + failures.FAR:
        return None
    return (policy.closed_at - now).total_seconds()
