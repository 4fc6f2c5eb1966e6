"""One effect → one or two requests → one result. The server's reply is put into the cache before the next decision."""

import contextlib
import hashlib
import random
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import structlog

from remediator import metrics
from remediator.controller import measure
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import (
    ChangeNode,
    Create,
    CreateEvents,
    Delete,
    Done,
    Effect,
    EffectResult,
    GaveUp,
    Patch,
    Retry,
    SaveCase,
    SaveOperation,
)
from remediator.core import manual, names, new_node
from remediator.core.case import Case, CaseEvent
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.pod import Pod
from remediator.core.policy import Policy
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.api.builtin import CASE_HEAD, EVENT, NAMESPACE, NODE, POD, POD_HEAD
from remediator.kube.informers import pause_of
from remediator.kube.runtime.backoff import Backoff
from remediator.kube.runtime.informer import Informer
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.transport import MERGE_PATCH

log = structlog.get_logger()
F = TypeVar("F")
W = TypeVar("W")
CONFLICTS = 5
PAUSE_SECONDS = 5.0
DEPOSED = Retry(1.0, "another replica leads")
# The shortest and the longest range, in seconds, that the wait after a failure is drawn from.
MOVED, AWAY, REFUSED = (0.2, 60.0), (2.0, 60.0), (60.0, 600.0)


