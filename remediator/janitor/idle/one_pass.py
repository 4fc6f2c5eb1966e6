"""One pass over GPUs that nobody uses: ask Prometheus, decide, look again, and only then act."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from remediator import windows
from remediator.core.idle_policy import IdlePolicy, Mode, Signal
from remediator.core.window import Invalid
from remediator.janitor.decide import Reason
from remediator.janitor.idle import reader
from remediator.janitor.idle.evidence import WITHIN, Answers, Evidence, by_pod, judge, questions, together
from remediator.janitor.idle.holding import WILL, Holding, decide
from remediator.janitor.idle.policy_report import OF, PolicyReport
from remediator.janitor.idle.table import State, Step, told, until
from remediator.janitor.idle.writer import IdleWriter
from remediator.janitor.outcome import Outcome
from remediator.janitor.settings import JanitorSettings
from remediator.janitor.writer import Writer
from remediator.kube.api import owners, working_pods
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.prometheus.reading import CannotTell
from remediator.prometheus.source import Source

IDLE = frozenset({State.IDLE, State.FIXED, State.SHUT})


class IdlePass:
    """One pass at one time. `leads()`: whether we may write."""

    def __init__(
        self,
        client: Client,
        settings: JanitorSettings,
        source: Source,
        writer: Writer,
        now: datetime,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client, self._settings, self._source, self._now, self._leads = client, settings, source, now, leads
        self._writer = IdleWriter(client, writer)
        self.problems: list[str] = []

    async def run(self) -> list[PolicyReport]:
        """What became of each policy. Raises ApiError where policies, Pods or owners cannot be read."""
        policies, self.problems = await reader.policies(self._client)
        held = await reader.holdings(self._client, policies, self._settings.selection) if policies else []
        reports = []
        for policy in policies:
            mine = [holding for holding in held if _is_about(policy, holding)]
            held = [holding for holding in held if not _is_about(policy, holding)]  # the first policy counts
            reports.append(await self._policy(policy, mine))
        return reports

    async def _policy(self, policy: IdlePolicy, held: list[Holding]) -> PolicyReport:
        enforces = policy.mode is Mode.ENFORCE and self._settings.mode is Mode.ENFORCE
        report = PolicyReport(policy, enforces)
        shut = windows.shut(policy.windows, self._now)
        if isinstance(shut, Invalid):
            report.problems.append(f"spec.{shut.field}: {shut.why}")
            return report
        answers = [await self._ask(signal, policy) for signal in policy.signals] if held else []
        if doubt := next((answer for answer in answers if isinstance(answer, CannotTell)), None):
            report.problems.append(f"nobody can tell what is idle: Prometheus: {doubt.doubt}: {doubt.message}")
            return report
        known = [answer for answer in answers if isinstance(answer, Answers)]
        try:
            for holding in sorted(held, key=_longest_told):
                evidence = together(judge(pod, known, policy, self._now) for pod in holding.pods)
                await self._one(report, holding, evidence, shut=shut is not None)
        except _Away as away:
            report.problems.append(f"the pass ended early: {away}")
        return report

    async def _ask(self, signal: Signal, policy: IdlePolicy) -> Answers | CannotTell:
        asked, values = questions(signal, policy), []
        for query in (asked.highest, asked.devices, asked.proven):
            reading = await self._source.instant(query, WITHIN)
            if isinstance(reading, CannotTell):
                return reading
            values.append(by_pod(reading))
        return Answers(signal, *values)

    async def _one(self, report: PolicyReport, holding: Holding, evidence: Evidence, *, shut: bool) -> None:
        known, (step, reason), why = decide(holding, evidence, report.policy, self._now, shut=shut)
        report.gpus += holding.gpus if known in IDLE else 0
        outcome = _outcome(report, holding, step)
        if step is Step.HOLD:
            report.add(Outcome.HELD, holding, reason, _sentence(holding, report.policy, self._now, reason, why))
        elif outcome is not None and outcome is not Outcome.CLEARED and report.count(outcome) >= report.policy.most:
            report.left += 1
        elif outcome is not None and not report.enforces:
            report.add(outcome, holding, reason, _sentence(holding, report.policy, self._now, reason, why))
        elif outcome is not None:
            await self._write(report, holding, evidence, step, shut=shut)

    async def _write(
        self, report: PolicyReport, holding: Holding, evidence: Evidence, step: Step, *, shut: bool
    ) -> None:
        """Look at it as it is now; where the same is right, write it under the version that was read."""
        if not self._leads():
            raise _Away("another replica leads")
        try:
            live = await self._client.get(holding.kind, holding.name, namespace=holding.namespace)
            now_held = await self._again(holding, live)
            _, (still, reason), why = decide(now_held, evidence, report.policy, self._now, shut=shut)
            if still is not step or live.metadata.uid != holding.uid:
                return
            outcome = _outcome(report, holding, step)
            if step is Step.TELL:
                await self._writer.tell(now_held, live, report.policy, why, self._now)
            elif step is Step.CLEAR:
                await self._writer.clear(now_held, live)
            elif (action := holding.action(report.policy)) is not None:
                await self._writer.act(now_held, live, report.policy, action, why, self._now)
        except errors.NotFound:
            return
        except errors.Conflict:
            report.add(Outcome.FAILED, holding, Reason.MOVED, "it changed meanwhile; the next pass looks again")
        except (errors.TooManyRequests, errors.Unavailable) as away:
            raise _Away(away.message) from away
        except errors.ApiError as refused:
            report.add(Outcome.FAILED, holding, Reason.REFUSED, refused.message)
        else:
            if outcome is not None:
                report.add(outcome, holding, reason, _sentence(holding, report.policy, self._now, reason, why))

    async def _again(self, holding: Holding, live: owners.Owner) -> Holding:
        """With what it, its namespace and its Pods bear now. Raises NotFound for a Pod that went."""
        space = (await self._client.get(NAMESPACE, holding.namespace)).metadata.annotations
        pods = []
        for pod in holding.pods:
            again = await self._client.get(working_pods.POD, pod.name, namespace=pod.namespace)
            if again.metadata.uid != pod.uid:
                raise errors.NotFound(404, "NotFound", f"{pod.name} is another Pod now")
            pods.append(reader.gpu_pod(again))
        return replace(holding, annotations=live.metadata.annotations, pods=tuple(pods), space=space)


class _Away(Exception):
    """The API server gives no answer, or another replica leads: what is left is for a later pass."""


def _is_about(policy: IdlePolicy, holding: Holding) -> bool:
    return policy.covers(holding.namespace) and any(policy.selector.matches(pod.labels) for pod in holding.pods)


def _longest_told(holding: Holding) -> tuple[bool, float, str, str]:
    at = told(holding.annotations).at
    return at is None, at.timestamp() if at else 0.0, holding.namespace, holding.name


def _outcome(report: PolicyReport, holding: Holding, step: Step) -> Outcome | None:
    action = holding.action(report.policy)
    return {Step.TELL: Outcome.TOLD, Step.CLEAR: Outcome.CLEARED, Step.ACT: OF[action] if action else None}.get(step)


def _sentence(holding: Holding, policy: IdlePolicy, now: datetime, reason: Reason, why: str) -> str:
    """What a person reads of it."""

    if reason not in (Reason.IDLE_NOTICE, Reason.GRACE, Reason.TOLD_ONLY):
        return why
    action = holding.action(policy)
    mark = told(holding.annotations)
    return f"{why}; {WILL[action]} after {until(mark, policy, now)}" if action else f"{why}; {WILL[None]}"
