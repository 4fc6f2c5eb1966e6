"""One pass over IdlePolicies: ask what proves it, decide, look again, and only then act."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from remediator import windows
from remediator.core.idle_policy import Finding, IdlePolicy, JanitorMode
from remediator.core.pod_facts import Key, PodFacts
from remediator.core.window import InvalidWindow
from remediator.janitor.decide import JanitorReason
from remediator.janitor.idle import nvml, reader
from remediator.janitor.idle.evidence import Evidence, all_of
from remediator.janitor.idle.holding import WILL, Holding, decide
from remediator.janitor.idle.policy_report import OF, PolicyReport
from remediator.janitor.idle.sources import Judge, Sources, named
from remediator.janitor.idle.stuck import any_of
from remediator.janitor.idle.table import WORDS, IdleStep, State, given, told, until
from remediator.janitor.idle.writer import IdleWriter
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.pods import PodWatch
from remediator.janitor.settings import JanitorSettings
from remediator.janitor.writer import Writer
from remediator.kube.api import janitor_pods, owners
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp
from remediator.prometheus.alerts import Firing

FOUND = frozenset({State.IDLE, State.FIXED, State.SHUT})
BELONGS = FOUND | {State.KEPT, State.UNREADABLE}  # to the first policy that finds it
NOT_ABOUT = Evidence(State.BUSY, "the policy is not about it any more")


class IdlePass:
    """One pass at one time. `leads()`: whether we may write. `pods`: what a watch tells of them, if one does."""

    def __init__(
        self,
        client: Client,
        settings: JanitorSettings,
        sources: Sources,
        writer: Writer,
        now: datetime,
        leads: Callable[[], bool] = lambda: True,
        pods: PodWatch | None = None,
    ) -> None:
        self._client, self._settings, self._sources, self._now, self._leads = client, settings, sources, now, leads
        self._writer = IdleWriter(client, writer)
        self._pods = pods
        self._nodes = nvml.NodesRead(client)
        self._alerted: set[Key] = set()
        self._listed: dict[tuple[Finding, str], dict[str, Holding]] = {}  # after a watch told of them; by uid
        self._belong: set[str] = set()  # uids of what a policy before has found
        self.problems: list[str] = []

    async def run(self) -> list[PolicyReport]:
        """What became of each policy. Raises ApiError where policies, Pods or owners cannot be read."""
        policies, self.problems = await reader.policies(self._client)
        if not policies:
            return []
        firing = Firing({}, whole=False)
        if any(policy.finds is Finding.ALERT for policy in policies):
            firing = await self._sources.firing()
        self._alerted = {key for policy in policies for key in named(policy, firing)}
        held = await reader.holdings(self._client, policies, self._settings.selection, self._alerted, self._pods)
        reports = []
        for policy in policies:
            mine = [holding for holding in held[policy.finds] if _is_about(policy, holding)]
            told_of = [holding for holding in held[policy.finds] if _is_told_of(policy, holding)]
            reports.append(await self._policy(policy, mine + told_of, firing))
            held[policy.finds] = [holding for holding in held[policy.finds] if not _is_about(policy, holding)]
        return reports

    async def _policy(self, policy: IdlePolicy, held: list[Holding], firing: Firing) -> PolicyReport:
        enforces = policy.mode is JanitorMode.ENFORCE and self._settings.mode is JanitorMode.ENFORCE
        report = PolicyReport(policy, enforces)
        shut = windows.shut(policy.windows, self._now)
        if isinstance(shut, InvalidWindow):
            report.problems.append(f"spec.{shut.field}: {shut.why}")
            return report
        asks = held or policy.finds is Finding.ALERT  # which has no Pods either while nobody can tell what fires
        judge = await self._sources.judge(policy, firing, self._now) if asks else _of_none
        if isinstance(judge, str):
            report.problems.append(judge)
            return report
        try:
            for holding in sorted(held, key=_longest_told):
                if holding.uid not in self._belong:
                    await self._one(report, holding, judge, shut=shut is not None)
        except _Away as away:
            report.problems.append(f"the pass ended early: {away}")
        if policy.asks_nvml and self._nodes.refused:
            report.problems.append(self._nodes.refused)
        return report

    async def _one(self, report: PolicyReport, holding: Holding, judge: Judge, *, shut: bool) -> None:
        policy = report.policy
        try:
            holding, evidence = await self._judged(policy, holding, judge)
        except (errors.TooManyRequests, errors.Unavailable) as away:
            raise _Away(away.message) from away
        known, (step, reason), why = decide(holding, evidence, policy, self._now, shut=shut)
        if known in BELONGS or told(holding.annotations).policy == policy.name:
            self._belong.add(holding.uid)
        if known in FOUND:
            report.note(holding)
        report.stands(holding, told(holding.annotations), why)
        outcome = _outcome(report, holding, step)
        if reason in (JanitorReason.GRACE, JanitorReason.TOLD_ONLY):
            self._notify(report, holding)
        if step is IdleStep.HOLD:
            report.add(JanitorOutcome.HELD, holding, reason, _sentence(holding, policy, self._now, reason, why))
        elif outcome is not None and outcome is not JanitorOutcome.CLEARED and report.count(outcome) >= policy.most:
            report.left += 1
        elif outcome is not None and not report.enforces:
            report.add(outcome, holding, reason, _sentence(holding, policy, self._now, reason, why))
        elif outcome is not None:
            await self._write(report, holding, judge, step, shut=shut)

    async def _write(self, report: PolicyReport, holding: Holding, judge: Judge, step: IdleStep, *, shut: bool) -> None:
        """Look at it as it is now; where the same is right, write it under the version that was read."""
        if not self._leads():
            raise _Away("another replica leads")
        policy = report.policy
        try:
            live = await self._client.get(holding.kind, holding.name, namespace=holding.namespace)
            if step is IdleStep.ACT and self._pods is not None and holding.kind is not owners.POD:
                holding = await self._newest(policy, holding)
            now_held, evidence = await self._judged(policy, await self._again(holding, live), judge, anew=True)
            _, (still, reason), why = decide(now_held, evidence, policy, self._now, shut=shut)
            if still is not step or live.metadata.uid != holding.uid:
                return
            outcome = _outcome(report, now_held, step)
            if step is IdleStep.TELL:
                await self._writer.tell(now_held, live, policy, why, self._now)
            elif step is IdleStep.CLEAR:
                await self._writer.clear(now_held, live)
            elif (action := now_held.action(policy)) is not None:
                await self._writer.act(now_held, live, policy, action, why, self._now)
        except errors.NotFound:
            report.standing.pop(holding.uid, None)
        except errors.Conflict:
            report.add(
                JanitorOutcome.FAILED, holding, JanitorReason.MOVED, "it changed meanwhile; the next pass looks again"
            )
        except (errors.TooManyRequests, errors.Unavailable) as away:
            raise _Away(away.message) from away
        except errors.ApiError as refused:
            report.add(JanitorOutcome.FAILED, holding, JanitorReason.REFUSED, refused.message)
        else:
            report.standing.pop(holding.uid, None)
            if step is IdleStep.TELL:
                self._notify(report, now_held)
                report.stands(now_held, given(policy, now_held.action(policy), self._now), why)
            if outcome is not None:
                report.add(outcome, now_held, reason, _sentence(now_held, policy, self._now, reason, why))

    async def _judged(
        self, policy: IdlePolicy, holding: Holding, judge: Judge, *, anew: bool = False
    ) -> tuple[Holding, Evidence]:
        """All its Pods by all that the policy asks; NVML only of what may be idle. `anew`: as its nodes are now."""
        judged, evidence = _judged(policy, holding, judge)
        if evidence.state is not State.IDLE or not policy.asks_nvml:
            return judged, evidence
        nodes = await self._nodes.of({pod.node for pod in holding.pods}, anew=anew)
        return _judged(policy, holding, lambda pod: nvml.judge(pod, judge(pod), nodes, policy, self._now))

    def _notify(self, report: PolicyReport, holding: Holding) -> None:
        ends = until(told(holding.annotations), report.policy, self._now)
        report.notify(holding, ends if holding.action(report.policy) else None)

    async def _newest(self, policy: IdlePolicy, holding: Holding) -> Holding:
        """With the Pods that a list shows, once in a pass: it may have one of which a watch has not told yet."""
        about = policy.finds, holding.namespace
        if about not in self._listed:
            selection = self._settings.selection
            listed = await reader.holdings(self._client, [policy], selection, self._alerted, place=holding.namespace)
            self._listed[about] = {each.uid: each for each in listed[policy.finds]}
        if holding.uid not in self._listed[about]:
            raise errors.NotFound(404, "NotFound", f"{holding.name} has no such Pod any more")
        return self._listed[about][holding.uid]

    async def _again(self, holding: Holding, live: owners.Owner) -> Holding:
        """With what it, its namespace and its Pods bear now. Raises NotFound for a Pod that went."""
        space = (await self._client.get(NAMESPACE, holding.namespace)).metadata.annotations
        pods = []
        for pod in holding.pods:
            again = await self._client.get(janitor_pods.POD, pod.name, namespace=pod.namespace)
            if again.metadata.uid != pod.uid:
                raise errors.NotFound(404, "NotFound", f"{pod.name} is another Pod now")
            pods.append(reader.facts(again))
        return replace(holding, annotations=live.metadata.annotations, pods=tuple(pods), space=space)


class _Away(Exception):
    """The API server gives no answer, or another replica leads: what is left is for a later pass."""


def _of_none(pod: PodFacts) -> Evidence:
    """How Pods are judged where there is none to judge."""
    return NOT_ABOUT


def _is_about(policy: IdlePolicy, holding: Holding) -> bool:
    """Or may be: what more labels would say than are kept, nobody knows."""
    return policy.covers(holding.namespace) and any(
        not pod.all_labels or policy.selector.matches(pod.labels) for pod in holding.pods
    )


def _is_told_of(policy: IdlePolicy, holding: Holding) -> bool:
    """Whether its owner was told by the policy, which is not about it any more: the notice must not grow old."""
    return told(holding.annotations).policy == policy.name and not _is_about(policy, holding)


def _judged(policy: IdlePolicy, holding: Holding, judge: Judge) -> tuple[Holding, Evidence]:
    """All its Pods by the proof that the policy asks for."""
    if not _is_about(policy, holding):
        return holding, NOT_ABOUT
    together = any_of if policy.finds in reader.STUCK else all_of
    evidence = together(map(judge, holding.pods), others=holding.others)
    return replace(holding, whole=evidence.whole), evidence


def _longest_told(holding: Holding) -> tuple[bool, float, str, str]:
    at = told(holding.annotations).at
    return at is None, at.timestamp() if at else 0.0, holding.namespace, holding.name


def _outcome(report: PolicyReport, holding: Holding, step: IdleStep) -> JanitorOutcome | None:
    action = holding.action(report.policy)
    return {
        IdleStep.TELL: JanitorOutcome.TOLD,
        IdleStep.CLEAR: JanitorOutcome.CLEARED,
        IdleStep.ACT: OF[action] if action else None,
    }.get(step)


def _sentence(holding: Holding, policy: IdlePolicy, now: datetime, reason: JanitorReason, why: str) -> str:
    """What a person reads of it."""
    if reason not in (WORDS[policy.finds][0], JanitorReason.GRACE, JanitorReason.TOLD_ONLY):
        return why
    action = holding.action(policy)
    mark = told(holding.annotations)
    return f"{why}; {WILL[action]} after {stamp(until(mark, policy, now))}" if action else f"{why}; {WILL[None]}"
