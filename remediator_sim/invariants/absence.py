"""I13: time in which nobody of us could act counts against no deadline."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import OPERATIONS, TEMPLATES, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

BY_THE_CLOCK = ("TimedOut", "DrainTimeout")
SLACK = timedelta(seconds=11)  # who leads is looked at every 5 seconds: a begin and an end may be seen so late


def in_vain(history: History, event: Event) -> Iterator[str]:
    """An operation was written. Counts each that ended by the clock: it had its time, our absence left out."""
    status = part(event.new, "status")
    if status.get("reason") not in BY_THE_CLOCK or contract.finished(event.old):
        return
    spec = part(history.objects[TEMPLATES].get(event.obj["spec"]["templateName"]), "spec")
    intent = part(status, "intent").get("at")
    begun = intent or status.get("drainStartedAt") or status.get("startedAt")
    allowed = spec.get("timeout", "15m") if intent else part(spec, "drain").get("timeout", "30m")
    sentence = f"operation {event.key} ended by the clock at {clock(event.at)}"
    yield _had_its_time(history, sentence, contract.moment(begun or ""), contract.duration(allowed))


def verified_in_vain(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each verification that ended by the clock, the same way."""
    before = len(part(event.old, "status").get("timeline") or ())
    entries = list(part(event.new, "status").get("timeline") or ())[before:]
    policy = history.policy(event.obj)
    if policy is None or not any(entry.get("reason") == "VerifyTimeout" for entry in entries):
        return
    allowed = part(policy, "spec", "verify").get("timeout", "20m")
    sentence = f"the verification of case {event.key} ended by the clock at {clock(event.at)}"
    yield _had_its_time(history, sentence, _verifies_since(history, event.old), contract.duration(allowed))


def _verifies_since(history: History, case: Obj | None) -> datetime:
    """When the operation of its newest attempt ended, by which the time to verify is counted."""
    newest = contract.attempts(case)[-1] if contract.attempts(case) else {}
    operation = history.objects[OPERATIONS].get(newest.get("operation", ""))
    return contract.moment(newest.get("finishedAt") or part(operation, "status").get("finishedAt") or "")


def _had_its_time(history: History, sentence: str, begun: datetime, allowed: timedelta) -> str:
    absent, passed = history.absent(begun), history.at - begun
    if passed - absent >= allowed - SLACK - history.limits.clocks:
        return HELD
    return f"{sentence} after {passed}, in which nobody of us could act for {absent}: it has {allowed}"
