"""A request that changes an object → what the log says of it (core/audit.py). Nothing secret is among the values."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from remediator.core import names, node_lease
from remediator.core.audit import CREATE, DELETE, LEASES, Authority, FieldChange, Mandate, Value, Write
from remediator.core.case import Case
from remediator.core.node import Node, NodeCondition
from remediator.core.pod import Pod
from remediator.kube import api
from remediator.kube.api.decode.cases import remediation_case

VERBS: Mapping[str, str] = {"POST": CREATE, "PATCH": "patch", "PUT": "update", "DELETE": DELETE}
LONGEST = 256  # letters of a value
NOT_SHOWN = "(not shown)"  # a value that may be secret, or is long
NODES, OURS = "nodes", f".{names.GROUP}"
_PREFIXES = (f"{names.GROUP}/", "janitor/")
_PLAIN = frozenset(
    {"spec.holderIdentity", "spec.replicas", "spec.suspend", "spec.nodeName", "target.name", "metadata.finalizers"}
)
_QUIET_FIELDS = frozenset({"resourceVersion", "uid", "name", "namespace", "generateName", "ownerReferences"})
_PARTS = frozenset({"apiVersion", "kind", "metadata", "spec", "target", "status"})
Body = Mapping[str, Any]


class Place(NamedTuple):
    """Of which object a path speaks; `resource` as in rules of RBAC, with its group."""

    resource: str
    namespace: str
    name: str


def place(path: str) -> Place:
    """The object of a path of the API.

    >>> place("/apis/remediator.dev/v1alpha1/nodeoperations/a/status")
    Place(resource='nodeoperations.remediator.dev/status', namespace='', name='a')
    """
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, sub = (*rest, "", "", "")[:3]
    resource = f"{plural}.{group}" if group else plural
    return Place(f"{resource}/{sub}" if sub else resource, namespace, name)


def write(method: str, path: str, body: bytes, node: Node | None = None, pod: Pod | None = None) -> Write:
    """What a request changes. `node`, `pod`: the object as it was before, where that is known."""
    where, wanted = place(path), _object(body)
    meta = _mapping(wanted, "metadata")
    verb = VERBS.get(method, method.lower())
    made = _case(where, wanted) if verb == CREATE else None
    written = () if verb == DELETE else tuple(_fields(wanted, verb))
    changes = tuple(_news(where, verb, written, node, pod))
    return Write(
        verb=verb,
        resource=where.resource,
        namespace=where.namespace,
        name=where.name or str(meta.get("name") or meta.get("generateName") or ""),
        node=_node(where, wanted, pod),
        version=str(meta.get("resourceVersion") or _mapping(wanted, "preconditions").get("resourceVersion") or ""),
        changes=changes,
        uids=tuple(dict.fromkeys(uid for uid in _uids(wanted, node, pod) if uid)),
        case=made,
        word=_asked(where, wanted) if verb == CREATE and not made else _of_test(pod),
        repeats=(bool(written) and not changes and verb != CREATE) or (where.resource == LEASES and _says_held(wanted)),
    )


def renews(where: Place, body: bytes) -> bool:
    """Whether a request only says that the holder of a Lease has it still."""
    return where.resource == LEASES and _says_held(_object(body))


def _says_held(lease: Body) -> bool:
    spec = _mapping(lease, "spec")
    return bool(spec) and spec.get("acquireTime") != spec.get("renewTime")


def _object(body: bytes) -> Body:
    try:
        decoded = msgspec.json.decode(body) if body else {}
    except msgspec.DecodeError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _mapping(within: Body, key: str) -> Body:
    inner = within.get(key)
    return inner if isinstance(inner, dict) else {}


def _case(where: Place, body: Body) -> Case | None:
    if where.resource != f"{api.CASE.plural}{OURS}":
        return None
    try:
        return remediation_case(msgspec.convert(body, api.CASE.type, strict=False))
    except msgspec.ValidationError:
        return None


def _asked(where: Place, body: Body) -> Mandate | None:
    """Of what belongs to no case: an operation that another controller asks for, or the test of an idle node."""
    policy, _ = _idle_test(body)
    if policy:
        return Mandate(Authority.POLICY, policy)
    spec = _mapping(body, "spec")
    asked = where.resource == f"{api.OPERATION.plural}{OURS}" and not spec.get("caseUID")
    return Mandate(Authority.REQUEST, str(spec.get("requestedBy") or "")) if asked else None


def _of_test(pod: Pod | None) -> Mandate | None:
    return Mandate(Authority.POLICY, pod.idle_test) if pod is not None and pod.idle_test else None


def _idle_test(body: Body) -> tuple[str, str]:
    """The policy and the node of a test of an idle node; "" of another object."""
    policy, node, *_ = (
        *str(_mapping(_mapping(body, "metadata"), "annotations").get(names.IDLE_TEST) or "").split("/"),
        "",
    )
    return policy, node


def _node(where: Place, body: Body, pod: Pod | None) -> str:
    if where.resource.partition("/")[0] == NODES:
        return where.name
    if where.resource == LEASES:
        return node_lease.node(where.name or str(_mapping(body, "metadata").get("name") or ""))
    spec = _mapping(body, "spec")
    known = (pod.node or pod.tested) if pod else ""
    return str(spec.get("nodeName") or _mapping(body, "target").get("name") or _idle_test(body)[1] or known)


def _uids(body: Body, node: Node | None, pod: Pod | None) -> Iterator[str]:
    """Of the cases that it names, the surest first."""
    meta, spec = _mapping(body, "metadata"), _mapping(body, "spec")
    notes = _mapping(meta, "annotations")
    yield str(_mapping(meta, "labels").get(names.CASE_UID_LABEL) or "")
    yield str(spec.get("caseUID") or "")
    for taint in spec.get("taints") or ():
        yield str(taint.get("value") or "") if taint.get("key") == names.CASE_TAINT else ""
    for key in (names.CORDONED_BY, names.IN_SERVICE, names.SCALE_DOWN_DISABLED_BY, names.WITHDRAWN):
        yield str(notes.get(key) or "").partition(" ")[0]
    if pod is not None:
        yield pod.case_uid
    if node is not None:
        yield from (node.case_uid, node.cordoned_by, node.in_service)


def _news(
    where: Place, verb: str, written: tuple[tuple[str, Value], ...], node: Node | None, pod: Pod | None
) -> Iterator[FieldChange]:
    """The fields that it changes; of those whose value before is known, only those that become another."""
    for field, after in written:
        shown = _shown(where, field, after)
        if verb == CREATE and (not isinstance(after, str) or shown == NOT_SHOWN):
            continue  # the object itself is new: its long fields are its own
        known, before = _before(field, node, pod)
        if not known or before != shown:
            yield FieldChange(field, shown, before, known)


def _fields(body: Body, verb: str) -> Iterator[tuple[str, Value]]:
    for key, value in _mapping(body, "metadata").items():
        if key in ("annotations", "labels") and isinstance(value, dict):
            if verb != CREATE:
                yield from ((f"metadata.{key}[{name}]", text) for name, text in value.items())
        elif key not in _QUIET_FIELDS:
            yield f"metadata.{key}", value
    for part in ("spec", "target"):
        yield from ((f"{part}.{key}", value) for key, value in _mapping(body, part).items())
    for key, value in _mapping(body, "status").items():
        if key == "conditions" and isinstance(value, list):
            yield from ((f"status.conditions[{entry.get('type')}]", _condition(entry)) for entry in value)
        else:
            yield f"status.{key}", value
    yield from ((key, NOT_SHOWN) for key in body if key not in _PARTS)


def _condition(entry: Body) -> str:
    return f"{entry.get('status')} {entry.get('reason')}: {entry.get('message')}"[:LONGEST]


def _shown(where: Place, field: str, value: Value) -> Value:
    """The value as the line has it: of others' objects only what we write there, and nothing long anywhere."""
    if field == "spec.taints":
        return [_taint(each["key"], each.get("value", ""), each.get("effect", "")) for each in value or ()]
    if where.resource == NODES and field == "spec.unschedulable":
        return bool(value)
    open_to_all = where.resource.partition("/")[0] == NODES or OURS in where.resource
    ours = field in _PLAIN or field.partition("[")[2].startswith(_PREFIXES)
    if value is None or isinstance(value, bool | int):
        return value
    if not (open_to_all or ours) or isinstance(value, dict):
        return NOT_SHOWN
    return [str(each)[:LONGEST] for each in value] if isinstance(value, list) else str(value)[:LONGEST]


