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
    """Make and update what no user has edited, and note what was made. Raises ApiError."""
    config = await client.get(CONFIG, DEFAULTS_CONFIG, namespace=namespace)
    made = set((config.data or {}).get("made", "").split())
    judgements = [await _one(client, each, each.key in made, each.key in restore) for each in objects]
    made |= {each.shipped.key for each in judgements}
    report = "\n".join(line for each in judgements if each.step is not Step.NOTHING for line in each.lines)
    body = {"data": {"made": "\n".join(sorted(made)), "report": report or "all is as shipped"}}
    await client.patch(CONFIG, DEFAULTS_CONFIG, body, namespace=namespace)
    return judgements


async def _one(client: Client, wanted: Shipped, made: bool, restore: bool) -> ShippedVerdict:
    kind = Kind(api.GROUP, api.VERSION, KINDS[wanted.kind].plural, wanted.kind, _Object)
    for last in (False, True):
        try:
            live = await client.get(kind, wanted.name)
        except errors.NotFound:
            live = None
        judgement = judge(wanted, _live(wanted.kind, live), made=made, restore=restore)
        try:
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


def _live(kind: str, live: _Object | None) -> Live | None:
    if live is None:
        return None
    noted = live.metadata.annotations.get(SHIPPED, "")
    try:
        parsed = json.loads(noted) if noted else None
    except ValueError:
        parsed = None
    return Live(_canonical(kind, live.spec), _canonical(kind, parsed))


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
