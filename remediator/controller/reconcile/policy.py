"""One pass over one policy."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog

from remediator import windows
from remediator.controller import criteria
from remediator.controller.confirmations import NOBODY_TO_ASK
from remediator.controller.effects import Done, Effect, Patch
from remediator.controller.fleet import attempt_records, missing
from remediator.controller.handlers.base import SOON, Dependencies, seconds
from remediator.controller.selected_nodes import SelectedNodes
from remediator.core import failures, idle_test, reporters
from remediator.core.alerts import PREFIX, asked
from remediator.core.dead_node import DeadNodes, on_target
from remediator.core.node import Status
from remediator.core.policy import AttemptRecord, FailureBreaker, Policy, Readiness
from remediator.core.reasons import REMEDY, Reason
from remediator.kube import api
from remediator.kube.api import encode

log = structlog.get_logger()
READY, NO_ALERTMANAGER, NO_REPORTER, CANNOT_TEST = "Ready", "NoAlertmanager", "NoReporterPod", "IdleTestCannotRun"
LONGEST = 4096  # of a message
LOOK_AGAIN = 60.0  # seconds until it is seen again whether Pods that a policy names exist


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
        """Write what differs: the breaker on failures, Ready and the number of nodes, then what is new in a release."""
        policy = self._dependencies.cache.policies.get(name)
        if policy is None or policy.unreadable:
            return None
        breaker = failures.state(policy, self._attempt_records(now), now)
        if breaker != policy.breaker:
            return await self._write_breaker(policy, breaker)
        unknown = sorted(missing(self._dependencies.cache, _operations(policy)))
        unasked = policy.confirm is not None and self._dependencies.confirmations.source is None
        needing = DeadNodes(on_target(self._dependencies.cache.templates)).need_kubelet(policy)
        wrong = [f"spec.{problem.field}: {problem.why}" for problem in windows.problems(policy.windows)]
        of_tests = windows.problems((policy.idle_test.window,)) if policy.idle_test else ()
        wrong += [f"{api.IDLE_TEST_WINDOW}.{problem.field.partition('.')[2]}: {problem.why}" for problem in of_tests]
        probe = self._dependencies.cache.templates.get(policy.idle_test.probe) if policy.idle_test else None
        untested = idle_test.cannot_run(probe, policy.idle_test) if policy.idle_test and probe else ""
        unheard = [] if self._dependencies.alerts else sorted(type.removeprefix(PREFIX) for type in asked(policy))
        absent = self._absent(policy)
        needing = needing if policy.asks_unknown else []
        reason, message = _standing(unknown, needing, unasked, wrong, unheard, absent, untested)
        readiness = Readiness(Status.TRUE if reason == READY else Status.FALSE, reason, policy.generation)
        writes = self._selected.effects(policy, now)
        if policy.readiness != readiness:
            writes.insert(0, Patch(api.POLICY, name, encode.policy_ready(readiness, message, now), "", "status"))
        if writes:
            return seconds(await self._dependencies.performer.all(writes))
        new = criteria.as_of(self._dependencies.cache, policy, self._dependencies.quiet, now)
        if new != policy.criteria:
            return await self._start_again(criteria.effects(policy, new, now), LOOK_AGAIN)
        waits = [LOOK_AGAIN] if any(reporters.asked(policy)) else []
        closes = _until_closed(policy, now)
        return min([*waits, *([] if closes is None else [closes])], default=None)

    def _absent(self, policy: Policy) -> list[str]:
        """The Conditions of Pods that the policy names and of which none exists, as every node says that it selects."""
        types = sorted(set(reporters.asked(policy)))
        return [type for type in types if self._nowhere(type, policy)]

    def _nowhere(self, type: str, policy: Policy) -> bool:
        nodes = (node for node in self._dependencies.cache.nodes if type in node.conditions and policy.selects(node))
        signs = (node.conditions[type].reason == reporters.NO_SUCH_POD for node in nodes)
        return next(signs, False) and all(signs)

    async def _write_breaker(self, policy: Policy, breaker: FailureBreaker) -> float | None:
        """Under the version that was read: who has not seen the newest attempts must not take them away."""
        if breaker.opened and not policy.breaker.opened:
            log.warning("the breaker on failures opens", policy=policy.name, because=breaker.message, once=True)
        patch = Patch(api.POLICY, policy.name, encode.policy_breaker(policy.version, breaker), "", "status")
        return await self._start_again([patch], SOON)

    async def _start_again(self, effects: Sequence[Effect], again: float) -> float | None:
        """Write what holds cases, or no longer does, and let them be admitted by it; seconds until the next look."""
        result = await self._dependencies.performer.all(effects)
        if isinstance(result, Done):
            self._dependencies.request_admission()
            return again
        return seconds(result)


def _operations(policy: Policy) -> set[str]:
    """All that the policy names: of its ladder, its probe, and those of new and of idle nodes."""
    probes = {policy.verify.probe, *(each.probe for each in (policy.admit, policy.idle_test) if each is not None)}
    return {rung.operation for rung in policy.ladder} | (probes - {""})


def _standing(
    unknown: Sequence[str],
    needing: Sequence[str],
    unasked: bool,
    wrong: Sequence[str] = (),
    unheard: Sequence[str] = (),
    absent: Sequence[str] = (),
    untested: str = "",
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
    if absent:
        return NO_REPORTER, "; ".join(map(reporters.no_such_pod, absent))[:LONGEST]
    if untested:
        return CANNOT_TEST, f"{api.IDLE_TEST_PROBE}: {untested}, so no idle node is tested"
    return READY, "every operation is known"


def _until_closed(policy: Policy, now: datetime) -> float | None:
    """Seconds until the time comes at which a user closes the breaker; the sweep finds one that lies far ahead."""
    if policy.breaker.opened is None or policy.closed_at is None or not now < policy.closed_at <= now + failures.FAR:
        return None
    return (policy.closed_at - now).total_seconds()