def _taint(key: str, value: str, effect: str) -> str:
    """As kubectl shows it."""
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _before(field: str, node: Node | None, pod: Pod | None) -> tuple[bool, Value]:
    """Whether the value before is known, and which it was."""
    if pod is not None and field == "metadata.finalizers":
        return True, list(pod.finalizers)
    if node is None:
        return False, None
    name = field.partition("[")[2].removesuffix("]")
    if field.startswith("metadata.labels["):
        return True, _text(node.labels.get(name))
    if field.startswith("status.conditions["):
        condition = node.conditions.get(name)
        return True, _of_node(condition) if condition else None
    read = _OF_NODE.get(name or field)
    return (True, read(node)) if read else (False, None)


def _of_node(condition: NodeCondition) -> str:
    return f"{condition.status.value} {condition.reason}: {condition.message}"[:LONGEST]


def _text(text: str | None) -> str | None:
    return text[:LONGEST] if text else text


def _annotation(attribute: str) -> Callable[[Node], Value]:
    return lambda node: _text(getattr(node, attribute) or None)


_OF_NODE: Mapping[str, Callable[[Node], Value]] = MappingProxyType(
    {
        "spec.unschedulable": lambda node: node.unschedulable,
        "spec.taints": lambda node: [_taint(taint.key, taint.value, taint.effect) for taint in node.taints],
        names.CORDONED_BY: _annotation("cordoned_by"),
        names.KEPT_CORDONED: _annotation("kept_cordoned"),
        names.IN_SERVICE: _annotation("in_service"),
        names.CORDON_REASON: _annotation("cordon_reason"),
        names.OUT_OF_SERVICE_BOOT: _annotation("out_of_service_boot"),
        names.SCALE_DOWN_DISABLED: _annotation("scale_down_disabled"),
        names.SCALE_DOWN_DISABLED_BY: _annotation("scale_down_disabled_by"),
        names.HANDLED: lambda node: _text(",".join(node.handled) or None),
        names.ADMITTED: lambda node: _text(",".join(node.admitted) or None),
    }
)
