"""Label and field selectors: text to predicates over plain objects."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from remediator_sim.apiserver.status import Obj, bad_request

Test = Callable[[Obj], bool]
Labels = dict[str, str]

_SET = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^)]*)\)$")
_PAIR = re.compile(r"^([^=!\s]+)\s*(==|=|!=)\s*([^=!]*)$")
_KEY = re.compile(r"^(?:[a-z0-9A-Z.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$")
_VALUE = re.compile(r"^(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$")

_ANY_KIND = frozenset({"metadata.name", "metadata.namespace"})
_EVENT_FIELDS = frozenset(
    {f"involvedObject.{part}" for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")}
    | {"involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"}
)
FIELDS: dict[str, frozenset[str]] = {
    "pods": frozenset(
        {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"}
        | {"status.phase", "status.podIP", "status.nominatedNodeName"}
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "secrets": frozenset({"type"}),
    "resourceslices": frozenset({"spec.nodeName", "spec.driver"}),
    "events": _EVENT_FIELDS,
}
_DEFAULTS = {"spec.unschedulable": "false", "spec.hostNetwork": "false"}


class Field(NamedTuple):
    """One term of a field selector."""

    path: str
    value: str
    equal: bool


def _split(text: str) -> list[str]:
    """Split at commas that stand outside parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _label_term(term: str) -> Callable[[Labels], bool]:
    if match := _SET.match(term):
        key, word, listed = match.groups()
        values = {value.strip() for value in listed.split(",")}
        _check(key, *values)
        if word == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _PAIR.match(term):
        key, sign, value = (part.strip() for part in match.groups())
        _check(key, value)
        if sign == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    key = term.removeprefix("!").strip()
    _check(key)
    if term.startswith("!"):
        return lambda labels: key not in labels
    return lambda labels: key in labels


def _check(key: str, *values: str) -> None:
    if not _KEY.match(key) or not all(_VALUE.match(value) for value in values):
        raise bad_request(f"unable to parse requirement: invalid label key or value near {key!r}")


def labels(text: str) -> Callable[[Labels], bool]:
    """A predicate over labels for text such as `a=b,c!=d,e in (f,g),!h`. Raises 400 where it cannot be read."""
    terms = [_label_term(term) for term in _split(text)]
    return lambda obj: all(term(obj) for term in terms)


def fields(text: str, allowed: frozenset[str]) -> list[Field]:
    """The terms of a field selector. Raises 400 for a field outside `allowed` and the two that every kind has."""
    terms = []
    for term in _split(text):
        match = _PAIR.match(term)
        if not match:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, sign, value = match.groups()
        if path not in _ANY_KIND and path not in allowed:
            raise bad_request(f"field label not supported: {path}")
        terms.append(Field(path, value.strip(), sign != "!="))
    return terms


@lru_cache(64)
def _steps(path: str) -> list[str]:
    return path.split(".")


def field_value(obj: Obj, path: str) -> str:
    """The value at a dotted path as selectors compare it: absent is the empty text, booleans are lower case."""
    component: object = obj
    for part in _steps(path):
        component = component.get(part) if isinstance(component, dict) else None
    if path == "source" and isinstance(component, dict):
        component = component.get("component")
    if component is None:
        return _DEFAULTS.get(path, "")
    return str(component).lower() if isinstance(component, bool) else str(component)


def selector(label_text: str, field_terms: list[Field]) -> Test | None:
    """One predicate for both selectors; None where everything matches."""
    if not label_text.strip() and not field_terms:
        return None
    by_label = labels(label_text)

    def test(obj: Obj) -> bool:
        for term in field_terms:
            if (field_value(obj, term.path) == term.value) != term.equal:
                return False
        return by_label(obj["metadata"].get("labels") or {})

    return test


def _expression(labels_: Labels, item: Obj) -> bool:
    key, operator = item["key"], item["operator"]
    present, chosen = key in labels_, labels_.get(key) in (item.get("values") or [])
    return {"In": chosen, "NotIn": not chosen, "Exists": present, "DoesNotExist": not present}[operator]


def matches(chosen: Obj | None, labels_: Labels) -> bool:
    """Whether a LabelSelector object (matchLabels, matchExpressions) selects these labels. None selects nothing."""
    if chosen is None:
        return False
    wanted = chosen.get("matchLabels") or {}
    return all(labels_.get(key) == value for key, value in wanted.items()) and all(
        _expression(labels_, item) for item in chosen.get("matchExpressions") or []
    )
