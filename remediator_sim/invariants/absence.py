"""I13: time in which nobody of us could act counts against no deadline."""

from collections.abc import Iterator
from datetime import timedelta

from remediator_sim.invariants import contract, pod_words
from remediator_sim.invariants.contract import OPERATIONS, PODS, TEMPLATES, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Moment

BY_THE_CLOCK = ("TimedOut", "DrainTimeout", "PodNotStarted", "KubeletSilent")
SLACK = timedelta(seconds=11)  # who leads is looked at every 5 seconds: a begin and an end may be seen so late


def in_vain(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each that ended by the clock: it had its time, our absence left out.

    What its kubelet has ended has run for all of its time, whatever we did meanwhile.
    """
    status = part(event.new, "status")
    if status.get("reason") not in BY_THE_CLOCK or contract.finished(event.old):
        return
    if _by_its_kubelet(history, status.get("pod", "")):
        yield HELD
        return
    spec = part(history.objects[TEMPLATES].get(event.obj["spec"]["templateName"]), "spec")
    intended = bool(status.get("intent"))
    word = "intent" if intended else "drainStartedAt"
    allowed = spec.get("timeout", "15m") if intended else part(spec, "drain").get("timeout", "30m")
    tracked = history.tracked[contract.uid(event.obj)]
    begun = tracked.times.get(word, Moment(tracked.made, tracked.made))
    sentence = f"operation {event.key} ended by the clock at {clock(event.at)}"
    yield _had_its_time(history, sentence, begun, status.get("finishedAt", ""), contract.duration(allowed))


def _by_its_kubelet(history: History, name: str) -> bool:
    """Whether the kubelet of a Pod has ended it when its time was over, and not before it had started."""
    return any(pod_words.ran_too_long(pod) for pod in history.objects[PODS].values() if contract.name(pod) == name)


def verified_in_vain(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each verification that ended by the clock, the same way."""
    before = len(part(event.old, "status").get("timeline") or ())
    entries = list(part(event.new, "status").get("timeline") or ())[before:]
    ended = [entry for entry in entries if entry.get("reason") == "VerifyTimeout"]
    policy = history.policy(event.obj)
    if policy is None or not ended or history.lately_edited(contract.name(policy)):
        return
    allowed = part(policy, "spec", "verify").get("timeout", "20m")
    sentence = f"the verification of case {event.key} ended by the clock at {clock(event.at)}"
    claimed = contract.moment(part(event.new, "status").get("startedAt", ""))
    begun = _operation_of(history, event.old).get("finishedAt", Moment(claimed, claimed))
    yield _had_its_time(history, sentence, begun, ended[-1].get("at", ""), contract.duration(allowed))


def _operation_of(history: History, case: Obj | None) -> dict[str, Moment]:
    """The times of its newest attempt, by whose end the time to verify is counted."""
    newest = next((each for each in reversed(contract.attempts(case)) if not each.get("probe")), {})
    operation = history.objects[OPERATIONS].get(newest.get("operation", ""))
    return history.tracked[contract.uid(operation)].times if operation else {}


def _had_its_time(history: History, sentence: str, begun: Moment, ended: str, allowed: timedelta) -> str:
    """By our clock, or by what was written: clocks of replicas may differ, and that is no absence. Of a pause nobody
    hears while the watch is silent, and nobody can tell later when it began.
    """
    absent, limits = history.absent(begun.seen), history.limits
    unheard = limits.silence * sum(pause > begun.seen for pause in history.pauses)
    passed = max(history.at - begun.seen, contract.moment(ended) - begun.written)
    if passed - absent >= allowed - SLACK - limits.clocks - unheard:
        return HELD
    return f"{sentence} after {passed}, in which nobody of us could act for {absent}: it has {allowed}"
