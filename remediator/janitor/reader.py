"""What the janitor reads: kinds, namespaces, and objects page by page; of most objects only the metadata."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import msgspec

from remediator.core import names
from remediator.janitor import subject as subjects
from remediator.janitor.context import Context
from remediator.janitor.pods import PodWatch
from remediator.janitor.rules import JanitorRule, RuleMatch, first_match
from remediator.janitor.selection import NAMESPACES, Selection
from remediator.janitor.settings import JanitorSettings
from remediator.janitor.subject import JanitorSubject
from remediator.kube.api.builtin import NAMESPACE, POD, Head
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.discovery import Served, served
from remediator.kube.wire.transport import HEADS

METADATA_PAGE, WHOLE_PAGE = 500, 200  # objects: about a MiB each
Object = dict[str, Any]


class JudgedSubject(NamedTuple):
    """An object with what the rules say of it."""

    subject: JanitorSubject
    match: RuleMatch


class SubjectReader:
    """Reads for one pass. `pods`: what a watch tells of them, if one does."""

    def __init__(self, client: Client, settings: JanitorSettings, pods: PodWatch | None = None) -> None:
        self._client, self._settings, self._pods = client, settings, pods
        self._context = Context(client, settings.hook)

    @property
    def _selection(self) -> Selection:
        return self._settings.selection

    async def kinds(self) -> list[Kind[Head]]:
        """The kinds to look at: what can be listed and deleted in namespaces, and namespaces. Raises ApiError."""
        return [
            Kind(row.group, row.version, row.plural, row.name, Head, row.namespaced)
            for row in await served(self._client)
            if row.verbs >= {"list", "delete"} and self._selection.kind(row.plural) and _is_looked_at(row)
        ]

    async def namespaces(self) -> dict[str, JanitorSubject]:
        """All namespaces, by name. Raises ApiError."""
        heads = await self._client.metadata(_heads(NAMESPACE))
        return {head.metadata.name: subjects.of(NAMESPACE, head) for head in heads}

    async def objects(self, kind: Kind[Head], place: str) -> AsyncIterator[JudgedSubject]:
        """The objects of one kind in one namespace, or in all ("" ), with what the rules say. Raises ApiError."""
        rules = self._rules(kind)
        if not rules:
            async for subject in self.subjects(kind, place):
                yield JudgedSubject(subject, RuleMatch())
            return
        async for page in self._client.pages(_whole(kind), place, "", "", WHOLE_PAGE):
            for obj in page:
                yield await self._judged(kind, obj, rules, self._context)

    def watched(self, kind: Kind[Head]) -> PodWatch | None:
        """Who knows of the objects of a kind by a watch; rules are about whole objects, and those are listed."""
        return self._pods if is_pods(kind) and not self._rules(kind) else None

    async def subjects(self, kind: Kind[Head], namespace: str) -> AsyncIterator[JanitorSubject]:
        """The objects of one kind in one namespace by their metadata, whatever rules say. Raises ApiError."""
        async for heads in self._client.pages(kind, namespace, "", "", METADATA_PAGE, HEADS):
            for head in heads:
                yield subjects.of(kind, head)

    async def live(self, kind: Kind[Head], namespace: str, name: str) -> JudgedSubject:
        """One object as it is now, with a context that is read now. Raises ApiError."""
        rules = self._rules(kind)
        if not rules:
            head = await self._client.get(kind, name, namespace=namespace)
            return JudgedSubject(subjects.of(kind, head), RuleMatch())
        obj = await self._client.get(_whole(kind), name, namespace=namespace)
        return await self._judged(kind, obj, rules, Context(self._client, self._settings.hook))

    async def namespace(self, name: str) -> JanitorSubject:
        """One namespace as it is now. Raises ApiError."""
        return subjects.of(NAMESPACE, await self._client.get(_heads(NAMESPACE), name))

    def _rules(self, kind: Kind[Any]) -> list[JanitorRule]:
        return [rule for rule in self._settings.rules if rule.concerns(kind.plural)]

    async def _judged(self, kind: Kind[Head], obj: Object, rules: list[JanitorRule], context: Context) -> JudgedSubject:
        subject = subjects.of(kind, msgspec.convert(obj, Head))
        if names.JANITOR_TTL in subject.annotations:
            return JudgedSubject(subject, RuleMatch())
        asked: Mapping[str, Any] | None = {}
        if any(rule.asks_context for rule in rules):
            asked = await context.of(subject, obj)
        return JudgedSubject(subject, first_match(rules, kind.plural, obj, asked))


def is_pods(kind: Kind[Any]) -> bool:
    """Whether it is that of Pods; metrics of them have their plural, too."""
    return (kind.group, kind.plural) == (POD.group, POD.plural)


def _is_looked_at(row: Served) -> bool:
    return row.namespaced or (row.plural == NAMESPACES and row.group == "")


def _heads(kind: Kind[Any]) -> Kind[Head]:
    return Kind(kind.group, kind.version, kind.plural, kind.name, Head, kind.namespaced)


def _whole(kind: Kind[Any]) -> Kind[Object]:
    return Kind(kind.group, kind.version, kind.plural, kind.name, dict, kind.namespaced)
