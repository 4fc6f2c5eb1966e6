"""Whether a Pod restarts again and again, or waits for ever, as its own status says. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from remediator.core.pod_facts import CRASH_LOOP, GATED, OFTEN, ContainerFacts, PodFacts
from remediator.janitor.idle.evidence import Evidence
from remediator.janitor.idle.table import State
from remediator.janitor.ttl import in_units

CURED = timedelta(minutes=10)  # after which a kubelet, too, begins anew with its pauses between restarts
CREATES = frozenset({"", "ContainerCreating", "PodInitializing"})  # reasons to wait that explain nothing


def restarts(pod: PodFacts, lasting: timedelta, now: datetime) -> Evidence:
    """Whether one of its containers restarts again and again, and has the whole Pod been there for so long."""
    states = [_container(container, now) for container in pod.states]
    for state in (State.IDLE, State.UNKNOWN):
        if evidence := next((each for each in states if each.state is state), None):
            return _old_enough(evidence, pod, pod.started, lasting, now)
    return Evidence(State.BUSY, f"{pod.name} does not restart again and again")


def _container(container: ContainerFacts, now: datetime) -> Evidence:
    """It does where it waits after a short run, and nobody can tell while it has just begun again."""
    if container.restarts < OFTEN:
        return Evidence(State.BUSY, "")
    ran = container.last_exit.ran if container.last_exit else None
    if container.running is not None and now - container.running >= CURED:
        return Evidence(State.BUSY, "")
    if ran is not None and ran >= CURED:
        return Evidence(State.BUSY, "")
    if ran is not None and container.waiting is not None and container.waiting[0] == CRASH_LOOP:
        return Evidence(State.IDLE, f"{container.name} has restarted {container.restarts} times{_last(container, now)}")
    return Evidence(State.UNKNOWN, f"{container.name} began again less than {in_units(CURED)} ago")


def _last(container: ContainerFacts, now: datetime) -> str:
    """How it ended the last time."""
    last = container.last_exit
    if last is None or last.ended is None or last.ran is None:
        return ""
    reason = f" ({last.reason})" if last.reason else ""
    ran, ago = in_units(last.ran), in_units(max(now - last.ended, timedelta()))
    return f"; last exit: code {last.code}{reason} after {ran}, {ago} ago"


def _old_enough(
    evidence: Evidence, pod: PodFacts, since: datetime | None, lasting: timedelta, now: datetime
) -> Evidence:
    if evidence.state is State.IDLE and (since is None or now - since < lasting):
        return Evidence(State.YOUNG, f"{pod.name}: {evidence.why}, but for less than {in_units(lasting)}")
    return Evidence(evidence.state, f"{pod.name}: {evidence.why}")


def waits(pod: PodFacts, lasting: timedelta, now: datetime) -> Evidence:
    """Whether it waits for ever: Pending for so long without any change, and not because a queue holds it back."""
    if not pod.pending:
        return Evidence(State.BUSY, f"{pod.name} has begun")
    if pod.unchanged is None:
        return Evidence(State.UNKNOWN, f"nobody can tell since when {pod.name} waits")
    if pod.scheduling is not None and pod.scheduling.reason == GATED:
        return Evidence(State.BUSY, f"a queue holds {pod.name} back")
    if container := next(filter(_works, pod.states), None):
        return Evidence(State.BUSY, f"its init container {container.name} works")
    if container := next(filter(_crashes, pod.states), None):
        return Evidence(State.BUSY, f"its container {container.name} restarts, which is another matter")
    minutes = max(0, int((now - pod.unchanged).total_seconds())) // 60
    evidence = Evidence(State.IDLE, f"Pending for {in_units(timedelta(minutes=minutes))}: {_why(pod)}")
    return _old_enough(evidence, pod, pod.unchanged, lasting, now)


def _works(container: ContainerFacts) -> bool:
    return container.init and container.running is not None


def _crashes(container: ContainerFacts) -> bool:
    return container.waiting is not None and container.waiting[0] == CRASH_LOOP


def _why(pod: PodFacts) -> str:
    """What the scheduler, or the kubelet, gives as the reason."""
    if pod.scheduling is None:
        return f"no scheduler has looked at it; is {pod.scheduler or 'default-scheduler'} running?"
    if pod.scheduling.reason:
        return f"{pod.scheduling.reason}: {pod.scheduling.message}"
    reasons = [(container.name, container.waiting) for container in pod.states if container.waiting is not None]
    for name, (reason, message) in reasons:
        if reason not in CREATES:
            return f"{name}: {reason}: {message}" if message else f"{name}: {reason}"
    return "it has a node, and its containers are not created; see its Events"


def any_of(evidence: Iterable[Evidence], *, others: bool) -> Evidence:
    """Of all Pods of one owner that may be stuck: one is enough to tell him, and only all of them to act.

    `others`: whether it has Pods of which nothing of the kind is known.
    """
    each = list(evidence)
    for state in (State.IDLE, State.UNKNOWN, State.YOUNG):
        if stuck := next((pod for pod in each if pod.state is state), None):
            return Evidence(stuck.state, stuck.why, whole=not others and all(pod.state is state for pod in each))
    return each[0] if each else Evidence(State.BUSY, "none of its Pods does")
