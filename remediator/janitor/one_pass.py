"""One pass: read everything, decide, look at each object again, and only then act on it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from remediator.core import names
from remediator.core.idle_policy import JanitorMode
from remediator.janitor.decide import (
    Deadline,
    Decision,
    Held,
    JanitorReason,
    Nothing,
    Notify,
    Overdue,
    Waits,
    decide,
    keeps,
)
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.pass_report import Report, ended
from remediator.janitor.pods import PodWatch
from remediator.janitor.reader import JudgedSubject, SubjectReader, is_pods
from remediator.janitor.rules import RuleMatch
from remediator.janitor.selection import NAMESPACES
from remediator.janitor.settings import JanitorSettings
from remediator.janitor.subject import JanitorSubject, address
from remediator.janitor.ttl import UnreadableTime
from remediator.janitor.writer import Writer
from remediator.kube.api.builtin import Head
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.times import stamp

TOLD = frozenset({JanitorReason.UNREADABLE, JanitorReason.OWNED})  # holds that the owner of an object can mend
ALL_OF_IT = "what is in it goes with it, Secrets and other kinds that are not looked at, too"
WEBHOOK = 500  # what an API server answers that works, for a webhook that does not
WRITTEN = (names.JANITOR_TTL, names.JANITOR_EXPIRES, names.KEEP_UNTIL)  # by the owner


class Due(NamedTuple):
    """An object whose time has come as far as the list says, and what would be done with it."""

    at: datetime
    namespace: str
    name: str
    uid: str
    kind: Kind[Head]
    outcome: JanitorOutcome
    reason: JanitorReason
    message: str


class Away(Exception):
    """The API server gives no answer, or another replica leads: what is left is for a later pass."""


class OnePass:
    """One pass at one time. `leads()`: whether we may write. `pods`: what a watch tells of them, if one does."""

    def __init__(
        self,
        client: Client,
        settings: JanitorSettings,
        writer: Writer,
        now: datetime,
        leads: Callable[[], bool] = lambda: True,
        pods: PodWatch | None = None,
    ) -> None:
        self._settings, self._writer, self._now, self._leads = settings, writer, now, leads
        self._reader = SubjectReader(client, settings, pods)
        self.report = Report(settings.mode, now)
        self._spaces: dict[str, JanitorSubject] = {}
        self._kinds: list[Kind[Head]] = []
        self._kept: dict[str, str] = {}  # by namespace: an object in it that a user keeps
        self._owners: dict[str, str] = {}  # by uid, or address: an object that is its, and that a user keeps
        self._unlisted = ""  # a kind that could not be listed
        self._due: list[Due] = []
        self._refused: set[tuple[JanitorOutcome, str, str]] = set()  # what was refused: kind, and namespace
        self._warnings = 0
        self._untold: set[str] = set()  # namespaces whose Events were refused
        self._seen: set[str] = set()  # namespaces whose Pods were listed after a watch told of them

    async def run(self) -> Report:
        """The whole pass. Raises ApiError where kinds or namespaces cannot be read."""
        rules = (rule for rule in self._settings.rules if rule.problem)
        self.report.problems += [f"rule {rule.id}: {rule.problem}, in {rule.expression!r}" for rule in rules]
        self._spaces = await self._reader.namespaces()
        try:
            self._kinds = await self._reader.kinds()
            for kind in self._kinds:
                for place in self._settings.selection.places if kind.namespaced else ("",):
                    await self._list(kind, place)
            for due in sorted(self._due, key=lambda due: due[:4]):
                await self._act(due)
        except Away as away:
            self.report.problems.append(f"the pass ended early: {away}")
        return self.report

    async def _list(self, kind: Kind[Head], place: str) -> None:
        if (pods := self._reader.watched(kind)) is not None:
            self.report.counts["resources-processed"] += pods.unmarked()
            for subject in pods.marked(kind):
                await self._look_at(JudgedSubject(subject, RuleMatch()))
            return
        try:
            async for judged in self._reader.objects(kind, place):
                await self._look_at(judged)
        except errors.ApiError as error:
            self._unlisted = kind.plural
            where = f" in {place}" if place else ""
            self.report.problems.append(f"{kind.plural}{where} not listed: {error.message}")

    async def _look_at(self, judged: JudgedSubject) -> None:
        subject = judged.subject
        if not self._settings.selection.namespace(_space(subject)):
            return
        self._count(judged)
        self._note_kept(subject)
        match self._decide(judged, self._spaces.get(subject.namespace)):
            case Waits():
                self.report.waiting += 1
            case Held(reason, message):
                await self._hold(subject, reason, message)
            case Notify(deadline, at):
                until = f"{deadline.because}; will be deleted at {stamp(at)}"
                self._add(subject, deadline, JanitorOutcome.TOLD, JanitorReason.NOTICE, until)
            case Overdue(deadline):
                self._add(subject, deadline, JanitorOutcome.DELETED, deadline.reason, ended(deadline))

    def _note_kept(self, subject: JanitorSubject) -> None:
        if names.KEEP_UNTIL in subject.annotations and _kept(subject, self._now):
            self._kept.setdefault(subject.namespace, str(subject))
            for owner in filter(None, (subject.controller, subject.maker)):
                self._owners.setdefault(owner, str(subject))

    def _count(self, judged: JudgedSubject) -> None:
        subject, match = judged
        counts, plural = self.report.counts, subject.kind.plural
        counts["resources-processed"] += 1
        if match.rule is not None:
            counts[f"rule-{match.rule.id}-matches"] += 1
        if match.rule is not None or names.JANITOR_TTL in subject.annotations:
            counts[f"{plural}-with-ttl"] += 1
        if names.JANITOR_EXPIRES in subject.annotations:
            counts[f"{plural}-with-expiry"] += 1

    def _decide(self, judged: JudgedSubject, space: JanitorSubject | None) -> Decision:
        """`space`: the namespace that the object is in."""
        if space is not None and space.deleting:
            return Nothing()
        kept = _kept(space, self._now) if space is not None else ""
        return decide(judged.subject, judged.match, self._settings.terms, self._now, namespace_kept=kept)

    def _add(
        self, subject: JanitorSubject, deadline: Deadline, outcome: JanitorOutcome, reason: JanitorReason, message: str
    ) -> None:
        if subject.kind.plural == NAMESPACES:
            message = f"{message}; {ALL_OF_IT}"
        place = (deadline.at, subject.namespace, subject.name, subject.uid)
        self._due.append(Due(*place, subject.kind, outcome, reason, message))

    # --- from here on: what the lists have found is acted on ---

    async def _act(self, due: Due) -> None:
        """Look at an object again and do what is right now; in DryRun only report what would be done."""
        if due.outcome is JanitorOutcome.DELETED and due.kind.plural == NAMESPACES and (why := self._spared(due.name)):
            self._spare(due, JanitorReason.HOLDS_KEPT, why)
        elif due.outcome is JanitorOutcome.DELETED and (why := self._kept_of(due)):
            self._spare(due, JanitorReason.OWNS_KEPT, why)
        elif self._settings.mode is JanitorMode.DRY_RUN:
            self._note(due)
        elif max(self.report.totals[due.outcome], len(self._refused)) >= self._settings.most:
            self.report.left += 1
        elif _asked(due) in self._refused:
            self.report.add(
                JanitorOutcome.FAILED, due.kind, due.namespace, due.name, JanitorReason.REFUSED, "as one before it"
            )
        else:
            await self._act_now(due)

    def _spare(self, due: Due, reason: JanitorReason, why: str) -> None:
        self.report.add(JanitorOutcome.HELD, due.kind, due.namespace, due.name, reason, why)

    def _note(self, due: Due) -> None:
        self.report.add(due.outcome, due.kind, due.namespace, due.name, due.reason, due.message)

    async def _act_now(self, due: Due) -> None:
        try:
            judged = await self._reader.live(due.kind, due.namespace, due.name)
            space = await self._reader.namespace(due.namespace) if due.namespace else None
            await self._look_again(due)
        except errors.NotFound:
            return
        except errors.ApiError as error:
            self._fail(due, error)
            return
        subject = judged.subject
        if subject.uid != due.uid:
            return
        match self._decide(judged, space):
            case Held(reason, message):
                await self._hold(subject, reason, message)
            case Notify(deadline, at) if due.outcome is JanitorOutcome.TOLD:
                await self._write(due, lambda: self._writer.tell(subject, deadline, at, self._now))
            case Overdue(deadline) if due.outcome is JanitorOutcome.DELETED:
                if due.kind.plural == NAMESPACES and (why := await self._kept_in(due.name)):
                    self._spare(due, JanitorReason.HOLDS_KEPT, why)
                elif why := self._kept_of(due):
                    self._spare(due, JanitorReason.OWNS_KEPT, why)
                else:
                    await self._write(due, lambda: self._writer.delete(subject, deadline, self._now))
                    await asyncio.sleep(self._settings.pause)

    async def _write(self, due: Due, work: Callable[[], Awaitable[None]]) -> None:
        if not self._leads():
            raise Away("another replica leads")
        try:
            await work()
        except errors.NotFound:
            return
        except errors.ApiError as error:
            self._fail(due, error)
        else:
            self._note(due)

    def _fail(self, due: Due, error: errors.ApiError) -> None:
        """Report it; what is refused for one object is not asked again for its kind in its namespace in this pass.

        In others it is: a quota, a webhook or a policy of one tenant must not keep what others have to delete.
        """
        where = (due.kind, due.namespace, due.name)
        if isinstance(error, errors.Conflict):
            self.report.add(
                JanitorOutcome.FAILED, *where, JanitorReason.MOVED, "it changed meanwhile; the next pass looks again"
            )
            return
        if isinstance(error, errors.TooManyRequests | errors.Unavailable) and error.status != WEBHOOK:
            raise Away(error.message) from error
        self._refused.add(_asked(due))
        self.report.add(JanitorOutcome.FAILED, *where, JanitorReason.REFUSED, error.message)

    async def _hold(self, subject: JanitorSubject, reason: JanitorReason, message: str) -> None:
        """Report it, and tell the owner what only he can mend."""
        self.report.add(JanitorOutcome.HELD, subject.kind, subject.namespace, subject.name, reason, message)
        mends = reason in TOLD and any(name in subject.annotations for name in WRITTEN)
        may_write = (
            self._settings.mode is JanitorMode.ENFORCE and self._warnings < self._settings.most and self._leads()
        )
        if not mends or not may_write or _space(subject) in self._untold:
            return
        try:
            self._warnings += await self._writer.warn(subject, reason, message, self._now)
        except errors.ApiError as error:
            self._warnings += 1
            self._untold.add(_space(subject))  # no more of them in this pass
            self.report.problems.append(f"owners in {_space(subject)} are not told: {error.message}")

    def _kept_of(self, due: Due) -> str:
        """Why an object stays for what a user keeps and would go with it; "" where nothing speaks for it."""
        kept = self._owners.get(due.uid) or self._owners.get(address(due.kind, due.namespace, due.name))
        return f"what it owns would go with it, and a user keeps {kept}" if kept else ""

    async def _look_again(self, due: Due) -> None:
        """List the Pods that may go with an object, once in a pass: that a user keeps one, a watch may tell late."""
        watched = next((kind for kind in self._kinds if self._reader.watched(kind)), None)
        goes_alone = due.outcome is not JanitorOutcome.DELETED or not due.namespace or is_pods(due.kind)
        if watched is None or goes_alone or due.namespace in self._seen:
            return
        async for subject in self._reader.subjects(watched, due.namespace):
            self._note_kept(subject)
        self._seen.add(due.namespace)

    async def _kept_in(self, namespace: str) -> str:
        """The same by a last look: what a user keeps while a pass goes on must not go with its namespace."""
        for kind in self._kinds:
            if not kind.namespaced:
                continue
            try:
                async for subject in self._reader.subjects(kind, namespace):
                    if _kept(subject, self._now):
                        return f"a user keeps {subject} in it"
            except errors.ApiError as error:
                return f"nobody can tell what is in it: {kind.plural} not listed: {error.message}"
        return ""

    def _spared(self, namespace: str) -> str:
        """Why a namespace stays for what is in it; "" where nothing speaks for it."""
        if kept := self._kept.get(namespace):
            return f"a user keeps {kept} in it"
        return f"nobody can tell what is in it: {self._unlisted} not listed" if self._unlisted else ""


def _asked(due: Due) -> tuple[JanitorOutcome, str, str]:
    """What a refusal is about: a namespace, or the objects of one kind in one namespace."""
    return due.outcome, due.kind.plural, due.namespace or due.name


def _space(subject: JanitorSubject) -> str:
    """The namespace that an object is in, or is."""
    return subject.namespace or subject.name


def _kept(subject: JanitorSubject, now: datetime) -> str:
    """Why a user keeps it; what cannot be read keeps, too."""
    try:
        return keeps(subject, now)
    except UnreadableTime as wrong:
        return str(wrong)
