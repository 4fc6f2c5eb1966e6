"""The shipped policies, budgets and templates in a cluster: read, compared with what is shipped, made and updated."""

import json
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from remediator.core import shipped
from remediator.core.names import DEFAULTS_CONFIG, SHIPPED
from remediator.core.shipped import Live, Shipped, ShippedVerdict, Spec, Step, judge
from remediator.kube import api
from remediator.kube.api.common import API_VERSION, Base, ObjectMeta
from remediator.kube.api.patch import MergePatch, MetaPatch
from remediator.kube.manifests import crd, yamlfile
from remediator.kube.manifests.schema.content import fill
from remediator.kube.manifests.schema.node import SchemaNode, build
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.transport import MERGE_PATCH

KINDS = {kind.name: kind for kind in (api.POLICY, api.BUDGET, api.TEMPLATE)}
SPECS: dict[str, type[msgspec.Struct]] = {
    "RemediationPolicy": api.RemediationPolicySpec,
    "NodeDisruptionBudget": api.NodeDisruptionBudgetSpec,
    "NodeOperationTemplate": api.NodeOperationTemplateSpec,
}
WRITTEN = frozenset({Step.CREATE, Step.UPDATE, Step.NOTE})


class _Object(Base, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class _Config(Base, frozen=True, kw_only=True):
    metadata: ObjectMeta
    data: dict[str, str] | UnsetType = UNSET


CONFIG = Kind("", "v1", "configmaps", "ConfigMap", _Config, namespaced=True)


class NotShipped(ValueError):
    """A document that is no policy, budget or template, or cannot be read; the message says which and why."""


def read(text: str) -> Iterator[Shipped]:
    """The objects of one file. Raises NotShipped."""
    try:
        documents = [each.value for each in yamlfile.documents(text) if each.value is not None]
    except yamlfile.UnreadableYaml as wrong:
        raise NotShipped(str(wrong)) from None
    for document in documents:
        try:
            kind, name, spec = document["kind"], document["metadata"]["name"], document["spec"]
            whole = _canonical(kind, spec)
        except (KeyError, TypeError) as wrong:
            raise NotShipped(f"no policy, budget or template: {wrong}") from None
        if whole is None:
            raise NotShipped(f"{kind} {name} cannot be read; `remediator lint` says why")
        yield Shipped(kind, name, whole)


async def bring_up_to_date(
    client: Client, namespace: str, objects: Iterable[Shipped], restore: Collection[str]
) -> list[ShippedVerdict]:
    """Make and update what no user has edited, and note what was made. One that is refused stops no other.

    Raises ApiError where the server does not answer, or where the ConfigMap can be neither read nor written.
    """
    config = await client.get(CONFIG, DEFAULTS_CONFIG, namespace=namespace)
    made = set((config.data or {}).get("made", "").split())
    judgements = []
    for each in objects:
        judgement = await _settled(client, each, each.key in made, each.key in restore)
        judgements.append(judgement)
        if judgement.step is not Step.REFUSED:
            made.add(each.key)
        if judgement.step is Step.CREATE:  # at once: should this run be stopped, the next one knows who deleted it
            await _note(client, namespace, {"made": "\n".join(sorted(made))})
    report = "\n".join(line for each in judgements if each.step is not Step.NOTHING for line in each.lines)
    await _note(client, namespace, {"made": "\n".join(sorted(made)), "report": report or "all is as shipped"})
    return judgements


async def _note(client: Client, namespace: str, data: dict[str, str]) -> None:
    await client.patch(CONFIG, DEFAULTS_CONFIG, {"data": data}, namespace=namespace)


async def _settled(client: Client, wanted: Shipped, made: bool, restore: bool) -> ShippedVerdict:
    """What became of one object. Raises ApiError where nobody has answered: the others would not be answered either."""
    try:
        return await _one(client, wanted, made, restore)
    except errors.ApiError as refused:
        if refused.status < 400:
            raise
        return ShippedVerdict(wanted, Step.REFUSED, (refused.message, _remedy(refused)))


def _remedy(refused: errors.ApiError) -> str:
    match refused:
        case errors.Invalid() | errors.NotFound():
            return "run `remediator crds --apply` of this version, so that its fields are known; then run this again"
        case errors.Forbidden():
            return "allow it in the role or the admission policy that the server names; then run this again"
        case _:
            return "run this again once the server takes it"


async def _one(client: Client, wanted: Shipped, made: bool, restore: bool) -> ShippedVerdict:
    kind = Kind(api.GROUP, api.VERSION, KINDS[wanted.kind].plural, wanted.kind, _Object)
    for last in (False, True):
        try:
            live = await client.get(kind, wanted.name)
        except errors.NotFound:
            live = None
        try:
            judgement = judge(wanted, await _live(client, kind, wanted, live), made=made, restore=restore)
            await _act(client, kind, judgement, live)
        except (
            errors.Conflict,
            errors.AlreadyExists,
        ):  # the controller makes the default budget, and writes annotations
            if last:
                raise
            continue
        break
    return judgement


async def _act(client: Client, kind: Kind[_Object], judgement: ShippedVerdict, live: _Object | None) -> None:
    wanted = judgement.shipped
    if judgement.step not in WRITTEN:
        return
    note = {SHIPPED: json.dumps(wanted.spec, sort_keys=True)}
    if live is None:
        metadata = {"name": wanted.name, "annotations": note}
        await client.create(
            kind, {"apiVersion": API_VERSION, "kind": wanted.kind, "metadata": metadata, "spec": wanted.spec}
        )
        return
    meta = MetaPatch(resource_version=live.metadata.resource_version, annotations=note)
    spec = shipped.patch(live.spec, wanted.spec) if judgement.step is Step.UPDATE else UNSET
    await client.patch(kind, wanted.name, MergePatch(metadata=meta, spec=spec))


async def _live(client: Client, kind: Kind[_Object], wanted: Shipped, live: _Object | None) -> Live | None:
    """What the cluster has. Where it seems edited the server says whether it is: its definitions may be newer."""
    if live is None:
        return None
    note = _noted(live)
    spec, noted = _canonical(wanted.kind, live.spec), _canonical(wanted.kind, note)
    if spec is not None and spec in (wanted.spec, noted):
        return Live(spec, noted)
    if await _would_be(client, kind, live, wanted.spec) == live.spec:
        return Live(wanted.spec, noted)
    if note is not None and await _would_be(client, kind, live, note) == live.spec:
        return Live(note, note)
    return Live(spec, noted)


def _noted(live: _Object) -> dict[str, Any] | None:
    """The spec as it was when `remediator defaults` last wrote the object, as it stands in the annotation."""
    try:
        note = json.loads(live.metadata.annotations.get(SHIPPED, "null"))
    except ValueError:
        return None
    return note if isinstance(note, dict) else None


async def _would_be(client: Client, kind: Kind[_Object], live: _Object, spec: Spec) -> Spec | None:
    """The spec that the server would store if this one were written, with the defaults of its own definitions.

    Nothing is written. None for a spec that the server would refuse.
    """
    body = MergePatch(
        metadata=MetaPatch(resource_version=live.metadata.resource_version), spec=shipped.patch(live.spec, spec)
    )
    try:
        path, query = kind.path(live.metadata.name), [("dryRun", "All")]
        return (await client.send("PATCH", path, kind.type, body, content_type=MERGE_PATCH, query=query)).spec
    except errors.Invalid:
        return None


def _canonical(kind: str, spec: Any) -> Spec | None:
    """A spec with every default written out: two that mean the same are the same. None for what is no such spec."""
    try:
        msgspec.convert(spec, SPECS[kind])
    except msgspec.ValidationError:
        return None
    filled: dict[str, Any] = deepcopy(spec)
    fill(filled, _schema(kind))
    return filled


@cache
def _schema(kind: str) -> SchemaNode:
    """What the definition says of the spec."""
    root = crd.crd(KINDS[kind])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return build(root["properties"]["spec"])
