"""Repairs that other controllers ask for: each object of theirs gets a NodeOperation, and is told how that ends."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Delete, Done, Effect, Patch
from remediator.controller.handlers.base import seconds
from remediator.controller.perform import Performer
from remediator.core import outside_request
from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.outside_request import OutsideRequest, OutsideStep
from remediator.kube import api
from remediator.kube.api import encode, outside
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.wire import errors

AT_ONCE = 4
AGAIN, BEHIND = 30.0, 1.0  # seconds
Key = tuple[str, str]  # the source, and the object in it


class OutsideRequests:
    """One pass for each object of the sources that the settings name. Only who leads writes."""

    def __init__(
        self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock, sources: tuple[str, ...]
    ) -> None:
        self._cache, self._performer, self._clock = cache, performer, clock
        self._requests: Mapping[str, Informer[OutsideRequest]] = {
            name: informers.outside_requests(outside.SOURCES[name]) for name in sources
        }
        self.queue: LeaderQueue[Key] = LeaderQueue(
            "requests of other controllers",
            self._pass,
            self._everything,
            workers=AT_ONCE,
            informers=lambda: tuple(self._requests.values()),
            essential=False,
        )
        for name, requests in self._requests.items():
            requests.on_change(partial(self._changed, name))
        cache.operations.on_change(lambda name, *_: self.queue.add(*self._asked_by(name)))
        cache.cases.on_change(lambda _, old, new: self._case(old, new))

    def _changed(self, source: str, key: str, _: OutsideRequest | None, new: OutsideRequest | None) -> None:
        if new is not None:
            self.queue.add((source, key))

    def _case(self, old: Case | None, new: Case | None) -> None:
        for manual in {case.manual.operation for case in (old, new) if case and case.manual}:
            self.queue.add(*self._asked_by(manual))

    def _asked_by(self, operation: str) -> Iterator[Key]:
        for name, requests in self._requests.items():
            yield from ((name, request.key) for request in requests.by("operation", operation))

    def _everything(self) -> Iterator[Key]:
        for name, requests in self._requests.items():
            yield from ((name, request.key) for request in requests)

    async def _pass(self, key: Key) -> float | None:
        """One step for one object; seconds until it is looked at again."""
        now = self._clock.now()
        source, request = outside.SOURCES[key[0]], self._requests[key[0]].get(key[1])
        if request is None:
            return None
        operation = self._cache.operations.get(request.operation)
        if operation is None:
            request = await self._with_node(request)
        node = self._cache.nodes.get(request.node)
        known = self._cache.templates.get(request.template) is not None
        asked = outside_request.asked(operation, working=operation is None and self._works(request))
        step = outside_request.step(outside_request.observe(request, asked, node=node is not None, known=known))
        effect = await self._effect(step, source, request, operation, node, now)
        if effect is None:
            return None if step is OutsideStep.NOTHING and request.answered is outside_request.Answered.ENDED else AGAIN
        result = await self._performer.one(effect)
        return BEHIND if isinstance(result, Done) else seconds(result)

    def _works(self, request: OutsideRequest) -> bool:
        """Whether a case goes on whose NodeOperation is not there any more."""
        cases = self._cache.cases.by("node", request.node) if request.node else self._cache.cases
        return any(case.open and case.manual and case.manual.operation == request.operation for case in cases)

    async def _with_node(self, request: OutsideRequest) -> OutsideRequest:
        """With the node of its machine, where only that knows it."""
        if request.machine is None:
            return request
        try:
            kind = outside.machine_kind(request.machine)
            machine = await self._performer.read(kind, request.machine.name, request.namespace)
        except errors.NotFound:
            return request
        return replace(request, node=machine.status.node_ref.name)

    async def _effect(
        self,
        step: OutsideStep,
        source: outside.OutsideKind,
        request: OutsideRequest,
        operation: Operation | None,
        node: Node | None,
        now: datetime,
    ) -> Effect | None:
        where = request.name, request.namespace
        match step:
            case OutsideStep.HOLD | OutsideStep.LET_GO:
                body = outside.finalizers(request, held=step is OutsideStep.HOLD)
                return Patch(source.kind, where[0], body, where[1])
            case OutsideStep.TAKE_BACK if operation is not None and not operation.deleting:
                return Delete(api.OPERATION, operation.name, operation.uid)
            case OutsideStep.ASK if node is not None and await self._performer.operation(request.operation) is None:
                body = encode.requested_operation(request, node)
                return Create(api.OPERATION, body)
            case OutsideStep.SHOW if operation is None:  # deleted by a user; its case still works on the node
                return None
            case OutsideStep.SHOW | OutsideStep.ANSWER | OutsideStep.GONE | OutsideStep.REFUSE:
                return await self._status(source, request, _conditions(step, source, request, operation), now)
        return None

    async def _status(
        self,
        source: outside.OutsideKind,
        request: OutsideRequest,
        wanted: tuple[outside_request.Condition, ...],
        now: datetime,
    ) -> Effect | None:
        """The status, under the version that is there now; None where it says so already."""
        try:
            live = await self._performer.read(source.kind, request.name, request.namespace)
        except errors.NotFound:
            return None
        body = outside.status(live, wanted, now) if live.metadata.uid == request.uid else None
        return Patch(source.kind, request.name, body, request.namespace, "status") if body else None


def _conditions(
    step: OutsideStep, source: outside.OutsideKind, request: OutsideRequest, operation: Operation | None
) -> tuple[outside_request.Condition, ...]:
    """The conditions that a step writes."""
    if step is OutsideStep.REFUSE:
        return outside.conditions(source, "False", "NodeGone", outside_request.no_node(request))
    if operation is None:
        return outside.conditions(source, "False", "TakenBack", outside_request.TAKEN_BACK)
    status = "Unknown" if step is OutsideStep.SHOW else str(outside_request.succeeded(operation))
    message = operation.message or operation.phase.value
    if operation.case_name not in message:
        message += f"; case {operation.case_name}"
    return outside.conditions(source, status, operation.phase.value, message)
