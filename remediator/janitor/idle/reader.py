"""What is read of the cluster: policies, Pods that may be what they look for, and who makes them."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from remediator.core import names
from remediator.core.idle_policy import EVERYWHERE, Finding, IdlePolicy
from remediator.core.pod_facts import Key, PodFacts
from remediator.janitor.idle.holding import Holding
from remediator.janitor.pods import READ, PodWatch
from remediator.janitor.readable import readable
from remediator.janitor.selection import Selection
from remediator.janitor.subject import LETS_GO
from remediator.kube import api
from remediator.kube.api import decode, janitor_pods, owners
from remediator.kube.api.builtin import NAMESPACE, USER_PODS, Head, Namespace
from remediator.kube.api.common import ObjectMeta, OwnerReference, controller
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.transport import HEADS

TOLD_TO_END = (owners.DEPLOYMENT, owners.JOB, owners.STATEFUL_SET)
HEADS_PAGE = 500


@dataclass(slots=True)
class Holders:
    """Pods by the uid of who makes them, or by their own. `others`: who makes Pods that are no matter of ours."""

    pods: dict[str, list[PodFacts]] = field(default_factory=dict)
    makers: dict[str, OwnerReference] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Makers:
    """The metadata of those that may be told to make no Pods, by uid, and who made them; only what is asked for."""

    heads: dict[str, tuple[Kind[Any], ObjectMeta]] = field(default_factory=dict)
    above: dict[str, str] = field(default_factory=dict)  # of each ReplicaSet the uid of its Deployment


async def policies(client: Client) -> tuple[list[IdlePolicy], list[str]]:
    """All that can be read, by name, and a sentence on each other. Raises ApiError."""
    try:
        known, problems = await readable(client, api.IDLE_POLICY, decode.idle_policy, "idle policy")
    except errors.NotFound:  # nobody has applied the kind, and so nobody has a policy
        return [], []
    return sorted(known, key=lambda policy: policy.name), problems


async def holdings(
    client: Client,
    wanted: Collection[IdlePolicy],
    selection: Selection,
    alerted: Collection[Key],
    pods: PodWatch | None = None,
    place: str = "",
) -> dict[Finding, list[Holding]]:
    """By what policies look for: everything in their namespaces that may be it. Raises ApiError.

    `alerted`: the Pods that their alerts name. `pods`: what a watch tells of them. `place`: in this namespace alone.
    """
    spaces = {space.metadata.name: space.metadata.annotations for space in await client.metadata(_SPACES)}
    named = {place} if place else {name for policy in wanted for name in policy.namespaces}
    places = ("",) if EVERYWHERE in named else tuple(sorted(named & spaces.keys()))
    holders = {policy.finds: Holders() for policy in wanted}
    async for pod, maker in _watched(pods, places) if pods else _listed(client, places):
        if selection.namespace(pod.namespace):
            _note(holders, pod, maker, alerted)
    marked = frozenset(policy.name for policy in wanted if policy.finds in STUCK)
    makers = await _makers(client, holders.values(), marked, places)
    return {
        finds: [replace(each, space=spaces.get(each.namespace, {})) for each in _grouped(every, makers)]
        for finds, every in holders.items()
    }


_SPACES = Kind(NAMESPACE.group, NAMESPACE.version, NAMESPACE.plural, NAMESPACE.name, Namespace)
STUCK = frozenset({Finding.RESTARTS, Finding.PENDING, Finding.ALERT})
# Which Pods may be what is looked for; whoever bears a notice is looked at until it is taken back.
CONCERNS: dict[Finding, Callable[[PodFacts, Collection[Key]], bool]] = {
    Finding.IDLE_GPUS: lambda pod, _: pod.gpus != 0,
    Finding.IDLE_CPU: lambda pod, _: pod.gpus == 0,
    Finding.RESTARTS: lambda pod, _: pod.restarts_often,  # which it stays for as long as it lives
    Finding.PENDING: lambda pod, _: pod.pending or names.IDLE_POLICY in pod.annotations,
    Finding.ALERT: lambda pod, alerted: pod.key in alerted or names.IDLE_POLICY in pod.annotations,
}


def facts(wire: janitor_pods.JanitorPod) -> PodFacts:
    """A Pod, with the annotations that matter."""
    return janitor_pods.facts(wire, READ)


Made = AsyncIterator[tuple[PodFacts, OwnerReference | None]]


async def _watched(pods: PodWatch, places: tuple[str, ...]) -> Made:
    """The Pods that go on, with who makes them, of a watch."""
    async for pod in pods.going_on():
        if places == ("",) or pod.facts.namespace in places:
            yield pod.facts, pod.maker


async def _listed(client: Client, places: tuple[str, ...]) -> Made:
    """The same, page by page."""
    for place in places:
        async for page in client.pages(janitor_pods.POD, place, "", janitor_pods.GO_ON, USER_PODS):
            for wire in page:
                if janitor_pods.goes_on(wire):
                    yield facts(wire), controller(wire.metadata.owner_references)


def _note(
    holders: Mapping[Finding, Holders], pod: PodFacts, maker: OwnerReference | None, alerted: Collection[Key]
) -> None:
    for finds, known in holders.items():
        if CONCERNS[finds](pod, alerted):
            key = maker.uid if maker else pod.uid
            known.pods.setdefault(key, []).append(pod)
            if maker is not None:
                known.makers[key] = maker
        elif maker is not None:
            known.others.add(maker.uid)


async def _makers(
    client: Client, holders: Iterable[Holders], marked: frozenset[str], places: tuple[str, ...]
) -> Makers:
    """Those that make these Pods, and those that bear a notice of a policy: it may have to be taken back."""
    every = list(holders)
    uids = {uid for each in every for uid in each.makers}
    kinds = {maker.kind for each in every for maker in each.makers.values()}
    with_pods = uids.union(*(each.others for each in every))
    makers = Makers()
    if owners.REPLICA_SET.name in kinds:
        async for meta in _metadata(client, owners.REPLICA_SET, places):
            above = controller(meta.owner_references)
            if meta.uid in with_pods and above is not None and above.kind == owners.DEPLOYMENT.name:
                makers.above[meta.uid] = above.uid
            if meta.uid in uids:
                makers.heads[meta.uid] = owners.REPLICA_SET, meta
    uids |= {makers.above[uid] for uid in uids & makers.above.keys()}
    kinds |= {owners.DEPLOYMENT.name} if owners.REPLICA_SET.name in kinds else set()
    for kind in TOLD_TO_END:
        if marked or kind.name in kinds:
            async for meta in _metadata(client, kind, places):
                if meta.uid in uids or meta.annotations.get(names.IDLE_POLICY) in marked:
                    makers.heads[meta.uid] = kind, meta
    return makers


async def _metadata(client: Client, kind: Kind[Any], places: tuple[str, ...]) -> AsyncIterator[ObjectMeta]:
    listed = Kind(kind.group, kind.version, kind.plural, kind.name, Head, namespaced=True)
    for place in places:
        async for page in client.pages(listed, place, "", "", HEADS_PAGE, HEADS):
            for head in page:
                yield head.metadata


def _grouped(holders: Holders, makers: Makers) -> list[Holding]:
    """One holding for each owner that can be told to make no Pods, and one for each other Pod."""
    others = holders.others | {makers.above[uid] for uid in holders.others & makers.above.keys()}
    grouped: dict[str, Holding] = {}
    for uid, pods in holders.pods.items():
        top = _top(uid, makers)
        if top is None:
            maker = holders.makers.get(uid)
            by = f"{maker.kind}/{maker.name}" if maker else ""
            for pod in pods:
                grouped[pod.uid] = Holding(owners.POD, pod.namespace, pod.name, pod.uid, pod.annotations, (pod,), by)
            continue
        known = grouped.get(top)
        holding = known or _made(*makers.heads[top])
        more = holding.others or bool({uid, top} & others)
        grouped[top] = replace(holding, pods=(*holding.pods, *pods), others=more)
    for uid, (kind, meta) in makers.heads.items():
        if uid not in grouped and names.IDLE_POLICY in meta.annotations and kind is not owners.REPLICA_SET:
            grouped[uid] = _made(kind, meta)
    return list(grouped.values())


def _made(kind: Kind[Any], meta: ObjectMeta) -> Holding:
    """Without its Pods."""
    above = controller(meta.owner_references)
    by = f"{above.kind}/{above.name}" if above and above.kind not in LETS_GO else ""
    return Holding(kind, meta.namespace, meta.name, meta.uid, meta.annotations, (), by)


def _top(uid: str, makers: Makers) -> str | None:
    """Who at the top makes the Pods, where it is known and can be told to make none."""
    if uid not in makers.heads:
        return None
    kind, _ = makers.heads[uid]
    if kind is not owners.REPLICA_SET:
        return uid
    above = makers.above.get(uid, "")
    return above if above in makers.heads else None
