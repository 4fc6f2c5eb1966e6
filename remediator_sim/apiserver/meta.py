"""The rules of metadata that hold for every kind: names, identity, generation, finalizers, the optimistic lock."""

import re
from collections.abc import Iterator
from random import Random
from typing import Any

from remediator_sim.apiserver import status
from remediator_sim.apiserver.resources import Resource
from remediator_sim.apiserver.status import Obj, StatusCause

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_PATH_NAME = re.compile(r"^[^/%]+$")  # RBAC names only have to fit into a path
_LABEL_KEY = re.compile(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "generateName")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com')"
)
_LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def new_uid(chance: Random) -> str:
    """A random UUID, version 4."""
    digits = f"{(chance.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62)) | (0x4 << 76) | (0x2 << 62):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def name_new(meta: Obj, chance: Random) -> None:
    """Make a name out of generateName where none was given."""
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"][:58] + "".join(chance.choices(_ALPHABET, k=5))


def begin(meta: Obj, resource: Resource, uid: str, now: str) -> None:
    """Fill in what the server alone decides of a new object."""
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "resourceVersion"):
        meta.pop(key, None)
    meta.update(uid=uid, creationTimestamp=now)
    meta.pop("generation", None)
    _drop_empty(meta)
    if resource.generation:
        meta["generation"] = 1


def fixed(meta: Obj, old: Obj) -> Iterator[StatusCause]:
    """Causes to refuse an update that sets what only the server decides; what it leaves out is kept."""
    for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if meta.get(key) is not None and meta[key] != old.get(key):
            yield status.wrong(f"metadata.{key}", meta[key], "field is immutable")


def keep(meta: Obj, old: Obj) -> None:
    """Put back what no update can change."""
    for key in _KEPT:
        meta.pop(key, None)
        if key in old:
            meta[key] = old[key]
    meta.pop("managedFields", None)
    meta.pop("selfLink", None)
    _drop_empty(meta)


def _drop_empty(meta: Obj) -> None:
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if key in meta and not meta[key]:
            del meta[key]


def check_lock(resource: Resource, obj: Obj, old: Obj) -> None:
    """Refuse an update of another version (409), of another uid (409), or blind where the kind forbids it (422)."""
    meta, before = obj["metadata"], old["metadata"]
    name = before["name"]
    if (uid := meta.get("uid")) and uid != before["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}"
        raise status.conflict(resource.group, resource.plural, name, why)
    version = meta.get("resourceVersion")
    if not version:
        if resource.blind_put:
            return
        cause = status.wrong("metadata.resourceVersion", 0, "must be specified for an update")
        raise status.invalid(resource.group, resource.plural, name, [cause])
    if version != before["resourceVersion"]:
        raise status.moved(resource.group, resource.plural, name)


def spec_of(obj: Obj) -> Obj:
    """What generation counts: everything but metadata and status."""
    return {key: value for key, value in obj.items() if key not in ("metadata", "status", "apiVersion", "kind")}


def check(resource: Resource, meta: Obj, old: Obj | None = None) -> Iterator[StatusCause]:
    """Causes to refuse the metadata of a new or changed object."""
    if old is None:
        yield from _check_name(resource, meta)
    yield from _check_texts(meta, "labels")
    yield from _check_texts(meta, "annotations")
    if old is None or meta.get("labels") != old.get("labels"):
        yield from _check_labels(meta.get("labels") or {})
    if old and old.get("deletionTimestamp"):
        added = [
            finalizer for finalizer in meta.get("finalizers") or [] if finalizer not in (old.get("finalizers") or [])
        ]
        if added:
            listed = ", ".join(f'"{finalizer}"' for finalizer in added)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers "
            yield status.not_allowed("metadata.finalizers", f"{why}[]string{{{listed}}}")


def _check_name(resource: Resource, meta: Obj) -> Iterator[StatusCause]:
    name: Any = meta.get("name")
    if not name:
        yield status.required("metadata.name", "name or generateName is required")
        return
    rule = _PATH_NAME if resource.group == "rbac.authorization.k8s.io" else _NAME
    if not rule.match(name):
        yield status.wrong("metadata.name", name, _NAME_RULE)
    elif len(name) > 253:
        yield status.wrong("metadata.name", name, "must be no more than 253 bytes")


def _check_labels(labels: Obj) -> Iterator[StatusCause]:
    for key, value in labels.items():
        if not _LABEL_KEY.match(key):
            yield status.wrong(
                "metadata.labels", key, "name part must consist of alphanumeric characters, '-', '_' or '.'"
            )
        if isinstance(value, str) and len(value) > 63:
            yield status.wrong("metadata.labels", value, "must be no more than 63 bytes")
        elif isinstance(value, str) and not _LABEL_VALUE.match(value):
            yield status.wrong("metadata.labels", value, _LABEL_RULE)


def _check_texts(meta: Obj, field: str) -> Iterator[StatusCause]:
    texts = meta.get(field)
    if texts is None:
        return
    if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
        yield status.wrong(f"metadata.{field}", str(texts), "must be a map of strings")
