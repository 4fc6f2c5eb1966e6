"""Who is asked what IdlePolicies are about, and how one Pod is judged by the answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from remediator.core.idle_policy import Finding, IdlePolicy, Signal
from remediator.core.pod_facts import Key, PodFacts
from remediator.janitor.idle import alerted, stuck
from remediator.janitor.idle.evidence import WITHIN, Evidence, SignalAnswers, by_pod, judge, questions
from remediator.prometheus.alerts import Alertmanagers, Firing, ListedAlert, together
from remediator.prometheus.reading import CannotTell
from remediator.prometheus.source import Source

Judge = Callable[[PodFacts], Evidence]
NO_PROMETHEUS = "nobody can tell what is idle: there is no Prometheus to ask; give --prometheus-url"
NO_ALERTMANAGER = "nobody can tell which alerts fire: there is no Alertmanager to ask; give --alertmanager-url"


@dataclass(frozen=True, slots=True)
class Sources:
    """What a janitor may ask; None where it may not."""

    prometheus: Source | None = None
    alertmanagers: Alertmanagers | None = None

    async def firing(self) -> Firing:
        """What fires now, and whether that is all."""
        if self.alertmanagers is None:
            return Firing({}, whole=False)
        return together(await self.alertmanagers.listings(), self.alertmanagers.watchdog)

    async def judge(self, policy: IdlePolicy, firing: Firing, now: datetime) -> Judge | str:
        """How one Pod is judged, or why nobody can tell of any."""
        match policy.finds:
            case Finding.RESTARTS:
                return lambda pod: stuck.restarts(pod, policy.idle_for, now)
            case Finding.PENDING:
                return lambda pod: stuck.waits(pod, policy.idle_for, now)
            case Finding.ALERT:
                return self._by_alert(policy, firing, now)
        return await self._by_prometheus(policy, now)

    def _by_alert(self, policy: IdlePolicy, firing: Firing, now: datetime) -> Judge | str:
        if self.alertmanagers is None:
            return NO_ALERTMANAGER
        if not firing.whole:
            return "nobody can tell which alerts fire: an Alertmanager does not answer, or its watchdog is in no list"
        return partial(alerted.judge, alerts=named(policy, firing), policy=policy, now=now)

    async def _by_prometheus(self, policy: IdlePolicy, now: datetime) -> Judge | str:
        if self.prometheus is None:
            return NO_PROMETHEUS
        answers = []
        for signal in policy.signals:
            answer = await _ask(self.prometheus, signal, policy)
            if isinstance(answer, CannotTell):
                return f"nobody can tell what is idle: Prometheus: {answer.doubt}: {answer.message}"
            answers.append(answer)
        return partial(judge, answers=answers, policy=policy, now=now)


def named(policy: IdlePolicy, firing: Firing) -> Mapping[Key, ListedAlert]:
    """The alerts of a policy by the Pod that they name."""
    return alerted.by_pod(policy.alert, firing.alerts.values())


async def _ask(source: Source, signal: Signal, policy: IdlePolicy) -> SignalAnswers | CannotTell:
    asked, values = questions(signal, policy), []
    for query in (asked.highest, asked.devices, asked.proven):
        reading = await source.instant(query, WITHIN)
        if isinstance(reading, CannotTell):
            return reading
        values.append(by_pod(reading))
    return SignalAnswers(signal, *values)
