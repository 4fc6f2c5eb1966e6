"""What is done to an issue that is there. Each deed may be repeated; a comment is written down before it is sent."""

from collections.abc import Mapping

from remediator.core.ticket import ClosedBy, IssueRef, TicketPhase
from remediator.tickets.channels.base import Later, Refused, Unsure
from remediator.tickets.reconcile import create as filing
from remediator.tickets.reconcile.observe import state
from remediator.tickets.reconcile.reconcile import CROWDED, Handler, Reconcile
from remediator.tickets.reconcile.situation import lasting, remembered
from remediator.tickets.reconcile.states import Action, Sight, State
from remediator.tickets.render import body as render
from remediator.tickets.render.body import SEVERITY_LABELS
from remediator.tickets.render.comments import closing_comment, comment, news
from remediator.tickets.render.markdown import outside, spliced


def _ref(visit: Reconcile) -> IssueRef:
    if visit.ticket.issue is None:
        raise LookupError(f"{visit.ticket.name} has no issue")
    return visit.ticket.issue


async def read(visit: Reconcile) -> None:
    """See the issue as it is now, and where: its repository may have another name, or it may have been moved."""
    ref = _ref(visit)
    try:
        issue = await visit.ask("get", visit.desk.tracker.get(ref.repository, ref.number))
    except Refused as error:
        if error.field != "issue":
            raise
        visit.sight = Sight.GONE
        return
    visit.shown(issue)
    if (issue.repository, issue.number) != (ref.repository, ref.number):
        await visit.save(issue=IssueRef(issue.repository, issue.number, issue.url))


async def edit(visit: Reconcile) -> None:
    """Write our part of the body anew, and nothing else; where no room is left for it, not even that."""
    ref, situation = _ref(visit), visit.situation
    before = visit.issue.body if visit.issue else ""
    digest = render.digest(visit.section(situation))
    body = spliced(before, visit.section(situation, room=min(render.ROOM, render.MOST - outside(before))))
    if len(body) > render.MOST:
        visit.note("BodyFull", "True", "NoRoom", CROWDED)
    else:
        visit.drop("BodyFull")
        if body != before:
            visit.shown(await visit.ask("edit", visit.desk.tracker.edit(ref.repository, ref.number, body=body)))
    told = visit.ticket.reported
    await visit.save(
        written_hash=digest,
        written=visit.now,
        closing_commented=visit.ticket.closing_commented and not situation.stands,
        reported=told if news(told, situation) else remembered(told, situation.causes),
    )


async def label(visit: Reconcile) -> None:
    """Put the label of the severity on and take the one before off; what a person took off stays off."""
    ref, wanted, old = _ref(visit), visit.situation.severity, visit.ticket.severity
    remove = tuple(text for severity, text in SEVERITY_LABELS.items() if severity is not wanted and severity is old)
    add = (SEVERITY_LABELS[wanted],)
    await visit.ask("label", visit.desk.tracker.label(ref.repository, ref.number, add, remove))
    await visit.save(severity=wanted)


async def tell(visit: Reconcile) -> None:
    """One comment of all that is new, or of how it all ended. It is noted as sent first: at most once."""
    ref, before, situation = _ref(visit), visit.ticket, visit.situation
    ends = not situation.stands and not situation.kept
    text = closing_comment(situation) if ends else comment(news(before.reported, situation))
    await visit.save(reported=remembered(before.reported, situation.causes), closing_commented=ends)
    try:
        await visit.ask("comment", visit.desk.tracker.comment(ref.repository, ref.number, text))
    except Unsure:
        return  # it may be there: the body says the same
    except (Later, Refused):
        await visit.save(reported=before.reported, closing_commented=before.closing_commented)
        raise


async def close(visit: Reconcile) -> None:
    """Close it as completed."""
    ref = _ref(visit)
    visit.shown(await visit.ask("close", visit.desk.tracker.close(ref.repository, ref.number, "completed")))


async def closed(visit: Reconcile) -> None:
    """Record that we closed it."""
    told = remembered(visit.ticket.reported, visit.situation.causes)
    await visit.save(phase=TicketPhase.CLOSED, closed=visit.now, closed_by=ClosedBy.US, reported=told)


async def leave(visit: Reconcile) -> None:
    """Record that a person closed it; what stands behind it now stays told."""
    told = lasting(visit.ticket.reported, visit.situation.causes)
    await visit.save(phase=TicketPhase.CLOSED, closed=visit.now, closed_by=ClosedBy.USER, reported=told)


async def lose(visit: Reconcile) -> None:
    """Record that a person deleted it: as if closed, only that there is nothing to look at any more."""
    told = lasting(visit.ticket.reported, visit.situation.causes)
    left = {"phase": TicketPhase.CLOSED, "closed": visit.now, "closed_by": ClosedBy.USER, "reported": told}
    await visit.save(issue=None, **left)


async def remember(visit: Reconcile) -> None:
    """Drop what does not stand any more: should it come back, it is new."""
    await visit.save(reported=lasting(visit.ticket.reported, visit.situation.causes))


async def reopen(visit: Reconcile) -> None:
    """Open again what we closed lately."""
    ref = _ref(visit)
    visit.shown(await visit.ask("reopen", visit.desk.tracker.reopen(ref.repository, ref.number)))
    await resume(visit)


async def resume(visit: Reconcile) -> None:
    """It is open again: of what we had closed all is new, of what a person had closed only what was not told."""
    told = visit.ticket.reported if state(visit.ticket) is State.LEFT else ()
    await visit.save(
        phase=TicketPhase.OPEN, closed=None, closed_by=ClosedBy.NOBODY, closing_commented=False, reported=told
    )


ACTIONS: Mapping[Action, Handler] = {
    Action.CREATE: filing.create,
    Action.LOOK: filing.search,
    Action.ADOPT: filing.adopt,
    Action.SETTLE: filing.settle,
    Action.FORGET: filing.forget,
    Action.READ: read,
    Action.EDIT: edit,
    Action.LABEL: label,
    Action.TELL: tell,
    Action.CLOSE: close,
    Action.CLOSED: closed,
    Action.LEAVE: leave,
    Action.LOSE: lose,
    Action.REMEMBER: remember,
    Action.REOPEN: reopen,
    Action.RESUME: resume,
}
