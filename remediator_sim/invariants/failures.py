"""What became of tries, recounted from what cases say: for the breaker on failures of I4."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import Obj, part

OF, MOST = 8, 4  # of so many newest tries, so many may not be in vain
NODES, POLICIES = 4, 2  # so many must say it of a template
KEPT, COUNTS_FOR = 16, timedelta(days=1)  # tries of a policy, and for how long
MARKING = ("cordon", "uncordon")  # templates that are not meant to cure
NOT_TOLD = ("HealthUnknown", "PolicyMissing", "PolicyUnreadable")  # nobody could tell whether the node is healthy
HANDED_OVER = (*NOT_TOLD, "LadderExhausted", "AttemptsSpent", "VerifyTimeout", "Relapsed", "Lemon")
KEPT_BY_PODS = ("DrainFailed", "DrainTimeout")  # the operation itself was never run


@dataclass(frozen=True, slots=True)
class Try:
    """How a try ended, and since when its case has said so."""

    ended: datetime
    operation: str
    policy: str
    template: str
    node: str
    in_vain: bool
    known: datetime


def remember(tries: dict[str, Try], case: Obj, at: datetime) -> None:
    """Take in what a case says of its last try, by operation, once it has come to an end or to a person.

    Where it can be read in two ways, the one counts by which fewer were in vain.
    """
    in_vain = _in_vain(case)
    if (in_vain is None and not contract.ended(case)) or contract.asked_for(case) or contract.gate(case):
        return
    own = [attempt for attempt in contract.attempts(case) if _counts(attempt)]
    for attempt in own[:-1] if in_vain else own:
        tries.pop(attempt["operation"], None)
    for attempt in own[-1:] if in_vain is not None else ():
        if attempt.get("outcome") == "Succeeded" or in_vain:
            record = _try(case, attempt, bool(in_vain), at)
            tries.setdefault(record.operation, record)


def _in_vain(case: Obj) -> bool | None:
    """Whether the last try of a case was in vain; None where nobody knows."""
    if _unknown(case):
        return None
    if contract.phase(case) == "Escalated" or part(case, "status").get("reason") == "ReleasedByUser":
        return True
    return False if contract.phase(case) == "Recovered" else None


def _unknown(case: Obj) -> bool:
    """Whether a person was called, the last time, since nobody could tell whether the node is healthy."""
    if contract.phase(case) != "Escalated":
        return False
    reasons = [
        event["reason"] for event in part(case, "status").get("timeline") or () if event["reason"] in HANDED_OVER
    ]
    return bool(reasons) and reasons[-1] in NOT_TOLD


def _counts(attempt: Obj) -> bool:
    tried = attempt.get("outcome") in ("Succeeded", "Failed") and contract.is_try(attempt)
    run = attempt.get("reason") not in KEPT_BY_PODS and attempt.get("template") not in MARKING
    return tried and run and attempt.get("counts", True) is True


def _try(case: Obj, attempt: Obj, in_vain: bool, at: datetime) -> Try:
    spec = case["spec"]
    ended = contract.moment(attempt.get("finishedAt") or attempt.get("startedAt") or "")
    words = attempt["operation"], spec.get("policyName", ""), attempt.get("template", ""), spec["nodeName"]
    return Try(ended, *words, in_vain, at)


def why_open(tries: Iterable[Try], policy: Obj, at: datetime, heard: Mapping[str, bool]) -> str:
    """Why the breaker of a policy has to be open, "" where it need not; `heard`: by operation, whether everybody
    has heard of the try. A try that was in vain counts once that is so, any other one at once.
    """
    closed = contract.moment(part(policy, "metadata", "annotations").get(contract.BREAKER_CLOSED_AT) or "")
    counted = _kept(record for record in tries if record.ended > max(closed, at - COUNTS_FOR))
    name = contract.name(policy)
    own = _newest_of_nodes(record for record in counted if record.policy == name)[-OF:]
    vain = [record for record in own if record.in_vain and heard[record.operation]]
    if len(vain) >= MOST:
        return f"{len(vain)} of the last {len(own)} tries under policy {name} were in vain"
    for template in dict.fromkeys(rung.get("operation", "") for rung in policy["spec"].get("ladder") or ()):
        same = [record for record in counted if record.template == template][-OF:]
        vain = [record for record in same if record.in_vain and heard[record.operation]]
        if len({record.node for record in vain}) >= NODES and len({record.policy for record in vain}) >= POLICIES:
            return f"{len(vain)} of the last {len(same)} tries of template {template} were in vain"
    return ""


def _newest_of_nodes(tries: Iterable[Try]) -> list[Try]:
    """The newest of each node, oldest first."""
    newest = {record.node: record for record in tries}
    return sorted(newest.values(), key=lambda record: (record.ended, record.operation))


def _kept(tries: Iterable[Try]) -> list[Try]:
    """The newest of each policy, oldest first."""
    newest = sorted(tries, key=lambda record: (record.ended, record.operation))
    later = {
        record.operation: sum(other.policy == record.policy for other in newest[place:])
        for place, record in enumerate(newest)
    }
    return [record for record in newest if later[record.operation] <= KEPT]
