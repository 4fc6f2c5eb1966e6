"""What a node's Conditions prove: that it is sick, that it is well, or nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

from remediator.core.node import Condition, Node, Status
from remediator.core.policy import Clause, Policy, Verify, When

# A heartbeat older than this proves nothing: three of node-problem-detector's default period of 5 minutes.
STALE_AFTER = timedelta(minutes=15)
DETECTOR_STALE = "DetectorStale"
KUBELET_CONDITIONS = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})


class Sign(Enum):
    """What one condition, or several, say of the node."""

    BAD = auto()
    UNCLEAR = auto()
    GOOD = auto()


@dataclass(frozen=True, slots=True, order=True)
class Doubt:
    """Why one condition proves nothing; `holds` where it says what a policy looks for, and is not believed."""

    condition: str
    why: str
    holds: bool = False

    def __str__(self) -> str:
        return f"{self.condition} {self.why}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one policy sees on one node. `since` is when the last clause came to hold; `due` adds the tolerance."""

    sign: Sign
    condition: Condition | None = None
    since: datetime | None = None
    due: datetime | None = None
    doubts: tuple[Doubt, ...] = ()


def judge(node: Node, policy: Policy, now: datetime) -> Finding:
    """BAD where an entry of `when` holds (the one due first speaks), GOOD where none can, else UNCLEAR."""
    findings = [_entry(node, when, now) for when in policy.when]
    bad = [finding for finding in findings if finding.sign is Sign.BAD]
    if bad:
        return min(bad, key=lambda finding: (finding.due or now, finding.condition.type if finding.condition else ""))
    doubts = tuple(sorted({doubt for finding in findings for doubt in finding.doubts}))
    return Finding(Sign.UNCLEAR, doubts=doubts) if doubts else Finding(Sign.GOOD)


def _entry(node: Node, when: When, now: datetime) -> Finding:
    """Clauses are AND-ed: one that is clearly not met settles it, else one that is unclear leaves it open."""
    signs = {clause: _sign(node, clause, now) for clause in when.clauses}
    if Sign.GOOD in signs.values():
        return Finding(Sign.GOOD)
    doubts = tuple(_doubt(node, clause, now) for clause, sign in signs.items() if sign is Sign.UNCLEAR)
    if doubts:
        return Finding(Sign.UNCLEAR, doubts=doubts)
    last = max((node.conditions[clause.condition] for clause in when.clauses), key=lambda found: found.since)
    return Finding(Sign.BAD, last, last.since, last.since + when.tolerance)


def _sign(node: Node, clause: Clause, now: datetime) -> Sign:
    """One clause. Absent, Unknown and stale are UNCLEAR; so is a detector's word where the detectors have stopped."""
    found = node.conditions.get(clause.condition)
    if found is not None and found.status is clause.status is Status.UNKNOWN:
        return Sign.BAD  # asked for by name: a kubelet that is not heard of is what the policy is about
    if found is None or found.status is Status.UNKNOWN or mistrust(node, clause.condition, now):
        return Sign.UNCLEAR
    return Sign.BAD if _met(found, clause) else Sign.GOOD


def _met(found: Condition, clause: Clause) -> bool:
    return found.status is clause.status and (not clause.reasons or found.reason in clause.reasons)


def _doubt(node: Node, clause: Clause, now: datetime) -> Doubt:
    """Why a clause is unclear."""
    found = node.conditions.get(clause.condition)
    if found is None:
        return Doubt(clause.condition, "is absent")
    if found.status is Status.UNKNOWN:
        return Doubt(clause.condition, "is Unknown")
    return Doubt(clause.condition, mistrust(node, clause.condition, now), _met(found, clause))


def mistrust(node: Node, condition: str, now: datetime) -> str:
    """Why the condition's word does not count; "" where it is fresh, the node answers and its detectors run.

    A clock of the node that is behind looks like a heartbeat that is old: no two clocks can be told apart from here.
    """
    found = node.conditions[condition]
    if now - found.heartbeat > STALE_AFTER:
        return (
            f"has no heartbeat of the last {STALE_AFTER.total_seconds() / 60:g} minutes, or the node's clock is behind"
        )
    if condition in KUBELET_CONDITIONS:
        return ""
    if node.ready is Status.UNKNOWN:
        return "is not believed: the kubelet is not heard of"
    stale = node.conditions.get(DETECTOR_STALE)
    if stale is not None and stale.status is not Status.FALSE:
        return f"is not believed: {DETECTOR_STALE} is {stale.status.value}"
    return ""


class Proof(Enum):
    """Whether a node has shown, since an operation ended, that it is well."""

    WAITING = auto()
    PASSED = auto()
    TIMED_OUT = auto()


def prove(
    node: Node, policy: Policy, base: Mapping[str, datetime], ended: datetime, now: datetime
) -> tuple[Proof, datetime]:
    """Whether the node is well again, and when to look next.

    All times compared are the node's own, so that no two clocks are: each watched condition must say the healthy thing
    with a heartbeat at least `fresh` after the one in `base`, and must have said so for `settle`. Only the time-out
    runs on our clock, from `ended`. A node that looks well when time is up may go on to prove it for as long as it is
    heard of: the fault may have gone late, while the next start was held.
    """
    deadline = ended + policy.verify.timeout
    needs = watched(node, policy)
    worst = max(min(_missing(node, sign, base, policy.verify) for sign in signs) for signs in needs)
    if worst <= timedelta(0):
        return Proof.PASSED, now
    if now >= deadline and not all(any(_looks_well(node, sign, now) for sign in signs) for signs in needs):
        return Proof.TIMED_OUT, now
    soon = now + min(max(worst, timedelta(seconds=1)), timedelta(seconds=10))
    return Proof.WAITING, soon if now >= deadline else min(soon, deadline)


Healthy = tuple[str, Status]


def _looks_well(node: Node, sign: Healthy, now: datetime) -> bool:
    """Whether the condition says the healthy thing, and has said so lately."""
    found = node.conditions.get(sign[0])
    return found is not None and found.status is sign[1] and now - found.heartbeat <= STALE_AFTER


def watched(node: Node, policy: Policy) -> list[tuple[Healthy, ...]]:
    """What must be well: of each group one condition, with the status that means so.

    An entry of `when` is over when any of its clauses is. Ready and, on nodes that have it, DetectorStale must be well
    whatever the policy asks.
    """
    stale = [((DETECTOR_STALE, Status.FALSE),)] if DETECTOR_STALE in node.conditions else []
    entries = [tuple(_opposite(clause) for clause in when.clauses) for when in policy.when]
    return [(("Ready", Status.TRUE),), *stale, *entries]


def _opposite(clause: Clause) -> Healthy:
    return clause.condition, Status.FALSE if clause.status is Status.TRUE else Status.TRUE


def _missing(node: Node, sign: Healthy, base: Mapping[str, datetime], verify: Verify) -> timedelta:
    """How much longer the node must go on saying that all is well; `settle` anew where it does not say so now."""
    name, healthy = sign
    found = node.conditions.get(name)
    if found is None or found.status is not healthy:
        return max(verify.settle, timedelta(seconds=1))
    fresh = verify.fresh - (found.heartbeat - base[name]) if name in base else timedelta(0)
    return max(fresh, verify.settle - (found.heartbeat - found.since))
