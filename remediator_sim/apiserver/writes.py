"""Create, update and patch: from the body of a request to a stored object."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from remediator.kube.manifests import schema
from remediator.kube.wire.transport import MERGE_PATCH, STRATEGIC_PATCH
from remediator_sim.apiserver import bodies, builtin, kinds, meta, patch, status, strategic, validation
from remediator_sim.apiserver.admission import ADMIT
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.options import Options
from remediator_sim.apiserver.resources import Resource
from remediator_sim.apiserver.status import Failure, Obj, StatusCause
from remediator_sim.apiserver.store import Entry


class Target(NamedTuple):
    """What a request speaks of: a kind, and one object or (without a name) all in a namespace, or a part of it."""

    resource: Resource
    namespace: str
    name: str = ""
    sub: str = ""


class WriteResult(NamedTuple):
    """The object after a write, in the form of the request's version, and what to warn of; `entry`: as it is stored."""

    obj: Obj
    warnings: list[str]
    created: bool = False
    entry: Entry | None = None


def create(cluster: Cluster, target: Target, body: bodies.Body, options: Options) -> WriteResult:
    """Create one object. Raises 400, 403, 404 (no such namespace), 409 and 422."""
    resource, obj = target.resource, body.value
    _check_type(resource, obj)
    details = obj.setdefault("metadata", {})
    _check_address(target, details)
    if details.get("resourceVersion"):
        raise Failure(500, "", "resourceVersion should not be set on objects to be created")
    if resource.namespaced:
        _check_namespace(cluster, resource, target.namespace, details)
    meta.name_new(details, cluster.chance)
    obj, warnings, fits = _strict(resource, obj, body.duplicates, options)
    obj, fits = _filled(resource, obj, fits=fits)
    if resource.status and not resource.keeps_status:
        obj.pop("status", None)
    _complete(cluster, resource, obj)
    _refuse(resource, obj, _causes(resource, obj, None, fits=fits))
    key = (target.namespace, details["name"])
    if key in cluster.collection(resource).entries:
        raise status.already_exists(resource.group, resource.plural, details["name"])
    if options.dry_run:
        return WriteResult(obj, warnings, created=True)
    entry = cluster.put(resource.storage, resource.store(obj))
    return WriteResult(resource.view(entry.obj), warnings, created=True, entry=entry)


def _complete(cluster: Cluster, resource: Resource, obj: Obj) -> None:
    """Everything that the server adds to a new object."""
    meta.begin(obj["metadata"], resource, meta.new_uid(cluster.chance), cluster.stamp())
    if resource.storage in kinds.RULES:
        kinds.RULES[resource.storage].begin(obj)
    if resource.storage in ADMIT:
        ADMIT[resource.storage](cluster, obj)


def _check_type(resource: Resource, obj: Obj) -> None:
    """Refuse an object of another kind; built-in kinds may leave both words out."""
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if resource.custom and not (kind and version):
        missing = "apiVersion" if kind else "Kind"
        start = f"the object provided is unrecognized (must be of type {resource.kind})"
        raise status.bad_request(f"{start}: Object '{missing}' is missing in '{status.shown(obj)[:200]}'")
    if (version or resource.api_version) != resource.api_version:
        text = "the API version in the data ({}) does not match the expected API version ({})"
        raise status.bad_request(text.format(version, resource.api_version))
    if (kind or resource.kind) != resource.kind:
        if resource.custom:
            cause = status.wrong("kind", kind, f"must be {resource.kind}")
            raise status.invalid(resource.group, str(kind), (obj.get("metadata") or {}).get("name", ""), [cause])
        raise status.bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}')
    obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind


def _check_address(target: Target, details: Any) -> None:
    """Refuse a body that names another object than the path; complete it where it names none."""
    if not isinstance(details, dict):
        raise status.bad_request("metadata must be an object")
    if target.name and details.setdefault("name", target.name) != target.name:
        message = f"the name of the object ({details['name']}) does not match the name on the URL ({target.name})"
        raise status.bad_request(message)
    if not target.resource.namespaced:
        details.pop("namespace", None)
    elif (details.get("namespace") or target.namespace) != target.namespace:
        message = "the namespace of the provided object does not match the namespace sent on the request"
        raise status.bad_request(message)
    else:
        details["namespace"] = target.namespace


