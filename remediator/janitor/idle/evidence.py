"""Whether a Pod has used its GPUs: the questions to Prometheus, and what their answers prove. Pure.

A scrape gap is not idleness: in each step of the time there must be a sample of each GPU.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from remediator.core.idle_policy import IdlePolicy, Signal
from remediator.janitor.idle.table import State
from remediator.prometheus.reading import Sample

WITHIN = timedelta(minutes=5)  # how old the newest sample of a series may be
# dcgm-exporter's own labels are exported_ ones where the scrape keeps the labels of its target (honorLabels: false).
_OWN = '"{0}", "$1", "exported_{0}", "(.+)"'
Key = tuple[str, str]  # namespace and name of a Pod


@dataclass(frozen=True, slots=True)
class Questions:
    """Of one signal, each for all Pods."""

    highest: str
    devices: str
    proven: str


def questions(signal: Signal, policy: IdlePolicy) -> Questions:
    """What to ask: the highest value, how many GPUs, and in how many steps each of them has samples."""
    window, step = _seconds(policy.idle_for), _seconds(policy.step)
    over = f"max_over_time({signal.series}[{window}])"
    steps = f"count_over_time(max_over_time({signal.series}[{_seconds(2 * policy.step)}])[{window}:{step}])"
    return Questions(_by_pod("max", over), _by_pod("count", over), _by_pod("min", steps))


def _seconds(length: timedelta) -> str:
    return f"{int(length.total_seconds())}s"


def _by_pod(how: str, expression: str) -> str:
    for label in ("pod", "namespace"):
        expression = f"label_replace({expression}, {_OWN.format(label)})"
    return f"{how} by (namespace, pod) ({expression})"


@dataclass(frozen=True, slots=True)
class Answers:
    """What one signal shows of each Pod."""

    signal: Signal
    highest: Mapping[Key, float] = field(default_factory=dict)
    devices: Mapping[Key, float] = field(default_factory=dict)
    proven: Mapping[Key, float] = field(default_factory=dict)


def by_pod(samples: Iterable[Sample]) -> dict[Key, float]:
    """The values by Pod; series that name none are of nobody."""
    named = ((sample.labels.get("namespace", ""), sample.labels.get("pod", ""), sample.value) for sample in samples)
    return {(namespace, pod): value for namespace, pod, value in named if namespace and pod}


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A Pod that has not ended. `gpus`: how many it asks for, None where nobody can count them."""

    namespace: str
    name: str
    uid: str
    gpus: int | None
    started: datetime | None
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """As series name it."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is proven of a Pod, or why nothing is."""

    state: State
    why: str


def judge(pod: GpuPod, answers: Iterable[Answers], policy: IdlePolicy, now: datetime) -> Evidence:
    """One Pod. One sample of use proves use; idleness is proven only by all samples of all its GPUs."""
    answers = tuple(answers)
    for answer in answers:
        if (value := answer.highest.get(pod.key, 0.0)) > answer.signal.at_most:
            return Evidence(State.BUSY, f"{answer.signal.series} was {value:g}")
    if pod.started is None or now - pod.started < policy.idle_for:
        return Evidence(State.YOUNG, f"{pod.name} runs for less than {_seconds(policy.idle_for)}")
    if not pod.gpus:
        return Evidence(State.UNKNOWN, f"nobody can tell which GPUs {pod.name} has")
    for answer in answers:
        if doubt := _doubt(pod, pod.gpus, answer, policy.steps):
            return Evidence(State.UNKNOWN, doubt)
    return Evidence(State.IDLE, f"{pod.gpus} GPUs")


def _doubt(pod: GpuPod, gpus: int, answer: Answers, steps: int) -> str:
    """Why the samples of a signal do not prove that it was idle; "" where they do."""
    series, devices = answer.signal.series, answer.devices.get(pod.key, 0.0)
    if devices < gpus:
        return f"{series} shows {devices:g} of the {gpus} GPUs of {pod.name}"
    proven = answer.proven.get(pod.key, 0.0)
    return f"{series} of {pod.name} has samples in {proven:g} of {steps} steps" if proven < steps else ""


def together(evidence: Iterable[Evidence]) -> Evidence:
    """Of all Pods of one owner: it is idle only where each of them is."""
    every = list(evidence)
    for state in (State.BUSY, State.YOUNG, State.UNKNOWN):
        if pod_evidence := next((each for each in every if each.state is state), None):
            return pod_evidence
    return every[0] if every else Evidence(State.UNKNOWN, "it has no Pod")
