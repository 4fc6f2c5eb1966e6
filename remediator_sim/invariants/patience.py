"""I3, I4: nothing is done for a fault that is younger than its policy says, nor to a node that rests after a case."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator_sim.invariants import contract, disturbances
from remediator_sim.invariants.contract import Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD

SECOND = timedelta(seconds=1)  # times are written in whole ones


def lasted(history: History, event: Event) -> Iterator[str]:
    """A case was written. Counts each new one of a policy: what it is about has lasted for as long as an entry says."""
    since = part(event.obj, "spec", "trigger").get("since")
    if event.old is not None or not since or contract.gate(event.obj):
        return
    policy = history.policy(event.obj)
    if policy is None or _edited(history, policy):
        return
    waits = [contract.duration(entry.get("for", "2m")) for entry in policy["spec"]["when"]]
    early = contract.moment(since) + min(waits) - history.at - history.limits.clocks - SECOND
    sentence = f"case {event.key} was opened at {clock(event.at)}, {early.total_seconds():.0f} s too early"
    yield HELD if early <= timedelta(0) else f"{sentence} for the `for` of its policy"


def rested(history: History, event: Event) -> Iterator[str]:
    """A node was written. Counts each claim after an earlier case of its policy: the node has rested since."""
    for uid, what in disturbances.claims(event):
        tracked = history.tracked.get(uid)
        policy = history.policy(tracked.last) if tracked else None
        if tracked is None or policy is None or tracked.claimed or contract.gate(tracked.last):
            continue
        if _edited(history, policy):
            continue
        ends = list(_ends(history, tracked.last))
        pause = contract.duration(policy["spec"].get("cooldown") or "0s") - history.limits.clocks - SECOND
        if ends:
            sentence = f"{what} at {clock(history.at)}, and its case before ended at {clock(max(ends))}"
            yield HELD if history.at - max(ends) >= pause else f"{sentence}: it rests for {policy['spec']['cooldown']}"


def _ends(history: History, case: Obj) -> Iterator[datetime]:
    """When other cases of this node under this policy, which had taken it, have ended, so that everybody knows."""
    heard = history.at - history.limits.silence
    for other in history.cases():
        same = all(other.last["spec"].get(word) == case["spec"].get(word) for word in ("nodeUID", "policyName"))
        status = part(other.last, "status")
        taken = status.get("startedAt") and status.get("reason") != "GaveWay" and not contract.gate(other.last)
        if same and taken and other.gone is None and other.over is not None and other.over <= heard:
            yield contract.moment(status["endedAt"])


def _edited(history: History, policy: Obj) -> bool:
    """Whether somebody has changed it so lately that who acts may not have heard of it."""
    edited = history.edited.get(contract.name(policy))
    return edited is not None and history.at - edited < history.limits.grace + history.limits.silence
