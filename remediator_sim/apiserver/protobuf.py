"""Reading the protobuf bodies that client-go sends for built-in kinds. Answers are JSON, which every client accepts.

Only the kinds that kubectl and node-problem-detector write are known; one row per message.
"""

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from remediator_sim.apiserver.status import Obj, bad_request, unsupported_media

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"


class _Field(NamedTuple):
    name: str
    type: str = "string"  # a scalar, "map", "bytesmap", or the name of a message
    many: bool = False


def _fields(*names: str) -> dict[int, _Field]:
    """Text fields numbered from 1; an empty name leaves its number out."""
    return {at: _Field(name) for at, name in enumerate(names, 1) if name}


_META = {1: _Field("metadata", "ObjectMeta")}
_MESSAGES: dict[str, dict[int, _Field]] = {
    "TypeMeta": _fields("apiVersion", "kind"),
    "ObjectMeta": _fields("name", "generateName", "namespace", "", "uid", "resourceVersion")
    | {
        11: _Field("labels", "map"),
        12: _Field("annotations", "map"),
        13: _Field("ownerReferences", "OwnerReference", many=True),
        14: _Field("finalizers", many=True),
    },
    "OwnerReference": _fields("kind", "", "name", "uid", "apiVersion")
    | {6: _Field("controller", "bool"), 7: _Field("blockOwnerDeletion", "bool")},
    "ObjectReference": _fields("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"),
    "EventSource": _fields("component", "host"),
    "EventSeries": {1: _Field("count", "int"), 2: _Field("lastObservedTime", "microtime")},
    "Preconditions": _fields("uid", "resourceVersion"),
    "meta.k8s.io/DeleteOptions": {
        1: _Field("gracePeriodSeconds", "int"),
        2: _Field("preconditions", "Preconditions"),
        4: _Field("propagationPolicy"),
        5: _Field("dryRun", many=True),
    },
    "policy/Eviction": _META | {2: _Field("deleteOptions", "meta.k8s.io/DeleteOptions")},
    "/Namespace": _META,
    "/Binding": _META | {2: _Field("target", "ObjectReference")},
    "/ConfigMap": _META
    | {2: _Field("data", "map"), 3: _Field("binaryData", "bytesmap"), 4: _Field("immutable", "bool")},
    "/Secret": _META | {2: _Field("data", "bytesmap"), 3: _Field("type"), 4: _Field("stringData", "map")},
    "/ServiceAccount": _META | {4: _Field("automountServiceAccountToken", "bool")},
    "/Event": _META
    | {
        2: _Field("involvedObject", "ObjectReference"),
        3: _Field("reason"),
        4: _Field("message"),
        5: _Field("source", "EventSource"),
        6: _Field("firstTimestamp", "time"),
        7: _Field("lastTimestamp", "time"),
        8: _Field("count", "int"),
        9: _Field("type"),
        10: _Field("eventTime", "microtime"),
        11: _Field("series", "EventSeries"),
        12: _Field("action"),
        13: _Field("related", "ObjectReference"),
        14: _Field("reportingComponent"),
        15: _Field("reportingInstance"),
    },
    "events.k8s.io/Event": _META
    | {
        2: _Field("eventTime", "microtime"),
        3: _Field("series", "EventSeries"),
        4: _Field("reportingController"),
        5: _Field("reportingInstance"),
        6: _Field("action"),
        7: _Field("reason"),
        8: _Field("regarding", "ObjectReference"),
        9: _Field("related", "ObjectReference"),
        10: _Field("note"),
        11: _Field("type"),
        12: _Field("deprecatedSource", "EventSource"),
        13: _Field("deprecatedFirstTimestamp", "time"),
        14: _Field("deprecatedLastTimestamp", "time"),
        15: _Field("deprecatedCount", "int"),
    },
    "coordination.k8s.io/Lease": _META | {2: _Field("spec", "LeaseSpec")},
    "LeaseSpec": {
        1: _Field("holderIdentity"),
        2: _Field("leaseDurationSeconds", "int"),
        3: _Field("acquireTime", "microtime"),
        4: _Field("renewTime", "microtime"),
        5: _Field("leaseTransitions", "int"),
    },
    "authentication.k8s.io/TokenRequest": _META | {2: _Field("spec", "TokenRequestSpec")},
    "TokenRequestSpec": {
        1: _Field("audiences", many=True),
        3: _Field("boundObjectRef", "BoundObjectReference"),
        4: _Field("expirationSeconds", "int"),
    },
    "BoundObjectReference": _fields("kind", "apiVersion", "name", "uid"),
}


def read(raw: bytes) -> Obj:
    """The object in a body. Raises 400 where it is broken, 415 for a kind that is not known here."""
    if not raw.startswith(_MAGIC):
        raise bad_request("error decoding body: not a Kubernetes protobuf message")
    try:
        parts = dict(_wire(raw[len(_MAGIC) :]))
        type_meta = _message("TypeMeta", parts[1])
        group, _, _ = type_meta["apiVersion"].rpartition("/")
        known = _known(group, type_meta["kind"])
        if known is None:
            message = f"protobuf is not read here for {type_meta['kind']} of {type_meta['apiVersion']}: send JSON"
            raise unsupported_media(message)
        return type_meta | _message(known, parts.get(2, b""))
    except (IndexError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding body: {error!r}") from None


def _known(group: str, kind: str) -> str | None:
    """The row of a kind; DeleteOptions are the same in every group."""
    name = "meta.k8s.io/DeleteOptions" if kind == "DeleteOptions" else f"{group}/{kind}"
    return name if name in _MESSAGES else None


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _wire(raw: bytes) -> Iterator[tuple[int, Any]]:
    """(field number, int or bytes) of each field of a message."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        if tag & 7 == 0:
            value, at = _varint(raw, at)
            yield tag >> 3, value - (1 << 64) if value >= 1 << 63 else value
        else:
            length, at = _varint(raw, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
            if at + length > len(raw):
                raise IndexError("message is cut off")
            yield tag >> 3, raw[at : at + length]
            at += length


def _time(raw: bytes, *, fine: bool) -> str | None:
    parts = dict(_wire(raw))
    if not parts:
        return None
    at = datetime.fromtimestamp(parts.get(1, 0), UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S") + (f".{parts.get(2, 0) // 1000:06d}Z" if fine else "Z")


def _pair(raw: bytes) -> tuple[str, bytes]:
    parts = dict(_wire(raw))
    return parts.get(1, b"").decode(), parts.get(2, b"")


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "string": lambda value: value.decode() or None,
    "int": int,
    "bool": bool,
    "time": lambda value: _time(value, fine=False),
    "microtime": lambda value: _time(value, fine=True),
}
_MAPS: dict[str, Callable[[bytes], str]] = {
    "map": lambda value: value.decode(),
    "bytesmap": lambda value: base64.b64encode(value).decode(),
}


def _message(name: str, raw: bytes) -> Obj:
    """A message as the JSON object that it stands for; absent and empty values are left out."""
    message: Obj = {}
    for number, value in _wire(raw):
        field = _MESSAGES[name].get(number)
        if field is None:
            continue
        if field.type in _MAPS:
            key, item = _pair(value)
            message.setdefault(field.name, {})[key] = _MAPS[field.type](item)
            continue
        read_value = _SCALARS[field.type](value) if field.type in _SCALARS else _message(field.type, value) or None
        if field.many:
            message.setdefault(field.name, []).append(read_value)
        elif read_value is not None:
            message[field.name] = read_value
    return message
