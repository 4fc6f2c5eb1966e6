"""What policies ask of Conditions, and what those of a node prove: read from plain JSON objects, as in contract.py."""

from datetime import datetime, timedelta

from remediator_sim.invariants.contract import (
    AHEAD,
    FAR,
    OF_KUBELETS,
    OF_TESTS,
    STALE,
    Obj,
    condition,
    duration,
    moment,
    part,
    says,
)


def sick(node: Obj | None, policy: Obj, now: datetime, stale: timedelta) -> bool | None:
    """Whether an entry of the policy's `when` holds on the node; None where that cannot be determined."""
    entries = [[_holds(node, clause, now, stale) for clause in _clauses(entry)] for entry in policy["spec"]["when"]]
    verdicts = [False if False in entry else None if None in entry else True for entry in entries]
    return True if True in verdicts else None if None in verdicts else False


def shown(node: Obj, policy: Obj, kind: str, now: datetime, stale: timedelta) -> Obj | None:
    """The Condition of this type, where the policy asks about it and it is clearly so."""
    clauses = [clause for entry in policy["spec"]["when"] for clause in _clauses(entry)]
    asked = any(_holds(node, clause, now, stale) for clause in clauses if _wanted(clause)[0] == kind)
    return condition(node, kind) if asked else None


def watched(policy: Obj) -> list[str]:
    """The types of the Conditions that a policy asks about."""
    return [_wanted(clause)[0] for entry in policy["spec"]["when"] for clause in _clauses(entry)]


def wanted(policy: Obj) -> list[tuple[str, str]]:
    """Every Condition and status that a policy looks for."""
    return [_wanted(clause) for entry in policy["spec"]["when"] for clause in _clauses(entry)]


def _wanted(clause: Obj) -> tuple[str, str]:
    if "noReadyPod" in clause:
        return _sign(clause["noReadyPod"]), "False"
    if "alert" in clause:
        return f"Alert/{clause['alert']}", "True"
    if "event" in clause:
        return _repeats(clause["event"]), "True"
    return clause.get("condition", ""), clause.get("status", "True")


def _repeats(event: Obj) -> str:
    seconds = duration(event.get("within", "10m")).total_seconds()
    return f"Event/{event['reason']}/{event.get('count', 3)}-in-{seconds:.0f}s"


def statuses(node: Obj) -> list[tuple[str, str]]:
    """Every Condition of the node, and its status."""
    return [(entry["type"], entry["status"]) for entry in part(node, "status", "conditions") or () if "status" in entry]


def _clauses(entry: Obj) -> list[Obj]:
    return list(entry.get("all") or [entry])


def _holds(node: Obj | None, clause: Obj, now: datetime, stale: timedelta) -> bool | None:
    kind, status = _wanted(clause)
    shown = condition(node, kind)
    if shown is not None and kind == "Ready" and shown["status"] == status == "Unknown" and _come(shown, now):
        return True  # nobody is there to write a heartbeat
    if shown is None and status == "True" and _may_be_absent(node, clause, now, stale):
        return False
    if shown is None or not _heard(node, clause, shown, now, stale):
        return None
    ours = not {"reportedBy", "noReadyPod", "alert", "event"} & clause.keys() and kind not in OF_TESTS
    if kind not in OF_KUBELETS and not (says(node, "Ready") in ("True", "False") and (_detected(node) or not ours)):
        return None
    if shown["status"] not in ("True", "False"):
        return None
    return shown["status"] == status and shown.get("reason", "") in (clause.get("reasons") or [shown.get("reason", "")])


def lasted(node: Obj | None, policy: Obj) -> list[timedelta]:
    """For how long what a policy asks about, and Ready, have been as they are, by the node's own clock.

    Who writes a Condition only when it changes says by the heartbeats of their own that it is still so.
    """
    clauses = [clause for entry in policy["spec"]["when"] for clause in _clauses(entry)]
    rows = [(_wanted(clause)[0], _sign(clause["reportedBy"]) if _on_change(clause) else "") for clause in clauses]
    shown = [(entry, sign) for kind, sign in (*rows, ("Ready", "")) if (entry := condition(node, kind))]
    return [
        max(_beat(entry), _beat(condition(node, sign))) - moment(entry["lastTransitionTime"]) for entry, sign in shown
    ]


def _beat(entry: Obj | None) -> datetime:
    return moment((entry or {}).get("lastHeartbeatTime") or "")


def _on_change(clause: Obj) -> bool:
    return "reportedBy" in clause and not duration(clause.get("staleAfter") or "15m")


def _may_be_absent(node: Obj | None, clause: Obj, now: datetime, stale: timedelta) -> bool:
    """Whether those who write it only when it changes are alive, and have had nothing to write."""
    return (
        _on_change(clause)
        and says(node, "Ready") in ("True", "False")
        and _kept(node, clause["reportedBy"], now, stale)
    )


def _kept(node: Obj | None, pods: Obj, now: datetime, stale: timedelta) -> bool:
    sign = condition(node, _sign(pods))
    return sign is not None and sign["status"] == "True" and _believed(sign, now, stale)


def _sign(pods: Obj) -> str:
    """The type of the Condition that says whether one of these Pods is Ready."""
    labels = ",".join(f"{key}={pods['matchLabels'][key]}" for key in sorted(pods["matchLabels"]))
    return f"ReportedBy/{pods['namespace']}/{labels}"


def _heard(node: Obj | None, clause: Obj, shown: Obj, now: datetime, stale: timedelta) -> bool:
    """Whether a Condition was heard of lately, by the clause's own measure, and those who write it are alive."""
    own = clause.get("staleAfter")
    if "reportedBy" in clause and not _kept(node, clause["reportedBy"], now, stale):
        return False
    if own is None:
        return _believed(shown, now, stale)
    if not duration(own):
        return _believed(shown, now, FAR * 366)
    return _believed(shown, now, stale - STALE + duration(own))


def _believed(condition: Obj, now: datetime, stale: timedelta) -> bool:
    """Whether the times of a Condition can be true: a heartbeat that is new, and nothing that has yet to come."""
    beat = moment(condition.get("lastHeartbeatTime") or "")
    return now - stale <= beat <= now + AHEAD and _come(condition, now)


def _come(condition: Obj, now: datetime) -> bool:
    """Whether its times do not lie far ahead."""
    return all(moment(condition.get(word) or "") <= now + FAR for word in ("lastHeartbeatTime", "lastTransitionTime"))


def _detected(node: Obj | None) -> bool:
    """Whether the detectors are believed: what is said of them in no word that there is, is Unknown."""
    stale = condition(node, "DetectorStale")
    return stale is None or stale.get("status") == "False"
