"""Whether an alert of Alertmanager names a Pod. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from remediator.core.idle_policy import IdlePolicy
from remediator.core.pod_facts import Key, PodFacts
from remediator.janitor.idle.evidence import Evidence
from remediator.janitor.idle.table import State
from remediator.janitor.ttl import in_units
from remediator.kube.wire.times import stamp
from remediator.prometheus.alerts import ListedAlert


def by_pod(name: str, alerts: Iterable[ListedAlert]) -> dict[Key, ListedAlert]:
    """The alerts of this name by the Pod that they name; of several the one that is sent, and began first."""
    pods: dict[Key, ListedAlert] = {}
    for alert in sorted(alerts, key=lambda alert: (not alert.active, alert.starts)):
        labels = alert.labels
        namespace, pod = (labels.get(f"exported_{label}") or labels.get(label, "") for label in ("namespace", "pod"))
        if labels.get("alertname") == name and namespace and pod:
            pods.setdefault((namespace, pod), alert)
    return pods


def judge(pod: PodFacts, alerts: Mapping[Key, ListedAlert], policy: IdlePolicy, now: datetime) -> Evidence:
    """One Pod, where all that fires is known. What began before the Pod was made is about another of its name."""
    alert = alerts.get(pod.key)
    if alert is None:
        return Evidence(State.BUSY, f"{policy.alert} does not fire for {pod.name}")
    if pod.created is None or alert.starts < pod.created:
        return Evidence(State.UNKNOWN, f"{policy.alert} may be about a Pod that was {pod.name} before")
    if not alert.active:
        return Evidence(State.UNKNOWN, f"{policy.alert} for {pod.name} is silenced or inhibited")
    if now - alert.starts < policy.idle_for:
        return Evidence(State.YOUNG, f"{policy.alert} fires for less than {in_units(policy.idle_for)}")
    return Evidence(State.IDLE, f"{pod.name}: {policy.alert} fires since {stamp(alert.starts)}")
