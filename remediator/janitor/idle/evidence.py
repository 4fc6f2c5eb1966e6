"""Whether a Pod has used its GPUs, or the CPU: the questions to Prometheus, and what their answers prove. Pure.

A scrape gap is not idleness: in each step of the time there must be a sample of each GPU, or of each container.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from remediator.core.idle_policy import Finding, IdlePolicy, Signal
from remediator.core.pod_facts import Key, PodFacts
from remediator.janitor.idle.table import State
from remediator.prometheus.reading import Sample

WITHIN = timedelta(minutes=5)  # how old the newest sample of a series may be
# dcgm-exporter's own labels are exported_ ones where the scrape keeps the labels of its target (honorLabels: false).
_CONTAINER = 'container!="",container!="POD"'
_OWN = '"{0}", "$1", "exported_{0}", "(.+)"'
RATE = timedelta(minutes=5)  # over which the use of CPU is counted; of a counter, a lost sample hides nothing


@dataclass(frozen=True, slots=True)
class Questions:
    """Of one signal, each for all Pods."""

    highest: str
    devices: str
    proven: str


def questions(signal: Signal, policy: IdlePolicy) -> Questions:
    """What to ask: the highest value, how many GPUs or containers, and in how many steps each of them has samples."""
    window, step = _seconds(policy.idle_for), _seconds(policy.step)
    if policy.finds is Finding.IDLE_CPU:
        used = f"({_cpu(signal.series, max(RATE, 2 * policy.step))})[{window}:{step}]"
        highest, steps = f"max_over_time({used})", f"count_over_time({used})"
    else:
        highest = _own(f"max_over_time({signal.series}[{window}])")
        samples = f"max_over_time({signal.series}[{_seconds(2 * policy.step)}])"
        steps = _own(f"count_over_time({samples}[{window}:{step}])")
    return Questions(_by_pod("max", highest), _by_pod("count", highest), _by_pod("min", steps))


def _seconds(length: timedelta) -> str:
    return f"{int(length.total_seconds())}s"


def _cpu(series: str, over: timedelta) -> str:
    """Hundredths of a core by container: the sums that cAdvisor makes of a Pod are left out."""
    bare = series.removesuffix("}")
    labelled = f"{bare},{_CONTAINER}" if bare != series else f"{series}{{{_CONTAINER}"
    return f"sum by (namespace, pod, container) ({_own(f'100 * rate({labelled}}}[{_seconds(over)}])')})"


def _own(expression: str) -> str:
    """With the labels that name the Pod, whatever the scrape calls them."""
    for label in ("pod", "namespace"):
        expression = f"label_replace({expression}, {_OWN.format(label)})"
    return expression


def _by_pod(how: str, expression: str) -> str:
    return f"{how} by (namespace, pod) ({expression})"


@dataclass(frozen=True, slots=True)
class SignalAnswers:
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
class Evidence:
    """What is proven of a Pod, or of all Pods of an owner, or why nothing is. `whole`: of each of them."""

    state: State
    why: str
    whole: bool = True


def judge(pod: PodFacts, answers: Iterable[SignalAnswers], policy: IdlePolicy, now: datetime) -> Evidence:
    """One Pod. One sample of use proves use; idleness is proven only by all samples of all its GPUs or containers."""
    answers = tuple(answers)
    for answer in answers:
        if (value := answer.highest.get(pod.key, 0.0)) > answer.signal.at_most:
            return Evidence(State.BUSY, f"{answer.signal.series} was {value:g}")
    if pod.started is None or now - pod.started < policy.idle_for:
        return Evidence(State.YOUNG, f"{pod.name} runs for less than {_seconds(policy.idle_for)}")
    count, noun = (pod.containers, "containers") if policy.finds is Finding.IDLE_CPU else (pod.gpus, "GPUs")
    if not count:
        return Evidence(State.UNKNOWN, f"nobody can tell which {noun} {pod.name} has")
    for answer in answers:
        if doubt := _doubt(pod, count, noun, answer, policy.steps):
            return Evidence(State.UNKNOWN, doubt)
    return Evidence(State.IDLE, f"{count} {noun}")


def _doubt(pod: PodFacts, count: int, noun: str, answer: SignalAnswers, steps: int) -> str:
    """Why the samples of a signal do not prove that it was idle; "" where they do."""
    series, shown = answer.signal.series, answer.devices.get(pod.key, 0.0)
    if shown < count:
        return f"{series} shows {shown:g} of the {count} {noun} of {pod.name}"
    proven = answer.proven.get(pod.key, 0.0)
    return f"{series} of {pod.name} has samples in {proven:g} of {steps} steps" if proven < steps else ""


def all_of(evidence: Iterable[Evidence], *, others: bool) -> Evidence:
    """Of all Pods of one owner: it is idle only where each of them is.

    `others`: whether it has Pods to which the signals say nothing, such as one without GPUs.
    """
    each = list(evidence)
    for state in (State.BUSY, State.CONTRADICTED, State.YOUNG, State.UNKNOWN):
        if pod_evidence := next((pod for pod in each if pod.state is state), None):
            return pod_evidence
    if others:
        return Evidence(State.UNKNOWN, "it has Pods of another sort, of which nobody can tell")
    return each[0] if each else Evidence(State.UNKNOWN, "it has no Pod")
