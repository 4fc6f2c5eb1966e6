"""What single built-in kinds add to the general rules: defaults of new objects, and validation. One row per kind."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from remediator_sim.apiserver import crd, namespaces, nodes, pods, status
from remediator_sim.apiserver.status import Obj, StatusCause

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")  # in the order in which refusals list them


class KindRules(NamedTuple):
    """`begin` completes a new object in place; `check` names what is wrong (object, what it replaces)."""

    begin: Callable[[Obj], None]
    check: Callable[[Obj, Obj | None], Iterable[StatusCause]]


def _begin_spec(obj: Obj) -> None:
    obj.setdefault("spec", {})
    obj.setdefault("status", {})


def _begin_pod(obj: Obj) -> None:
    # A Pod without a spec is left as it is; check() then says what is missing.
    if isinstance(obj.get("spec"), dict):
        pods.begin(obj)


def _check_taints(obj: Obj, old: Obj | None) -> Iterator[StatusCause]:
    seen: list[tuple[str, str]] = []
    for at, taint in enumerate((obj.get("spec") or {}).get("taints") or []):
        path, ident = f"metadata.taints[{at}]", (taint.get("key", ""), taint.get("effect", ""))
        # The server speaks of metadata.taints here, though they lie in spec.
        if not ident[0]:
            yield status.wrong(f"{path}.key", "", "name part must be non-empty")
        if ident[1] not in _EFFECTS:
            listed = ", ".join(f'"{effect}"' for effect in _EFFECTS)
            detail = f'Unsupported value: "{ident[1]}": supported values: {listed}'
            yield StatusCause(f"{path}.effect", "FieldValueNotSupported", detail)
        if ident in seen:
            yield status.duplicate(path, taint)
        seen.append(ident)


def _check_budget(obj: Obj, old: Obj | None) -> Iterator[StatusCause]:
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield status.wrong("spec", "object", "minAvailable and maxUnavailable cannot be both set")


def _check_lease(obj: Obj, old: Obj | None) -> Iterator[StatusCause]:
    spec = obj.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if isinstance(seconds, int) and seconds <= 0:
        yield status.wrong("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if isinstance(spec.get("leaseTransitions"), int) and spec["leaseTransitions"] < 0:
        yield status.wrong("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0")


_EVENT_FIELDS = ("eventTime", "reportingController", "reportingInstance", "action", "reason", "type")


def _check_event(obj: Obj, old: Obj | None) -> Iterator[StatusCause]:
    namespace, modern = obj["metadata"]["namespace"], obj["apiVersion"] != "v1"
    about = obj.get("regarding" if modern else "involvedObject") or {}
    homes = (about["namespace"],) if about.get("namespace") else ("default", "kube-system")
    if namespace not in homes:
        # Events of things outside namespaces live in the namespace `default`.
        yield status.wrong("involvedObject.namespace", about.get("namespace", ""), "does not match event.namespace")
    if modern and old is None:
        yield from (status.required(field) for field in _EVENT_FIELDS if not obj.get(field))


def _check_nothing(obj: Obj, old: Obj | None) -> Iterator[StatusCause]:
    return iter(())


def _begin_nothing(obj: Obj) -> None:
    return None


PLAIN = KindRules(_begin_nothing, _check_nothing)
RULES: dict[str, KindRules] = {
    "nodes": KindRules(nodes.begin, _check_taints),
    "namespaces": KindRules(namespaces.complete, _check_nothing),
    "events": KindRules(_begin_nothing, _check_event),
    "pods": KindRules(_begin_pod, pods.check),
    "poddisruptionbudgets.policy": KindRules(_begin_spec, _check_budget),
    crd.STORAGE: KindRules(crd.begin, crd.check),
    "leases.coordination.k8s.io": KindRules(_begin_nothing, _check_lease),
}