class Performer:
    """Carries effects out over one client, and notes every answer in the cache."""

    def __init__(
        self,
        client: Client,
        cache: ClusterCache,
        leads: Callable[[], bool],
        rand: Callable[[], float] = random.random,
    ) -> None:
        self.client, self.cache, self.leads = client, cache, leads
        self._backoff: Backoff[tuple[str, str]] = Backoff(rand)
        self._stores: dict[str, tuple[Informer[Any], Any]] = {
            NODE.name: (cache.nodes, decode.node),
            POD.name: (cache.pods, decode.operation_pod),
            api.CASE.name: (cache.cases, decode.remediation_case),
            api.OPERATION.name: (cache.operations, decode.operation),
            api.BUDGET.name: (cache.budgets, decode.disruption_budget),
            api.POLICY.name: (cache.policies, decode.remediation_policy),
            api.INVENTORY.name: (cache.inventories, decode.node_inventory),
            NAMESPACE.name: (cache.pause, pause_of),
        }

    async def all(self, effects: Iterable[Effect]) -> EffectResult:
        """Carry out effects in order, up to the first that is not Done."""
        for effect in effects:
            result = await self.one(effect)
            metrics.EFFECTS.labels(type(effect).__name__, type(result).__name__).inc()
            if not isinstance(result, Done):
                return result
        return Done()

    async def one(self, effect: Effect) -> EffectResult:
        """Carry out one effect. What the API server refuses becomes a result; nothing else is caught.

        Each failure in a row of the same effect doubles the wait. What has moved is read live: its watch may be silent.
        """
        if not self.leads():
            return DEPOSED
        try:
            result = await self._do(effect)
        except errors.ApiError as error:
            result = await self._failure(effect, error)
        if isinstance(result, Done):
            self._backoff.succeeded(_key(effect))
        return result

    async def _failure(self, effect: Effect, error: errors.ApiError) -> EffectResult:
        if _wanted(effect, error):
            return Done()
        if isinstance(error, errors.Conflict):
            await self._read_again(effect)
        if isinstance(error, errors.Conflict | errors.AlreadyExists | errors.NotFound):
            return self._later(effect, MOVED, str(error))
        if isinstance(error, errors.TooManyRequests | errors.Unavailable):
            waits = self._later(effect, AWAY, str(error))
            return replace(waits, after=waits.after + (error.retry_after or 0.0))
        log.error("the API server refuses", effect=type(effect).__name__, answer=str(error))
        metrics.GAVE_UP.labels(type(effect).__name__, type(error).__name__).inc()
        return GaveUp(str(error), self._backoff.failed(_key(effect), *REFUSED))

    def _later(self, effect: Effect, range_: tuple[float, float], why: str) -> Retry:
        return Retry(self._backoff.failed(_key(effect), *range_), why)

    async def _read_again(self, effect: Effect) -> None:
        """Let the next decision see what the object has become."""
        match effect:
            case SaveCase(before):
                await self._note_live(api.CASE, before.name)
            case SaveOperation(before):
                await self._note_live(api.OPERATION, before.name)
            case Patch(kind, name, _, namespace):
                await self._note_live(kind, name, namespace)

    async def _note_live(self, kind: Kind[Any], name: str, namespace: str = "") -> None:
        with contextlib.suppress(errors.ApiError):
            await self.read(kind, name, namespace)

    async def _do(self, effect: Effect) -> EffectResult:
        match effect:
            case Create():
                return await self._create(effect)
            case SaveCase():
                return await self._save_case(effect)
            case CreateEvents(case, events):
                return await self._create_events(case, events)
            case SaveOperation(before, after):
                if after != before:
                    await self._patch(api.OPERATION, before.name, encode.operation_status(after), subresource="status")
                    self._log_operation(before, after)
                return Done()
            case Patch(kind, name, body, namespace, subresource, content_type):
                where = {"namespace": namespace, "subresource": subresource, "content_type": content_type}
                await self._patch(kind, name, body, **where)
                return Done()
            case ChangeNode():
                return await self._change_node(effect)
            case Delete(kind, name, uid, namespace):
                await self.client.delete(kind, name, namespace=namespace, uid=uid)
                return Done()

    async def _create(self, effect: Create) -> EffectResult:
        if effect.gated:
            if await self.paused():
                return Retry(PAUSE_SECONDS, "all new work is paused")
            if not self.leads():  # since we have asked
                return DEPOSED
        namespace = effect.namespace or (self.cache.namespaces.operations if effect.kind.namespaced else "")
        self.note(effect.kind, await self.client.create(effect.kind, effect.body, namespace=namespace))
        return Done()

    async def paused(self) -> bool:
        """Whether somebody paused all new work, read live."""
        try:
            return decode.paused(await self.client.get(NAMESPACE, self.cache.namespaces.system))
        except errors.NotFound:
            return False

    async def _save_case(self, effect: SaveCase) -> EffectResult:
        before, after = effect.before, effect.after
        if after == before:
            return Done()
        await self._patch(api.CASE, before.name, encode.case_status(after), subresource="status")
        measure.saved(self.cache, before, after)
        for event in effect.events:
            metrics.CASE_EVENTS.labels(event.reason.value).inc()
            log.info("case", name=after.name, node=after.node, reason=event.reason.value, message=event.message)
        return Done() if effect.events_later else await self._create_events(after, effect.events)

    def _log_operation(self, before: Operation, after: Operation) -> None:
        """One line for what was decided, none where only a time or a name of its Pods was written down."""
        decided = ("phase", "reason", "message")
        if all(getattr(before, name) == getattr(after, name) for name in decided):
            return
        case, phase = self.cache.case(after.case_uid), after.phase.value
        about = {"node": after.node, "case": case.name if case else after.case_name}
        log.info(
            "operation", name=after.name, **about, phase=phase, reason=after.reason or phase, message=after.message
        )

    async def _create_events(self, case: Case, events: Iterable[CaseEvent]) -> EffectResult:
        for event in events:
            await self._create_event(case, event)
        return Done()

    async def _create_event(self, case: Case, event: CaseEvent) -> None:
        """An Event on the node, under a name that follows from what the API server keeps of it in the timeline."""
        entry = encode.timeline_entry(event)
        identity = "\0".join((entry.reason, entry.message, entry.at.isoformat()))
        name = f"{case.name}.{hashlib.sha256(identity.encode()).hexdigest()[:10]}"
        body = encode.event(name, self.cache.nodes.get(case.node), case, event)
        try:
            await self.client.create(EVENT, body, namespace="default")
        except errors.AlreadyExists:
            return
        except errors.ApiError as error:
            log.warning("the API server refuses an Event", name=name, answer=str(error))

    async def _patch(
        self,
        kind: Kind[Any],
        name: str,
        body: Any,
        *,
        namespace: str = "",
        subresource: str = "",
        content_type: str = MERGE_PATCH,
    ) -> None:
        where = {"namespace": namespace, "subresource": subresource, "content_type": content_type}
        self.note(kind, await self.client.patch(kind, name, body, **where))

    async def _change_node(self, effect: ChangeNode) -> EffectResult:
        node = self.cache.nodes.get(effect.name)
        for _ in range(CONFLICTS):
            body = effect.change(node) if node else None
            if body is None:
                return Done()
            if isinstance(body, Retry):
                return body
            try:
                await self._patch(NODE, effect.name, body)
                return Done()
            except errors.Conflict:
                node = await self.node(effect.name)
            if not self.leads():
                return DEPOSED
        return self._later(effect, MOVED, f"node {effect.name} changes faster than we can write")

    async def node(self, name: str) -> Node | None:
        """One node, read live and noted in the cache; None where it is gone."""
        return await self._live(NODE, name, decode.node)

    async def case(self, name: str) -> Case | None:
        """One case, read live and noted in the cache; None where it is gone."""
        return await self._live(api.CASE, name, decode.remediation_case)

    async def policy_of(self, case: Case) -> Policy | None:
        """What rules a case, read live; a case that a user asks for needs no policy."""
        return new_node.ruling(case, manual.policy(case.manual) if case.manual else await self.policy(case.policy))

    async def policy(self, name: str) -> Policy | None:
        """One policy, read live and noted in the cache; None where it is gone."""
        return await self._live(api.POLICY, name, decode.remediation_policy)

    async def operation(self, name: str) -> Operation | None:
        """One operation, read live and noted in the cache; None where it is gone."""
        return await self._live(api.OPERATION, name, decode.operation)

    async def pod(self, name: str) -> Pod | None:
        """One Pod of an operation, read live and noted in the cache; None where it is gone."""
        return await self._live(POD, name, decode.operation_pod, self.cache.namespaces.operations)

    async def _live(self, kind: Kind[W], name: str, decoded: Callable[[W], F], namespace: str = "") -> F | None:
        try:
            return decoded(await self.read(kind, name, namespace))
        except errors.NotFound:
            return None

    async def read(self, kind: Kind[W], name: str, namespace: str = "") -> W:
        """One object, read live and noted in the cache. Raises ApiError, also where it is gone."""
        live = await self.client.get(kind, name, namespace=namespace)
        self.note(kind, live)
        return live

    async def gone(self, uids: Collection[str]) -> frozenset[str]:
        """Which of these cases are no more and have no Pod left that could act on a node, by live lists."""
        return await self.without_pods(await self.unknown(uids))

    async def without_pods(self, uids: frozenset[str]) -> frozenset[str]:
        """Which of these cases have no Pod left that could act on a node, by a live list."""
        if not uids:
            return uids
        try:
            listed = await self.client.metadata(POD_HEAD, namespace=self.cache.namespaces.operations)
        except errors.ApiError as error:
            log.warning("Pods of operations not listed: no case counts as gone", answer=str(error))
            return frozenset()
        ours = (pod.metadata for pod in listed if names.MIRROR not in pod.metadata.annotations)
        return uids - {meta.labels.get(names.CASE_UID_LABEL, "") for meta in ours}

    async def unknown(self, uids: Collection[str]) -> frozenset[str]:
        """Which of these cases are no more, by a live list of all that there are."""
        if not uids:
            return frozenset()
        try:
            known = {case.metadata.uid for case in await self.client.metadata(CASE_HEAD)}
        except errors.ApiError as error:
            log.warning("cases not listed: none counts as gone", answer=str(error))
            return frozenset()
        return frozenset(uids) - known

    def note(self, kind: Kind[Any], wire: Any) -> None:
        """Let the next decision see what the server has just answered."""
        if kind.name in self._stores:
            store, read = self._stores[kind.name]
            fact = read(wire)
            store.note(f"{fact.namespace}/{fact.name}" if kind.namespaced else fact.name, fact)


def _key(effect: Effect) -> tuple[str, str]:
    """What fails and succeeds as one thing."""
    match effect:
        case Create(kind, body):
            return f"Create {kind.name}", encode.name_of(body)
        case SaveCase(before) | SaveOperation(before):
            return type(effect).__name__, before.name
        case ChangeNode(name):
            return type(effect).__name__, name
        case CreateEvents(case):
            return type(effect).__name__, case.name
        case Patch(kind, name) | Delete(kind, name):
            return f"{type(effect).__name__} {kind.name}", name


def _wanted(effect: Effect, error: errors.ApiError) -> bool:
    """Made twice, or gone already, is what was wanted; but not an object that vanished under its status."""
    wanted = errors.AlreadyExists if isinstance(effect, Create) else errors.NotFound
    return isinstance(error, wanted) and not isinstance(effect, SaveCase | SaveOperation)
