"""One effect → one or two calls → one outcome. What the server answers is known to the next decision at once."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import structlog

from remediator import metrics
from remediator.controller.cache import ClusterCache, Store
from remediator.controller.effects import (
    ChangeNode,
    Create,
    Delete,
    Done,
    Effect,
    GaveUp,
    Outcome,
    Patch,
    Retry,
    SaveCase,
    SaveOperation,
)
from remediator.core.case import Case, CaseEvent
from remediator.core.node import Node
from remediator.kube import api
from remediator.kube.api import decode as codec
from remediator.kube.api import encode as bodies
from remediator.kube.api.builtin import EVENT, NAMESPACE, NODE, POD
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind

log = structlog.get_logger()
CONFLICTS = 5
PAUSE_SECONDS = 5.0


class Performer:
    """Carries effects out over one client, and notes every answer in the cache."""

    def __init__(self, client: Client, cache: ClusterCache, leads: Callable[[], bool]) -> None:
        self.client, self.cache, self.leads = client, cache, leads
        self._stores: dict[str, tuple[Store[Any], Any]] = {
            NODE.name: (cache.nodes, codec.node),
            POD.name: (cache.pods, codec.operation_pod),
            api.CASE.name: (cache.cases, codec.remediation_case),
            api.OPERATION.name: (cache.operations, codec.operation),
            api.BUDGET.name: (cache.budgets, codec.disruption_budget),
        }

    async def all(self, effects: Iterable[Effect]) -> Outcome:
        """Carry out effects in order, up to the first that is not Done."""
        for effect in effects:
            outcome = await self.one(effect)
            metrics.EFFECTS.labels(type(effect).__name__, type(outcome).__name__).inc()
            if not isinstance(outcome, Done):
                return outcome
        return Done()

    async def one(self, effect: Effect) -> Outcome:
        """Carry out one effect. What the API server refuses becomes an outcome; nothing else is caught."""
        if not self.leads():
            return Retry(1.0, "another replica leads")
        try:
            return await self._do(effect)
        except (errors.AlreadyExists, errors.NotFound) as said:
            return self._settled(effect, said)
        except errors.Conflict as said:
            return Retry(0.2, str(said))
        except (errors.TooManyRequests, errors.Unavailable) as said:
            return Retry(said.retry_after or 2.0, str(said))
        except errors.ApiError as said:
            log.error("the API server refuses", effect=type(effect).__name__, answer=str(said))
            return GaveUp(str(said))

    @staticmethod
    def _settled(effect: Effect, said: errors.ApiError) -> Outcome:
        """Made twice, or gone already, is what was wanted; a case that vanished under its status is looked at again."""
        wanted = errors.AlreadyExists if isinstance(effect, Create) else errors.NotFound
        if isinstance(said, wanted) and not isinstance(effect, SaveCase | SaveOperation):
            return Done()
        return Retry(1.0, str(said))

    async def _do(self, effect: Effect) -> Outcome:
        match effect:
            case Create():
                return await self._create(effect)
            case SaveCase(before, after):
                return await self._save_case(before, after)
            case SaveOperation(before, after):
                if after != before:
                    await self._patch(api.OPERATION, before.name, bodies.operation_status(after), subresource="status")
                    log.info("operation", name=after.name, phase=after.phase.value, said=after.message)
                return Done()
            case Patch(kind, name, body, namespace, subresource):
                await self._patch(kind, name, body, namespace=namespace, subresource=subresource)
                return Done()
            case ChangeNode():
                return await self._change_node(effect)
            case Delete(kind, name, uid, namespace):
                await self.client.delete(kind, name, namespace=namespace, uid=uid)
                return Done()

    async def _create(self, effect: Create) -> Outcome:
        if effect.gated and await self.paused():
            return Retry(PAUSE_SECONDS, "everything new is stopped")
        namespace = self.cache.namespaces.operations if effect.kind.namespaced else ""
        self.note(effect.kind, await self.client.create(effect.kind, effect.body, namespace=namespace))
        return Done()

    async def paused(self) -> bool:
        """Whether somebody stopped everything new, read live."""
        try:
            return codec.paused(await self.client.get(NAMESPACE, self.cache.namespaces.system))
        except errors.NotFound:
            return False

    async def _save_case(self, before: Case, after: Case) -> Outcome:
        if after == before:
            return Done()
        await self._patch(api.CASE, before.name, bodies.case_status(after), subresource="status")
        news = [moment for moment in after.timeline if moment not in before.timeline]
        for moment in news:
            metrics.CASE_EVENTS.labels(moment.reason.value).inc()
            log.info("case", name=after.name, node=after.node, reason=moment.reason.value, said=moment.message)
            await self._announce(after, moment)
        return Done()

    async def _announce(self, case: Case, moment: CaseEvent) -> None:
        """An Event on the node, under a name that follows from what it says; losing one loses no knowledge."""
        said = "\0".join((moment.reason.value, moment.message, moment.at.isoformat()))
        name = f"{case.name}.{hashlib.sha256(said.encode()).hexdigest()[:10]}"
        body = bodies.event(name, self.cache.nodes.get(case.node), case, moment)
        try:
            await self.client.create(EVENT, body, namespace="default")
        except errors.AlreadyExists:
            return
        except errors.ApiError as failed:
            log.warning("no event", name=name, answer=str(failed))

    async def _patch(
        self, kind: Kind[Any], name: str, body: Any, *, namespace: str = "", subresource: str = ""
    ) -> None:
        self.note(kind, await self.client.patch(kind, name, body, namespace=namespace, subresource=subresource))

    async def _change_node(self, effect: ChangeNode) -> Outcome:
        node = self.cache.nodes.get(effect.name)
        for _ in range(CONFLICTS):
            body = effect.change(node) if node else None
            if body is None:
                return Done()
            try:
                await self._patch(NODE, effect.name, body)
                return Done()
            except errors.Conflict:
                node = await self.node(effect.name)
        return Retry(0.5, f"node {effect.name} moves faster than we can write")

    async def node(self, name: str) -> Node | None:
        """One node, read live; None where it is gone."""
        try:
            return codec.node(await self.client.get(NODE, name))
        except errors.NotFound:
            return None

    async def case(self, name: str) -> Case | None:
        """One case, read live; None where it is gone."""
        try:
            return codec.remediation_case(await self.client.get(api.CASE, name))
        except errors.NotFound:
            return None

    def note(self, kind: Kind[Any], wire: Any) -> None:
        """Let the next decision see what the server has just said."""
        if kind.name in self._stores:
            store, read = self._stores[kind.name]
            fact = read(wire)
            store.note(f"{fact.namespace}/{fact.name}" if kind.namespaced else fact.name, fact)
