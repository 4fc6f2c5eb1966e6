"""What a pass does for each action of the table. Each may be repeated; a comment is recorded before it is sent."""

from collections.abc import Mapping

from remediator.core.ticket import ClosedBy, TicketPhase
from remediator.tickets.channels.base import Close, Edit, Issue, Later, Refused, Relabel, Reopen, Unsure
from remediator.tickets.reconcile import conditions, create, parts
from remediator.tickets.reconcile.causes import all_reported, still_active
from remediator.tickets.reconcile.observe import ticket_state
from remediator.tickets.reconcile.reconciler import Handler, NextPass, Reconcile
from remediator.tickets.reconcile.states import Action, IssueState, TicketState
from remediator.tickets.render.body import SEVERITY_LABELS, section
from remediator.tickets.render.comments import closing_comment, comment, comments


async def nothing(run: Reconcile) -> NextPass:
    """The pass is over."""
    if ticket_state(run.ticket) is TicketState.OPEN or run.ticket.condition(conditions.SYNCED):
        _say_synced(run)
    await run.save()
    return NextPass(None)


async def wait(run: Reconcile) -> NextPass:
    """The pass is over; the next one comes when the wait is over."""
    if ticket_state(run.ticket) is TicketState.OPEN:
        _say_synced(run)
    await run.save()
    if ticket_state(run.ticket) is TicketState.CREATING or run.ticket.written is None:
        run.leave_alone(run.times.search_every.total_seconds())
        return NextPass(run.times.search_every.total_seconds())
    return NextPass((run.ticket.written + run.times.edit_every - run.now).total_seconds())


def _say_synced(run: Reconcile) -> None:
    full = ticket_state(run.ticket) is TicketState.OPEN and run.ticket.condition(conditions.BODY_FULL)
    condition = conditions.body_full(conditions.SYNCED, run.now) if full else conditions.synced(run.now)
    run.ticket = run.ticket.with_condition(condition)


async def read(run: Reconcile) -> None:
    """See the issue as it is now, and where: its repository may have another name, or it may have been moved."""
    ref = run.ticket.issue
    if ref is None:
        raise LookupError(f"{run.ticket.name} has no issue")
    try:
        issue = await run.ask("get", run.channel.get(ref))
    except Refused as error:
        if error.field != "issue":
            raise
        run.issue_state = IssueState.DELETED
        return
    run.shown(issue)
    if (issue.repository, issue.number) != (ref.repository, ref.number):
        await run.save(issue=issue.ref)


async def edit(run: Reconcile) -> None:
    """Replace our part of the text, and nothing else; where no room is left for it, not even that."""
    given, issue, reported = run.given, _issue(run), run.ticket.reported
    content = run.content(given)
    text, digest = run.memory.rendered.text(content), run.memory.rendered.digest(content)
    if len(text) > issue.room:
        text = section(content, issue.room)
    if len(text) > issue.room:
        run.ticket = run.ticket.with_condition(conditions.body_full(conditions.BODY_FULL, run.now))
    else:
        run.ticket = run.ticket.without_condition(conditions.BODY_FULL)
        run.shown(await run.ask("edit", run.channel.change(issue, Edit(text, run.marker))))
    await run.save(
        written_hash=digest,
        written=run.now,
        closing_commented=run.ticket.closing_commented and not given.active,
        reported=reported if comments(reported, given) else all_reported(reported, given.causes),
    )


async def label(run: Reconcile) -> None:
    """Put the label of the severity on and take the one before off; what a user took off stays off."""
    if run.given.severity is run.ticket.severity:
        await parts.complete(run, _issue(run))
        return
    wanted, old = run.given.severity, run.ticket.severity
    remove = tuple(text for severity, text in SEVERITY_LABELS.items() if severity is not wanted and severity is old)
    await run.ask("label", run.channel.change(_issue(run), Relabel((SEVERITY_LABELS[wanted],), remove)))
    await run.save(severity=wanted)


async def send_comment(run: Reconcile) -> None:
    """One comment of all that is new, or of how it all ended. It is recorded as sent first: at most once."""
    ref, before, given = _issue(run).ref, run.ticket, run.given
    ends = not given.active and not given.case_open and not given.kept_open
    text = closing_comment(given) if ends else comment(comments(before.reported, given))
    await run.save(reported=all_reported(before.reported, given.causes), closing_commented=ends)
    try:
        await run.ask("comment", run.channel.comment(ref, text))
    except Unsure:
        return  # it may be there: the text says the same
    except (Later, Refused):
        await run.save(reported=before.reported, closing_commented=before.closing_commented)
        raise


async def close(run: Reconcile) -> None:
    """Close it as completed."""
    run.shown(await run.ask("close", run.channel.change(_issue(run), Close())))


async def record_closed_by_us(run: Reconcile) -> None:
    """Record that we closed it."""
    reported = all_reported(run.ticket.reported, run.given.causes)
    await run.save(phase=TicketPhase.CLOSED, closed=run.now, closed_by=ClosedBy.US, reported=reported)


async def record_closed_by_user(run: Reconcile) -> None:
    """Record that a user closed it; its causes that are active now stay reported."""
    reported = still_active(run.ticket.reported, run.given.causes)
    await run.save(phase=TicketPhase.CLOSED, closed=run.now, closed_by=ClosedBy.USER, reported=reported)


async def record_deleted(run: Reconcile) -> None:
    """Record that a user deleted it: as if closed, only that there is nothing to read any more."""
    reported = still_active(run.ticket.reported, run.given.causes)
    await run.save(phase=TicketPhase.CLOSED, closed=run.now, closed_by=ClosedBy.USER, reported=reported, issue=None)


async def drop_over_causes(run: Reconcile) -> None:
    """Forget causes that are over: should one come back, it is new."""
    await run.save(reported=still_active(run.ticket.reported, run.given.causes))


async def reopen(run: Reconcile) -> None:
    """Open again what we closed lately."""
    run.shown(await run.ask("reopen", run.channel.change(_issue(run), Reopen())))
    await record_reopened(run)


async def record_reopened(run: Reconcile) -> None:
    """It is open again: of what we had closed all is new, of what a user had closed only what was not reported."""
    by_user = ticket_state(run.ticket) is TicketState.CLOSED_BY_USER
    reported = run.ticket.reported if by_user else ()
    await run.save(
        phase=TicketPhase.OPEN, closed=None, closed_by=ClosedBy.NOBODY, closing_commented=False, reported=reported
    )


def _issue(run: Reconcile) -> Issue:
    """The issue as it was read in this pass: the table lets nothing be written to another."""
    if run.issue is None:
        raise LookupError(f"the issue of {run.ticket.name} was not read in this pass")
    return run.issue


ACTIONS: Mapping[Action, Handler] = {
    Action.NOTHING: nothing,
    Action.WAIT: wait,
    Action.CREATE: create.create,
    Action.SEARCH: create.search,
    Action.TAKE_OVER: create.take_over,
    Action.MERGE_DUPLICATES: create.merge_duplicates,
    Action.GIVE_UP_CREATING: create.give_up,
    Action.READ: read,
    Action.EDIT: edit,
    Action.LABEL: label,
    Action.COMMENT: send_comment,
    Action.CLOSE: close,
    Action.RECORD_CLOSED_BY_US: record_closed_by_us,
    Action.REOPEN: reopen,
    Action.RECORD_REOPENED: record_reopened,
    Action.RECORD_CLOSED_BY_USER: record_closed_by_user,
    Action.RECORD_DELETED: record_deleted,
    Action.DROP_OVER_CAUSES: drop_over_causes,
}
