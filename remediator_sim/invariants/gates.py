"""What a policy makes starts wait for: its windows (I4), a node on which nothing works (I4); such a wait ends (I12).

That a case needs an approval is one of its stops.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import CASES, OURS, PODS, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History, begun
from remediator_sim.invariants.results import HELD

MINUTE = timedelta(minutes=1)
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# What may be written late of a wait whose end has come: the next pass, and what goes before it.
TO_GO_ON = timedelta(minutes=15)


def claimed(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each claim under a policy with windows: one of them was open."""
    uid = contract.held_by(event.new)
    tracked = history.tracked.get(uid) if uid != contract.held_by(event.old) else None
    if tracked is not None and tracked.kind == CASES:
        yield from _outside(history, tracked.last, history.at, f"{event.key} was taken")


def begins(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new attempt that had to wait for a window or for an idle node."""
    for attempt in begun(event):
        what = f"{attempt['operation']} was begun"
        yield from _outside(history, event.obj, contract.moment(attempt.get("startedAt") or ""), what)
        if not _tried(event.old):
            yield from _at_work(history, event.obj, what)


def waits_on(history: History, event: Event) -> Iterator[str]:
    """Time passed. Tells of each case that still says that it waits for a time that has come."""
    for tracked in history.open.values():
        ends = [contract.moment(until) for until in contract.gates(tracked.last) if until]
        since = min(ends, default=history.at)
        if history.at - since <= TO_GO_ON or tracked.deleted or tracked.escalated:  # as nearly always
            continue
        if not history.stopped(tracked.last) and _acted(history, since):
            yield f"case {tracked.name} says that it waits until {clock(since)}, and it is {clock(history.at)}"


def _acted(history: History, since: datetime) -> bool:
    """Whether nobody was away, and nothing had to be judged anew, since then."""
    return not history.absent(since)


def _tried(case: Obj | None) -> bool:
    """Whether a case has tried something already that counts."""
    return any(
        attempt.get("counts", True) and attempt.get("outcome") != "Cancelled" for attempt in contract.attempts(case)
    )


def _outside(history: History, case: Obj, at: datetime, what: str) -> Iterator[str]:
    """What was begun under a policy with windows while none was open, where that is not a matter of moments."""
    policy = history.policy(case)
    windows = part(policy, "spec").get("windows") or ()
    if policy is None or not windows or history.lately_edited(contract.name(policy)):
        return
    unsure = history.limits.grace + history.limits.clocks
    moments = (min(max(at, history.at - unsure), history.at + unsure) + step for step in (-unsure, timedelta(), unsure))
    opened = any(is_open(window, moment) for moment in list(moments) for window in windows)
    yield HELD if opened else f"{what} at {clock(history.at)}, outside of every window of {contract.name(policy)}"


def is_open(window: Obj, at: datetime) -> bool:
    """Whether a window is open at a time: it began at one of the minutes that its duration goes back."""
    place, minutes = ZoneInfo(window.get("timeZone", "UTC")), int(contract.duration(window["duration"]) / MINUTE)
    begin = at.astimezone(UTC).replace(second=0, microsecond=0)
    ages = (begin - MINUTE * back for back in range(minutes + 1))
    return any(_opens(window["cron"], age.astimezone(place)) for age in ages if at - age < MINUTE * minutes)


def _opens(cron: str, local: datetime) -> bool:
    named = (local.minute, local.hour, local.day, local.month, local.isoweekday() % 7)
    fields = zip(cron.split(), named, RANGES, strict=True)
    return all(value in _values(field, first, last) for field, value, (first, last) in fields)


RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


@lru_cache(256)
def _values(field: str, first: int, last: int) -> frozenset[int]:
    """The numbers that a field of a cron expression names."""
    numbered = re.sub("|".join(DAYS), lambda day: str(DAYS.index(day[0])), field)
    return frozenset(
        number % 7 if last == 6 else number for part in numbered.split(",") for number in _part(part, first, last)
    )


def _part(text: str, first: int, last: int) -> range:
    numbers, _, step = text.partition("/")
    begin, _, end = (f"{first}-{last}" if numbers == "*" else numbers).partition("-")
    return range(int(begin), int(end or (last if step else begin)) + 1, int(step or 1))


def _at_work(history: History, case: Obj, what: str) -> Iterator[str]:
    """A first attempt under a policy that waits for the node to be idle, beside Pods that work, before its deadline."""
    policy = history.policy(case)
    urgency = part(policy, "spec", "urgency")
    if policy is None or urgency.get("mode") != "WhenIdle" or history.lately_edited(contract.name(policy)):
        return
    node, unsure = case["spec"]["nodeName"], history.limits.grace + history.limits.clocks
    claimed, deadline = part(case, "status").get("startedAt") or "", urgency.get("deadline", "24h")
    over = deadline != "None" and history.at + unsure >= contract.moment(claimed) + contract.duration(deadline)
    working = [pod for pod in history.objects[PODS].values() if works(pod, node, history.at, unsure)]
    pods = ", ".join(sorted(map(contract.name, working)))
    yield f"{what} at {clock(history.at)} while {pods} worked on {node}" if pods and not over else HELD


def works(pod: Obj, node: str, at: datetime, unsure: timedelta) -> bool:
    """Whether a Pod works on a node: no DaemonSet's, no mirror, none that has ended or should have, not ours."""
    meta = part(pod, "metadata")
    if part(pod, "spec").get("nodeName") != node or meta.get("namespace") in (OURS, "kube-system"):
        return False
    daemon = any(owner.get("kind") == "DaemonSet" for owner in meta.get("ownerReferences") or ())
    ended = contract.pod_ended(pod)
    deletion = meta.get("deletionTimestamp")
    ended = ended or (deletion is not None and contract.moment(deletion) < at + unsure)
    made = contract.moment(meta.get("creationTimestamp") or "")
    return not (daemon or ended or contract.MIRROR in (meta.get("annotations") or {})) and made < at - unsure


def until(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each time of which it says for the first time that a window opens then: one does, and
    none before it.
    """
    opening, before = _opening(event.new), _opening(event.old)
    policy = history.policy(event.obj)
    windows = part(policy, "spec").get("windows") or ()
    news = opening if opening != before else ""
    if not news or policy is None or not windows or history.lately_edited(contract.name(policy)):
        return
    unsure = history.limits.grace + history.limits.clocks
    known = {min(next_opening(window, at) for window in windows) for at in (history.at - unsure, history.at + unsure)}
    opens = " or ".join(sorted(at.isoformat() for at in known))
    sentence = f"case {event.key} says at {clock(history.at)} that it waits for a window until {opening}"
    yield HELD if contract.moment(opening) in known else f"{sentence}, and the next one opens {opens}"


def _opening(case: Obj | None) -> str:
    blocks = part(case, "status").get("blockedBy") or ()
    return next((block.get("until") or "" for block in blocks if block["reason"] == "OutsideWindow"), "")


MOST_DAYS = 3000  # some February has 29


def next_opening(window: Obj, after: datetime) -> datetime:
    """When a window opens for the first time after a moment. Raises ValueError where it never does."""
    return _next_opening(window["cron"], window.get("timeZone", "UTC"), after)


@lru_cache(1024)
def _next_opening(cron: str, zone: str, after: datetime) -> datetime:
    place = ZoneInfo(zone)
    minutes, hours = (sorted(_values(cron.split()[index], *RANGES[index])) for index in (0, 1))
    for day in range(-1, MOST_DAYS):
        noon = (after + timedelta(days=day)).astimezone(place).replace(hour=12, minute=0, second=0, microsecond=0)
        if not _on_day(cron, noon):
            continue
        opens = (noon.replace(hour=hour, minute=minute).astimezone(UTC) for hour in hours for minute in minutes)
        if later := [at for at in opens if at > after]:
            return min(later)
    raise ValueError(f"{cron!r} never comes")


def _on_day(cron: str, local: datetime) -> bool:
    named = (local.day, local.month, local.isoweekday() % 7)
    fields = zip(cron.split()[2:], named, RANGES[2:], strict=True)
    return all(value in _values(field, first, last) for field, value, (first, last) in fields)
