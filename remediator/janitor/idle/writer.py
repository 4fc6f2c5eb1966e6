"""What is written for an IdlePolicy: notices on the owner and its Pods, and the change that gives back what it has."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from remediator.core import names
from remediator.core.audit import Authority, Mandate
from remediator.core.idle_policy import Finding, IdleAction, IdlePolicy
from remediator.janitor.decide import JanitorReason
from remediator.janitor.idle.holding import WILL, Holding
from remediator.janitor.idle.table import WORDS
from remediator.janitor.subject import JanitorSubject, of
from remediator.janitor.ttl import FOREVER
from remediator.janitor.writer import BACKGROUND, Writer
from remediator.kube.api import encode, janitor_pods, owners
from remediator.kube.api.builtin import Head
from remediator.kube.api.common import ObjectMeta
from remediator.kube.runtime.audited import on_behalf
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.times import stamp

MOST_EVENTS = 8  # Pods of one owner that bear an Event of their own
RAW_POD: Kind[dict[str, Any]] = Kind("", "v1", "pods", "Pod", dict, namespaced=True)
GONE: dict[str, str | None] = {names.IDLE_POLICY: None, names.IDLE_NOTIFIED_AT: None, names.IDLE_UNTIL: None}


class IdleWriter:
    """Writes for one janitor. Every change is refused where the object has changed since `live` was read."""

    def __init__(self, client: Client, writer: Writer) -> None:
        self._client, self._writer = client, writer

    async def tell(self, holding: Holding, live: owners.Owner, policy: IdlePolicy, why: str, now: datetime) -> None:
        """Say what will be done and how to prevent it, in Events; then mark that it was said. Raises ApiError."""
        until = stamp(now + policy.grace)
        what = f"{holding.kind.plural}/{holding.name}"
        owner = holding.owner(policy)
        begin = f"{owner}: " if owner else ""
        keep = f"remediator keep {what} 8h -n {holding.namespace}"
        action = holding.action(policy)
        ends = f"{what} {WILL[action]} after {until}" if action else WILL[None]
        message = f"{begin}{why}; {ends} (idle policy {policy.name}); to keep it: {keep}"
        if policy.finds is Finding.RESTARTS:
            message += await self._manifest(holding)
        await self._events(holding, live, WORDS[policy.finds][0], message, until, now)
        marks = {
            names.IDLE_POLICY: policy.name,
            names.IDLE_NOTIFIED_AT: stamp(now),
            names.IDLE_UNTIL: until if action else FOREVER,
        }
        with on_behalf(Mandate(Authority.POLICY, policy.name)):
            await self._mark(holding, live, marks)

    async def _manifest(self, holding: Holding) -> str:
        """What the first of its Pods that restart asks for, for its author to look at. Raises ApiError."""
        pod = next((pod for pod in holding.pods if pod.restarts_often), holding.pods[0])
        raw = await self._client.get(RAW_POD, pod.name, namespace=pod.namespace)
        full = f"kubectl get pod {pod.name} -n {pod.namespace} -o yaml"
        return f"; look at its manifest, {full}: {janitor_pods.manifest(raw)}"

    async def clear(self, holding: Holding, live: owners.Owner) -> None:
        """Take the notice back. Raises ApiError."""
        await self._mark(holding, live, GONE)

    async def act(
        self, holding: Holding, live: owners.Owner, policy: IdlePolicy, action: IdleAction, why: str, now: datetime
    ) -> None:
        """Say so in an Event, and suspend, scale or delete it. Raises ApiError."""
        message = f"{holding.kind.name} {holding.name} {WILL[action]} ({why}; idle policy {policy.name})"
        until = live.metadata.annotations.get(names.IDLE_UNTIL, "")
        await self._events(holding, live, WORDS[policy.finds][1], message, until, now)
        with on_behalf(Mandate(Authority.POLICY, policy.name)):
            await self._change(holding, live, action)

    async def _change(self, holding: Holding, live: owners.Owner, action: IdleAction) -> None:
        if action is IdleAction.SUSPEND:
            await self._mark(holding, live, GONE, encode.SUSPENDED)
        elif action is IdleAction.SCALE:
            before: dict[str, str | None] = {
                names.IDLE_REPLICAS: str(live.spec.replicas if live.spec.replicas is not None else 1)
            }
            await self._mark(holding, live, GONE | before, encode.SCALED)
        else:
            meta = live.metadata
            space, version = holding.namespace, meta.resource_version
            await self._client.delete(
                holding.kind, holding.name, namespace=space, uid=meta.uid, version=version, propagation=BACKGROUND
            )

    async def _events(
        self, holding: Holding, live: owners.Owner, reason: JanitorReason, message: str, identity: str, now: datetime
    ) -> None:
        subjects = [of(holding.kind, Head(metadata=live.metadata))]
        if holding.kind.name != owners.POD.name:
            subjects += [_subject(holding, pod.name, pod.uid) for pod in holding.pods[:MOST_EVENTS]]
        for subject in subjects:
            await self._writer.event(subject, reason, message, identity, now, warns=True)

    async def _mark(
        self,
        holding: Holding,
        live: owners.Owner,
        marks: Mapping[str, str | None],
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        meta = live.metadata
        body = encode.idle_marks(meta.uid, meta.resource_version, marks, spec)
        await self._client.patch(holding.kind, holding.name, body, namespace=holding.namespace)


def _subject(holding: Holding, name: str, uid: str) -> JanitorSubject:
    return of(owners.POD, Head(metadata=ObjectMeta(name=name, namespace=holding.namespace, uid=uid)))
