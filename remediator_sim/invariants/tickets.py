"""I8: one open issue for each thing that has gone wrong, and none that nobody needs. I6: what users did to it stays."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from remediator_sim.invariants.contract import TAKEN_OUT, TICKETS, Obj, clock, kept_until, moment, part
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD
from remediator_sim.invariants.tracked import Tracked


class SeenIssue(NamedTuple):
    """One issue as it is at the tracker now; `subject` is the same text for all issues about the same thing.

    `by_user`: a user has opened, closed, deleted or moved it last; `kept` and `lost`: what users did to it that still
    stands, and what we have undone.
    """

    repository: str
    number: int
    open: bool
    subject: str
    by_user: bool = False
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def one_issue(history: History, event: Event) -> Iterator[str]:
    """The issues have changed. Counts each subject of which we keep an issue open: we keep no other."""
    opened: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for issue in history.issues:
        if issue["open"] and not issue.get("by_user") and _where(issue) not in history.forgotten:
            opened[issue["repository"], issue["subject"]].append(issue["number"])
    for (repository, subject), numbers in opened.items():
        listed = ", ".join(f"#{number}" for number in sorted(numbers))
        yield f"{listed} are open in {repository} for {subject}" if len(numbers) > 1 else HELD


def forgotten(issues: Iterable[Obj], tickets: Iterable[Obj]) -> set[tuple[str, int]]:
    """Of the open issues, those that no ticket knows: a restored backup is older than they are."""
    known = {_filed(ticket) for ticket in tickets}
    return {_where(issue) for issue in issues if issue["open"]} - known


def left_to_users(history: History, event: Event) -> Iterator[str]:
    """The issues have changed. Counts what users did to them: it stays."""
    for issue in history.issues:
        where = f"{issue['repository']}#{issue['number']}"
        yield from (HELD for _ in issue.get("kept") or ())
        yield from (f"{where} has lost what a user did: {what}" for what in issue.get("lost") or ())


def one_ticket(history: History, event: Event) -> Iterator[str]:
    """A ticket was written. Counts each new one: no other is about the same thing."""
    if event.old is None:
        about = event.obj["spec"].get("subject")
        tickets = history.objects[TICKETS].items()
        same = [name for name, ticket in tickets if name != event.key and ticket["spec"].get("subject") == about]
        sentence = f"ticket {event.key} was made at {clock(event.at)} about what ticket"
        yield f"{sentence} {same[0]} is about" if same else HELD


def told_a_person(history: History, event: Event) -> Iterator[str]:
    """The end. Counts each open case that wants a ticket: it has an open issue, or one that a user closed."""
    numbers = {_where(issue) for issue in history.issues if issue["open"] or issue.get("by_user")}
    for tracked in history.open.values():
        if _wants_ticket(history, tracked):
            tickets = _about(history, tracked)
            filed = any(
                _filed(ticket) in numbers or part(ticket, "status").get("closedBy") == "User" for ticket in tickets
            )
            node = tracked.last["spec"]["nodeName"]
            yield HELD if filed else f"case {tracked.name} of {node} wants a person, and no open issue tells of it"


def closed_when_over(history: History, event: Event) -> Iterator[str]:
    """The end. Counts each issue that we have open: a Ticket knows it, and something of it is not over yet."""
    filed = {_filed(ticket): ticket for ticket in history.objects[TICKETS].values()}
    for issue in history.issues:
        if issue["open"] and not issue.get("by_user") and _where(issue) not in history.forgotten:
            yield _needless(history, issue, filed.get(_where(issue)))


def told_of_alerts(history: History, event: Event) -> Iterator[str]:
    """The end. Counts each alert that fires and was taken: a Ticket holds it, and an issue tells of it."""
    numbers = {_where(issue) for issue in history.issues if issue["open"] or issue.get("by_user")}
    holders = {
        alert["fingerprint"]: ticket
        for ticket in history.objects[TICKETS].values()
        for alert in part(ticket, "spec").get("alerts") or ()
        if not alert.get("endsAt")
    }
    for name in event.obj["firing"]:
        ticket = holders.get(name)
        if ticket is None:
            yield f"alert {name} fires and was taken, and no Ticket holds it"
        else:
            told = _filed(ticket) in numbers or part(ticket, "status").get("closedBy") == "User"
            yield HELD if told else f"alert {name} fires, and no open issue tells of it"


def _needless(history: History, issue: Obj, ticket: Obj | None) -> str:
    sentence = f"{issue['repository']}#{issue['number']} of {issue['subject']}"
    if ticket is None:
        return f"{sentence} is open, and no Ticket knows of it"
    over = _over_since(history, ticket)
    if over is None or history.at - over <= history.limits.settle:
        return HELD
    return f"{sentence} is still open, and what it is about is over since {clock(over)}"


def _over_since(history: History, ticket: Obj) -> datetime | None:
    """When the last that a ticket is about was over, None where something is not."""
    alerts = part(ticket, "spec").get("alerts") or ()
    ends = [moment(alert["endsAt"]) if alert.get("endsAt") else None for alert in alerts]
    ends += [tracked.over for tracked in history.cases() if _subject(ticket) in _subjects(tracked)]
    known = [end for end in ends if end is not None]
    return None if len(known) < len(ends) else max(known, default=moment(""))


def _wants_ticket(history: History, tracked: Tracked) -> bool:
    """Whether the policy asked for a ticket, or a user has the node for longer than they said, long enough ago."""
    if part(tracked.last, "status").get("reason") in TAKEN_OUT:
        return history.at - moment(kept_until(tracked.last)) > history.limits.settle
    spec = part(history.policy(tracked.last), "spec")
    since = {"Always": tracked.made, "OnEscalation": tracked.escalated}.get(part(spec, "ticket").get("when", ""))
    return since is not None and spec["mode"] != "DryRun" and history.at - since > history.limits.settle


def _about(history: History, tracked: Tracked) -> list[Obj]:
    """The tickets about the node of a case, or about what it shares with other nodes."""
    return [ticket for ticket in history.objects[TICKETS].values() if _subject(ticket) in _subjects(tracked)]


def _subjects(tracked: Tracked) -> set[tuple[str, str]]:
    spec = tracked.last["spec"]
    return {("Node", spec["nodeName"]), ("SharedCause", spec.get("policyName", ""))}


def _subject(ticket: Obj) -> tuple[str, str]:
    subject = part(ticket, "spec", "subject")
    return str(subject.get("kind", "")), str(subject.get("nodeName") or subject.get("policyName") or "")


def _where(issue: Obj) -> tuple[str, int]:
    return issue["repository"], issue["number"]


def _filed(ticket: Obj) -> tuple[str, int]:
    issue = part(ticket, "status", "issue")
    return str(issue.get("repository", "")), int(issue.get("number", 0))
