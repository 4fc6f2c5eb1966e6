"""What is read of the cluster: policies, Pods that ask for GPUs, and who makes them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from remediator.core import names
from remediator.core.idle_policy import EVERYWHERE, IdlePolicy
from remediator.janitor.idle.evidence import GpuPod
from remediator.janitor.idle.holding import Holding
from remediator.janitor.selection import Selection
from remediator.janitor.subject import LETS_GO
from remediator.kube import api
from remediator.kube.api import decode, encode, owners, working_pods
from remediator.kube.api.builtin import NAMESPACE, USER_PODS, Head, Namespace
from remediator.kube.api.common import ObjectMeta, OwnerReference
from remediator.kube.wire.client import Client, Kind

RAW: Kind[dict[str, Any]] = Kind(api.IDLE_POLICY.group, api.IDLE_POLICY.version, api.IDLE_POLICY.plural, "", dict)
READ = (names.KEEP_UNTIL, names.IDLE_POLICY, names.IDLE_NOTIFIED_AT, names.IDLE_UNTIL)
MAKERS = {kind.name: kind for kind in (owners.JOB, owners.STATEFUL_SET, owners.DEPLOYMENT, owners.REPLICA_SET)}


@dataclass(slots=True)
class Holders:
    """Pods by the uid of who makes them, or by their own. `plain`: one Pod without GPUs of each maker."""

    pods: dict[str, list[GpuPod]] = field(default_factory=dict)
    makers: dict[str, OwnerReference] = field(default_factory=dict)
    plain: dict[str, GpuPod] = field(default_factory=dict)


async def policies(client: Client) -> tuple[list[IdlePolicy], list[str]]:
    """All that can be read, by name, and a sentence on each other. Raises ApiError."""
    readable, problems = [], []
    for raw in await client.list_all(RAW):
        try:
            readable.append(decode.idle_policy(msgspec.convert(raw, api.IdlePolicy)))
        except (msgspec.ValidationError, ValueError) as wrong:
            problems.append(f"idle policy {encode.name_of(raw)} cannot be read: {wrong}")
    return sorted(readable, key=lambda policy: policy.name), problems


async def holdings(client: Client, wanted: Iterable[IdlePolicy], selection: Selection) -> list[Holding]:
    """Everything that holds GPUs in the namespaces of these policies. Raises ApiError."""
    spaces = {space.metadata.name: space.metadata.annotations for space in await client.metadata(_SPACES)}
    named = {name for policy in wanted for name in policy.namespaces}
    places = ("",) if EVERYWHERE in named else tuple(sorted(named & spaces.keys()))
    holders = Holders()
    for place in places:
        async for page in client.pages(working_pods.POD, place, "", "", USER_PODS):
            for pod in page:
                if selection.namespace(pod.metadata.namespace):
                    _note(holders, pod)
    heads = await _heads(client, {maker.kind for maker in holders.makers.values()}, places)
    made = _grouped(holders, heads)
    return [replace(each, space=spaces.get(each.namespace, {})) for each in made]


_SPACES = Kind(NAMESPACE.group, NAMESPACE.version, NAMESPACE.plural, NAMESPACE.name, Namespace)


def gpu_pod(wire: working_pods.Pod) -> GpuPod:
    """A Pod, with the annotations and labels that matter."""
    work, meta = working_pods.working_pod(wire), wire.metadata
    marks = {name: meta.annotations[name] for name in READ if name in meta.annotations}
    return GpuPod(meta.namespace, meta.name, meta.uid, work.gpus, work.started, marks, meta.labels)


def _note(holders: Holders, wire: working_pods.Pod) -> None:
    meta = wire.metadata
    if wire.status.phase in ("Succeeded", "Failed") or meta.deletion_timestamp or names.MIRROR in meta.annotations:
        return
    pod, maker = gpu_pod(wire), controller(meta)
    if pod.gpus == 0:
        if maker is not None:
            holders.plain.setdefault(maker.uid, replace(pod, labels={}))
        return
    key = maker.uid if maker else pod.uid
    holders.pods.setdefault(key, []).append(pod)
    if maker is not None:
        holders.makers[key] = maker


def controller(meta: ObjectMeta) -> OwnerReference | None:
    """Who makes an object anew."""
    return next((owner for owner in meta.owner_references if owner.controller), None)


async def _heads(client: Client, kinds: set[str], places: tuple[str, ...]) -> dict[str, ObjectMeta]:
    """The metadata of all that may be a maker, by uid."""
    asked = kinds | ({owners.DEPLOYMENT.name} if owners.REPLICA_SET.name in kinds else set())
    heads: dict[str, ObjectMeta] = {}
    for kind in (MAKERS[name] for name in sorted(asked & MAKERS.keys())):
        listed = Kind(kind.group, kind.version, kind.plural, kind.name, Head, namespaced=True)
        for place in places:
            heads |= {head.metadata.uid: head.metadata for head in await client.metadata(listed, namespace=place)}
    return heads


def _grouped(holders: Holders, heads: Mapping[str, ObjectMeta]) -> list[Holding]:
    """One holding for each owner that can be told to make no Pods, and one for each other Pod."""
    grouped: dict[str, Holding] = {}
    for uid, pods in holders.pods.items():
        every = (*pods, *([holders.plain[uid]] if uid in holders.plain else []))
        top = _top(holders.makers.get(uid), heads)
        if top is None:
            for pod in pods:
                maker = holders.makers.get(uid)
                by = f"{maker.kind}/{maker.name}" if maker else ""
                marks = pod.annotations
                grouped[pod.uid] = Holding(owners.POD, pod.namespace, pod.name, pod.uid, marks, (pod,), by)
            continue
        kind, meta = top
        above = controller(meta)
        by = f"{above.kind}/{above.name}" if above and above.kind not in LETS_GO else ""
        known = grouped.get(meta.uid)
        pods_ = (*known.pods, *every) if known else every
        grouped[meta.uid] = Holding(kind, meta.namespace, meta.name, meta.uid, meta.annotations, pods_, by)
    return list(grouped.values())


def _top(maker: OwnerReference | None, heads: Mapping[str, ObjectMeta]) -> tuple[Kind[Any], ObjectMeta] | None:
    """Who at the top makes the Pods, where it is known and can be told to make none."""
    if maker is None or maker.kind not in MAKERS or maker.uid not in heads:
        return None
    meta = heads[maker.uid]
    if maker.kind != owners.REPLICA_SET.name:
        return MAKERS[maker.kind], meta
    above = controller(meta)
    if above is None or above.kind != owners.DEPLOYMENT.name or above.uid not in heads:
        return None
    return owners.DEPLOYMENT, heads[above.uid]
