"""I8: one open issue for each thing that has gone wrong. I9: the extender names each node once, and no sick one."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from remediator_sim.invariants import contract
from remediator_sim.invariants.contract import TICKETS, Obj, clock, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import PAUSE, History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked


class SeenIssue(NamedTuple):
    """One issue as it is at the tracker now; `subject` is the same text for all issues about the same thing.

    `by_user`: a user has opened, closed or moved it last.
    """

    repository: str
    number: int
    open: bool
    subject: str
    by_user: bool = False


# --- I8 --------------------------------------------------------------------------------------------------------------


def one_issue(history: History, event: Event) -> Iterator[str]:
    """The issues have changed. Counts each subject that has an open one: it has no other."""
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for issue in history.issues:
        if issue["open"]:
            found[issue["repository"], issue["subject"]].append(issue["number"])
    for (repository, subject), numbers in found.items():
        listed = ", ".join(f"#{number}" for number in sorted(numbers))
        yield f"{listed} are open in {repository} for {subject}" if len(numbers) > 1 else HELD


def one_ticket(history: History, event: Event) -> Iterator[str]:
    """A ticket was written. Counts each new one: no other is about the same thing."""
    if event.old is None:
        about = event.obj["spec"].get("subject")
        tickets = history.objects[TICKETS].items()
        same = [name for name, ticket in tickets if name != event.key and ticket["spec"].get("subject") == about]
        sentence = f"ticket {event.key} was made at {clock(event.at)} about what ticket"
        yield f"{sentence} {same[0]} is about" if same else HELD


def told_a_person(history: History, event: Event) -> Iterator[str]:
    """The end. Counts each open case that wants a ticket: it has an open issue, or one that a person closed."""
    numbers = {(issue["repository"], issue["number"]) for issue in history.issues if issue["open"]}
    for tracked in history.open.values():
        if _wants_ticket(history, tracked):
            tickets = _about(history, tracked)
            filed = any(
                _filed(ticket) in numbers or part(ticket, "status").get("closedBy") == "User" for ticket in tickets
            )
            node = tracked.last["spec"]["nodeName"]
            yield HELD if filed else f"case {tracked.name} of {node} wants a person, and no open issue tells of it"


def _wants_ticket(history: History, tracked: Tracked) -> bool:
    """Whether the policy asked for a ticket, long enough ago."""
    spec = part(history.policy(tracked.last), "spec")
    since = {"Always": tracked.made, "OnEscalation": tracked.escalated}.get(part(spec, "ticket").get("when", ""))
    return since is not None and spec["mode"] != "DryRun" and history.at - since > history.limits.settle


def _about(history: History, tracked: Tracked) -> list[Obj]:
    """The tickets about the node of a case, or about what it shares with other nodes."""
    spec = tracked.last["spec"]
    wanted = {("Node", spec["nodeName"]), ("SharedCause", spec.get("policyName", ""))}
    return [ticket for ticket in history.objects[TICKETS].values() if _subject(ticket) in wanted]


def _subject(ticket: Obj) -> tuple[str, str]:
    subject = part(ticket, "spec", "subject")
    return str(subject.get("kind", "")), str(subject.get("nodeName") or subject.get("policyName") or "")


def _filed(ticket: Obj) -> tuple[str, int]:
    issue = part(ticket, "status", "issue")
    return str(issue.get("repository", "")), int(issue.get("number", 0))


# --- I9 --------------------------------------------------------------------------------------------------------------


def each_once(history: History, event: Event) -> Iterator[str]:
    """The extender answered. Counts each answer: every name that was sent is in exactly one of its lists."""
    if "refused" in event.obj:
        yield f"the extender answered {event.obj['refused']} at {clock(event.at)}: a scheduler takes that for a failure"
        return
    asked, lists = event.obj["asked"], _lists(event.obj["answer"])
    counted = Counter(name for names in lists.values() for name in names)
    missing = [name for name in asked if name not in counted]
    twice = [name for name, count in counted.items() if count > 1]
    foreign = sorted(counted.keys() - set(asked))
    found = (("left out", missing), ("named more than once", twice), ("named unasked", foreign))
    wrong = [f"{what} {', '.join(names)}" for what, names in found if names]
    yield f"the extender has {' and '.join(wrong)} at {clock(event.at)}" if wrong else HELD


def no_sick_node(history: History, event: Event) -> Iterator[str]:
    """The extender answered. Counts each node that should get no work: it is not among those that may."""
    kept = set(_lists(event.obj.get("answer", {}))["nodenames"])
    asked = event.obj["asked"] if "answer" in event.obj else ()
    held = {name: why for name in asked if (why := _held(history, name))}
    sick = {name: why for name in asked if name not in held and (why := _unhealthy(history, name))}
    for name, why in (held | ({} if sick and _may_only_score(history) else sick)).items():
        yield f"the extender gives work to {name} at {clock(event.at)}, which {why}" if name in kept else HELD


def _lists(answer: Mapping[str, Any]) -> dict[str, Iterable[str]]:
    """The names in each list of an answer; keys may be written in any case."""
    fields = {key.lower(): value or () for key, value in answer.items()}
    return {key: fields.get(key, ()) for key in ("nodenames", "failednodes", "failedandunresolvablenodes")}


def _may_only_score(history: History) -> bool:
    """Whether health may have refused no node within the grace: a pause, or too many nodes that it would refuse."""
    if PAUSE in history.stops or history.at - history.unpaused <= history.limits.grace:
        return True
    count = sum(_refusable(history, name) for name in history.nodes)
    return count > 3 and count * 100 > 15 * len(history.nodes)


def _refusable(history: History, name: str) -> bool:
    """Whether health would have refused the node at any time within the grace; one that a case holds is not counted."""
    lately = history.lately(name)
    if _held(history, name):
        return False
    if any(contract.says(node, "Ready") in ("False", "Unknown") for node in lately):
        return True
    return any(history.sick(name, policy) for policy in history.objects[contract.POLICIES].values())


def _held(history: History, name: str) -> str:
    """Why the node should get no work whatever its health, and has not for the whole grace; "" where it may."""
    lately = history.lately(name)
    return "a case holds" if lately and all(map(contract.held_by, lately)) else ""


def _unhealthy(history: History, name: str) -> str:
    """Why the node should get no work for its health, and has not for the whole grace; "" where it may."""
    lately = history.lately(name)
    if lately and all(contract.says(node, "Ready") in ("False", "Unknown") for node in lately):
        return "is not ready"
    policies = history.objects[contract.POLICIES].values()
    named = next((contract.name(policy) for policy in policies if _sick_throughout(history, lately, policy)), "")
    return f"is unhealthy as policy {named} says" if named and not _waits(history, name, lately) else ""


def _sick_throughout(history: History, lately: list[Obj], policy: Obj) -> bool:
    """Whether the node showed the fault all the while. What only calls a person is not in it; DryRun only scores."""
    refuses = part(policy, "spec", "urgency").get("mode") != "Never" and policy["spec"].get("mode") != "DryRun"
    refuses = refuses and isinstance(policy["spec"].get("severity", ""), str)  # else nobody can read it
    covered = lately and refuses and contract.selects(policy["spec"].get("nodeSelector") or {}, lately[-1])
    stale = history.limits.stale
    # The newest first: that settles it for all nodes that are well.
    return bool(covered) and all(contract.sick(node, policy, history.at, stale) for node in reversed(lately))


def _waits(history: History, name: str, lately: list[Obj]) -> bool:
    """Whether the node only waits for its turn: that alone keeps no work away."""
    marked = any(taint["key"] == contract.DEGRADED_TAINT for node in lately for taint in contract.taints(node))
    cases = (tracked for tracked in history.open.values() if tracked.last["spec"]["nodeName"] == name)
    return marked or any(not tracked.claimed for tracked in cases)