def _check_namespace(cluster: Cluster, resource: Resource, namespace: str, details: Obj) -> None:
    entry = cluster.find("namespaces", "", namespace)
    if entry is None:
        raise status.not_found("", "namespaces", namespace)
    if entry.obj["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        refusal = status.forbidden(resource.group, resource.plural, details.get("name", ""), why)
        message = f"namespace {namespace} is being terminated"
        refusal.details["causes"] = [
            {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        ]
        raise refusal


def _own(obj: Obj) -> Obj:
    """A copy all of which may be changed: what nearly every object needs no change of is shared with what is stored."""
    return msgspec.json.decode(msgspec.json.encode(obj))  # type: ignore[no-any-return]


def _strict(resource: Resource, obj: Obj, duplicates: list[str], options: Options) -> tuple[Obj, list[str], bool]:
    """Prune; name what was unknown or double: as a refusal (Strict), as warnings (Warn), not at all (Ignore).

    Also whether all of it fits the schema of its kind as it is.
    """
    described, unknown = builtin.of(resource), list[str]()
    fits = described is not None and schema.fits(obj, described)
    if described is not None and not fits:
        obj = _own(obj)
        unknown = schema.prune(obj, described)
    problems = [f'unknown field "{path}"' for path in sorted(unknown)] + [
        f'duplicate field "{path}"' for path in duplicates
    ]
    if options.field_validation == "Ignore" or not problems:
        return obj, [], fits
    if options.field_validation == "Warn":
        return obj, problems, fits
    kind = resource.kind
    raise status.bad_request(
        f'{kind} in version "{resource.version}" cannot be handled as a {kind}: '
        f"strict decoding error: {', '.join(problems)}"
    )


def _filled(resource: Resource, obj: Obj, old: Any = schema.ABSENT, *, fits: bool) -> tuple[Obj, bool]:
    """Put in defaults and leave nulls out; built-in kinds are refused (400) where a type is wrong.

    Also whether all of it fitted the schema of its kind as it was; `fits`: that is known already.
    """
    described = builtin.of(resource)
    if described is not None:
        if fits or schema.fits(obj, described):
            return obj, True
        obj = _own(obj)
        schema.fill(obj, described)
    if not resource.custom:
        builtin.check_types(resource, obj, old)
    return obj, False


def _causes(resource: Resource, obj: Obj, old: Obj | None, *, fits: bool) -> Iterable[StatusCause]:
    yield from meta.check(resource, obj["metadata"], old["metadata"] if old else None)
    if resource.schema is not None:
        yield from validation.check(obj, resource.schema, old if old is not None else schema.ABSENT, fits=fits)
    yield from kinds.RULES.get(resource.storage, kinds.PLAIN).check(obj, old)


def _refuse(resource: Resource, obj: Obj, causes: Iterable[StatusCause]) -> None:
    reasons = list(causes)
    if reasons:
        raise status.invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), reasons)


def update(cluster: Cluster, target: Target, body: bodies.Body, options: Options) -> WriteResult:
    """Replace one object, or its status. Raises 400, 404, 409 and 422; creates where the kind allows that."""
    resource, obj = target.resource, body.value
    _check_type(resource, obj)
    _check_address(target, obj.setdefault("metadata", {}))
    entry = cluster.collection(resource).entries.get((target.namespace, target.name))
    if entry is None:
        if resource.put_creates and not obj["metadata"].get("uid"):
            obj["metadata"].pop("resourceVersion", None)
            return create(cluster, target._replace(name=""), body, options)
        raise status.not_found(resource.group, resource.plural, target.name)
    return _replace(cluster, target, entry, body, options)


