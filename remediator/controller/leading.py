"""Who leads, and how it was started, as its Lease says: for commands of a user, which stand beside the controller."""

from datetime import datetime, timedelta

from remediator.core import absence, names, running
from remediator.core.running import Leading
from remediator.kube.api.builtin import LEASE, Lease
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import parse


async def leading(client: Client, namespace: str, now: datetime) -> Leading:
    """What the Lease of the controller says; nothing where there is none, or the user may not read it."""
    try:
        return of(await client.get(LEASE, names.LEASE, namespace=namespace), now)
    except (errors.NotFound, errors.Forbidden):
        return Leading()


def of(lease: Lease, now: datetime) -> Leading:
    """What a Lease says."""
    notes = lease.metadata.get("annotations") or {}
    try:
        renewed = parse(lease.spec.renew_time) if lease.spec.renew_time else None
    except ValueError:
        renewed = None
    return Leading(
        lease.spec.holder_identity,
        renewed,
        timedelta(seconds=lease.spec.lease_duration_seconds),
        running.read(notes.get(names.SETTINGS, "")),
        absence.read(notes.get(names.ABSENCES, ""), now),
    )
