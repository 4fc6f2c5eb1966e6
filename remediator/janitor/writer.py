"""What the janitor writes: Events to the owner, the mark that he was told, and deletions that hit no other object."""

import hashlib
from datetime import datetime

from remediator.core.audit import Authority, Mandate
from remediator.janitor.decide import Deadline, JanitorReason
from remediator.janitor.pass_report import ended
from remediator.janitor.subject import JanitorSubject
from remediator.janitor.ttl import in_units
from remediator.kube.api import encode
from remediator.kube.api.builtin import EVENT, ObjectReference
from remediator.kube.api.encode.janitor import EVERYWHERE
from remediator.kube.runtime.audited import on_behalf
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp

REMEMBERED = 20_000  # warnings: who has been told is not told again with each pass
BACKGROUND = "Background"


class Writer:
    """Writes for one janitor."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._warned: set[tuple[str, str]] = set()

    async def tell(self, subject: JanitorSubject, deadline: Deadline, at: datetime, now: datetime) -> None:
        """Tell the owner that the object will be deleted at a time, and mark that he was told. Raises ApiError."""
        message = f"{subject.kind.name} {subject.name} will be deleted at {stamp(at)} ({deadline.because})"
        await self.event(subject, JanitorReason.NOTICE, message, stamp(deadline.at), now)
        body = encode.notified(subject.uid, subject.version, deadline.at, now)
        with on_behalf(Mandate(Authority.POLICY, deadline.because)):
            await self._client.patch(subject.kind, subject.name, body, namespace=subject.namespace)

    async def delete(self, subject: JanitorSubject, deadline: Deadline, now: datetime) -> None:
        """Say so in one Event, and delete this very object as it was read. Raises ApiError."""
        old = f", {in_units(now - subject.created)} old," if subject.created else ""
        message = f"{subject.kind.name} {subject.name}{old} will be deleted ({ended(deadline)})"
        await self.event(subject, deadline.reason, message, stamp(deadline.at), now)
        with on_behalf(Mandate(Authority.POLICY, deadline.because)):
            await self._client.delete(
                subject.kind,
                subject.name,
                namespace=subject.namespace,
                uid=subject.uid,
                version=subject.version,
                propagation=BACKGROUND,
            )

    async def warn(self, subject: JanitorSubject, reason: JanitorReason, message: str, now: datetime) -> bool:
        """Tell the owner once what is wrong; whether something was written. Raises ApiError."""
        warning = (subject.uid, f"{reason} {message}")
        if warning in self._warned:
            return False
        if len(self._warned) >= REMEMBERED:
            self._warned.clear()
        await self.event(subject, reason, message, message, now, warns=True)
        self._warned.add(warning)
        return True

    async def event(
        self,
        subject: JanitorSubject,
        reason: JanitorReason,
        message: str,
        identity: str,
        now: datetime,
        *,
        warns: bool = False,
    ) -> None:
        """An Event under a name that follows from what it is about: written twice, it is there already."""
        digest = hashlib.sha256(f"{subject.uid}\0{reason}\0{identity}".encode()).hexdigest()[:10]
        kind = subject.kind
        about = ObjectReference(
            api_version=kind.api_version,
            kind=kind.name,
            name=subject.name,
            namespace=subject.namespace,
            uid=subject.uid,
        )
        body = encode.janitor_event(f"{subject.name[:200]}.{digest}", about, reason.value, message, now, warns=warns)
        try:
            await self._client.create(EVENT, body, namespace=subject.namespace or EVERYWHERE)
        except errors.AlreadyExists:
            return