def _replace(cluster: Cluster, target: Target, entry: Entry, body: bodies.Body, options: Options) -> WriteResult:
    resource, obj = target.resource, body.value
    old = resource.view(entry.obj)
    meta.check_lock(resource, obj, old)
    obj, warnings, fits = _strict(resource, obj, body.duplicates, options)
    given = dict(obj)
    obj = _blend(target, obj, old)
    obj, fits = _filled(resource, obj, old, fits=fits and _is_the_same(obj, given))
    frozen = list(meta.fixed(obj["metadata"], old["metadata"]))
    meta.keep(obj["metadata"], old["metadata"])
    if resource.generation and meta.spec_of(obj) != meta.spec_of(old):
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    _refuse(resource, obj, [*frozen, *_causes(resource, obj, old, fits=fits)])
    if obj == old or options.dry_run:
        return WriteResult(obj, warnings)
    if ended(obj):
        last = cluster.remove(resource.storage, resource.store(obj))
        return WriteResult(resource.view(last.obj), warnings)
    stored = cluster.put(resource.storage, resource.store(obj))
    return WriteResult(resource.view(stored.obj), warnings, entry=stored)


def _is_the_same(obj: Obj, given: Obj) -> bool:
    """Whether an object has the fields that were given: nearly every patch leaves alone what is blended in."""
    same = all(given.get(key) is value for key, value in obj.items() if key != "metadata")
    return same and obj.keys() == given.keys() and obj["metadata"] == given["metadata"]


def ended(obj: Obj) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    details = obj["metadata"]
    waits = details.get("finalizers") or details.get("deletionGracePeriodSeconds")
    return bool(details.get("deletionTimestamp")) and not waits


def _blend(target: Target, obj: Obj, old: Obj) -> Obj:
    """What of the old object stays: its status, or all but its status where the status is what is written."""
    resource = target.resource
    if target.sub == "status" and resource.custom:
        blended = {**old, "metadata": dict(old["metadata"])}
        return _with(blended, "status", obj)
    if target.sub == "status":
        return _with(obj, "spec", old)
    return _with(obj, "status", old) if resource.status else obj


def _with(obj: Obj, field: str, source: Obj) -> Obj:
    obj.pop(field, None)
    if field in source:
        obj[field] = source[field]
    return obj


_PATCHES = "the body of the request was in an unknown format - accepted media types include: "
_APPLY = "application/apply-patch+yaml"


def change(cluster: Cluster, target: Target, raw: bytes, content_type: str, options: Options) -> WriteResult:
    """Patch one object, or its status. Raises 400, 404, 409, 415 and 422."""
    resource, kind = target.resource, bodies.media_type(content_type)
    _check_patch_type(resource, kind)
    entry = cluster.get(resource, target.namespace, target.name)
    body = bodies.Body(bodies.json_value(raw), []) if kind == patch.JSON_PATCH else bodies.read(raw, "application/json")
    patched = _patched(resource.view(entry.copy() if kind == patch.JSON_PATCH else entry.obj), body.value, kind)
    _check_type(resource, patched)
    _check_address(target, patched.get("metadata"))
    if (uid := patched["metadata"].get("uid")) and uid != entry.obj["metadata"]["uid"]:
        cause = status.wrong("metadata.uid", uid, "field is immutable")
        raise status.invalid(resource.group, resource.kind, target.name, [cause])
    try:
        return _replace(cluster, target, entry, bodies.Body(patched, body.duplicates), options)
    except status.Failure as failure:
        if failure.code == 400 and "strict decoding error" in failure.message:
            detail = failure.message[failure.message.index("strict decoding error") :]
            raise status.invalid("", "", "", [status.wrong("patch", raw.decode(), detail)]) from None
        raise


def _check_patch_type(resource: Resource, kind: str) -> None:
    accepted = [patch.JSON_PATCH, MERGE_PATCH] if resource.custom else [patch.JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH]
    if kind in (_APPLY, "application/apply-patch+cbor"):
        raise status.unsupported_media(f"server-side apply is not served here; use one of: {', '.join(accepted)}")
    if kind not in accepted:
        raise status.unsupported_media(_PATCHES + ", ".join([*accepted, _APPLY]))


def _patched(current: Obj, body: Any, kind: str) -> Obj:
    """The object with the patch in it; it shares with what is stored what the patch leaves alone, but its metadata."""
    if kind == patch.JSON_PATCH:
        return patch.json_patch(current, body)
    merged: Obj = strategic.apply(current, body) if kind == STRATEGIC_PATCH else patch.merge(current, body)
    if isinstance(merged.get("metadata"), dict):
        merged["metadata"] = dict(merged["metadata"])
    return merged
