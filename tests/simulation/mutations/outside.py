"""Fences of the tickets and of the extender."""

from typing import Any

from remediator.scheduler import fail_open, protocol, reasons, responses
from remediator.scheduler.reasons import VerdictReason
from remediator.tickets.channels.github import text
from remediator.tickets.reconcile import create, states, store
from tests.simulation.mutations.patch import Patch, Patches, answers, everywhere, nothing, sets, wraps


def _refuses_all_but(reason: VerdictReason) -> Patches:
    fewer = {key: value for key, value in reasons.UNRESOLVABLE.items() if key is not reason}
    return lambda: everywhere(reasons.UNRESOLVABLE, fewer)


def _create_again() -> list[Patch]:
    return [Patch(states.TABLES, states.TicketState.CREATING, states.TABLES[states.TicketState.NO_ISSUE])]


def _any_version(before: Any, ticket: Any) -> Any:
    body = before(ticket)
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}}


def _open(before: Any, *asked: Any) -> fail_open.OpenReason:
    return fail_open.OpenReason.TOO_MANY


def _left_whole(before: Any, self: Any, names: Any) -> Any:
    return before(self, names)._replace(left=list(names), text=protocol.quoted_all(list(names)))


def _told_of_nobody(before: Any, self: Any, names: Any) -> Any:
    return before(self, names)._replace(failed=b"", unresolvable=b"")


FENCES: tuple[tuple[str, Patches], ...] = (
    ("a create whose answer is unknown is repeated without a search", _create_again),
    ("a create is begun without a word in its Ticket", answers(create, "_intent", {})),
    ("what a search finds is never ours", answers(create, "_twins", [])),
    ("of two issues that we made both stay open", wraps(create, "_keep_one", lambda before, run: _first(run))),
    ("Tickets are written whatever their version", wraps(store.encode, "ticket_status", _any_version)),
    ("what users wrote into an issue is overwritten", sets(text, "spliced", lambda body, section: section)),
    ("an alert is answered before it is stored", sets(store.TicketStore, "merge", nothing)),
    ("the extender gives claimed nodes", _refuses_all_but(VerdictReason.CLAIMED)),
    ("the extender gives quarantined nodes", _refuses_all_but(VerdictReason.QUARANTINED)),
    ("the extender gives unhealthy nodes", _refuses_all_but(VerdictReason.UNHEALTHY)),
    ("the extender gives nodes that are not ready", _refuses_all_but(VerdictReason.NOT_READY)),
    ("the extender never refuses for health", wraps(fail_open, "open_reason", _open)),
    ("the extender names refused nodes twice", wraps(responses.ExtenderAnswers, "_filter", _left_whole)),
    ("the extender leaves refused nodes out", wraps(responses.ExtenderAnswers, "_filter", _told_of_nobody)),
)


async def _first(run: Any) -> Any:
    return run.twins[0]
