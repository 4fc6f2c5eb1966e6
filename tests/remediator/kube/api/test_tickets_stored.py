"""A Ticket survives the way to the API server and back, and what a patch leaves out is gone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remediator.core.policy import Severity
from remediator.core.ticket import (
    About,
    Alert,
    CauseState,
    ClosedBy,
    IssueRef,
    ReportedCause,
    Subject,
    Ticket,
    TicketCondition,
    TicketPhase,
)
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.manifests import crd
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from tests.harness.kinds import CRDS

AT = datetime(2026, 11, 20, 9, 0, 0, tzinfo=UTC)
SUBJECTS = [
    Subject(About.NODE, node="gpu-17"),
    Subject(About.CAUSE, policy="nfs-stale", condition="NfsStale", message="nfs://10.0.0.9/home does not answer"),
    Subject(About.ALERT, alert="特殊 x", cluster="prod"),
]
ALERT = Alert(
    "7a0f6d090c025a4b",
    "GPUXidError",
    AT.replace(microsecond=123456),
    AT + timedelta(minutes=5),
    Severity.CRITICAL,
    "XID 79",
    "https://runbooks.example/xid",
    "gpu",
    (("UUID", "GPU-1"), ("gpu", "0")),
)
FULL: dict[str, Any] = {
    "phase": TicketPhase.CLOSED,
    "issue": IssueRef("org/repo", 12, "https://github.com/org/repo/issues/12"),
    "previous": "https://github.com/org/repo/issues/3",
    "opened": AT,
    "creating": AT,
    "creating_in": "org/repo",
    "closed": AT,
    "closed_by": ClosedBy.USER,
    "closing_commented": True,
    "written_hash": "ab" * 32,
    "written": AT,
    "severity": Severity.INFO,
    "reported": (ReportedCause("alert:GPUXidError", CauseState.ESCALATED, AT.replace(microsecond=7)),),
    "conditions": (TicketCondition("Synced", "False", "Refused", "no such repository", AT),),
}


@pytest.fixture
async def client() -> Client:
    """An API server that knows Tickets."""
    made = Client(EmbeddedServer().transport())
    await made.create(CRDS, crd.crd(api.TICKET))
    return made


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.about.value)
async def test_a_new_ticket_holds_its_subject_and_alerts(client: Client, subject: Subject) -> None:
    stored = decode.ticket(await client.create(api.TICKET, encode.new_ticket(subject, [ALERT])))
    assert (stored.name, stored.subject, stored.alerts) == (subject.name, subject, (ALERT,))
    assert replace(stored, created=AT) == Ticket(subject.name, stored.uid, subject, (ALERT,), AT, stored.version)


async def test_a_status_is_stored_whole_and_taken_away_whole(client: Client) -> None:
    born = decode.ticket(await client.create(api.TICKET, encode.new_ticket(SUBJECTS[0])))
    full = replace(born, **FULL)
    wire = await client.patch(api.TICKET, born.name, encode.ticket_status(full), subresource="status")
    stored = decode.ticket(wire)
    assert replace(stored, version=born.version) == full
    empty = replace(stored, **{name: getattr(born, name) for name in FULL})
    wire = await client.patch(api.TICKET, born.name, encode.ticket_status(empty), subresource="status")
    assert replace(decode.ticket(wire), version=born.version) == born


async def test_alerts_and_status_are_refused_where_the_ticket_has_moved(client: Client) -> None:
    born = decode.ticket(await client.create(api.TICKET, encode.new_ticket(SUBJECTS[0])))
    await client.patch(api.TICKET, born.name, encode.with_alerts(born, [ALERT]))
    with pytest.raises(errors.Conflict):
        await client.patch(api.TICKET, born.name, encode.with_alerts(born, []))
    with pytest.raises(errors.Conflict):
        await client.patch(api.TICKET, born.name, encode.ticket_status(born), subresource="status")


async def test_the_subject_of_a_ticket_never_changes(client: Client) -> None:
    await client.create(api.TICKET, encode.new_ticket(SUBJECTS[0]))
    with pytest.raises(errors.Invalid, match="subject is immutable"):
        await client.patch(api.TICKET, SUBJECTS[0].name, {"spec": {"subject": {"nodeName": "gpu-18"}}})
