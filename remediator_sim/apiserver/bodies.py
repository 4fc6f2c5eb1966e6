"""Reading request bodies: JSON or YAML to plain objects, with the fields that were named twice."""

import json
from collections import Counter
from typing import Any, NamedTuple

import msgspec
import yaml

from remediator_sim.apiserver import protobuf, status
from remediator_sim.apiserver.status import Obj

_YAML = ("application/yaml", "application/x-yaml", "text/yaml")
_MEDIA = "the body of the request was in an unknown format - accepted media types include: "


class Body(NamedTuple):
    """A decoded body, and the paths of fields that were named more than once (the last one counts)."""

    value: Any
    duplicates: list[str]


class _Twice(dict[str, Any]):
    """An object in which some keys came twice."""

    keys_twice: tuple[str, ...] = ()


class _Objects:
    """Makes the objects of one body; `twice`: whether some key of some object came twice."""

    twice = False

    def make(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """One object."""
        content = dict(pairs)
        if len(content) == len(pairs):
            return content
        self.twice, marked = True, _Twice(content)
        counts = Counter(key for key, _ in pairs)
        marked.keys_twice = tuple(key for key, count in counts.items() if count > 1)
        return marked


def _twice(value: Any, path: str) -> list[str]:
    found = []
    if isinstance(value, _Twice):
        found += [f"{path}.{key}" if path else key for key in value.keys_twice]
    if isinstance(value, dict):
        for key, item in value.items():
            found += _twice(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            found += _twice(item, f"{path}[{at}]")
    return found


def media_type(content_type: str) -> str:
    """The content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def json_value(raw: bytes) -> Any:
    """A JSON value. Raises 400 where it is none."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise status.bad_request(f"error decoding body: {error}") from None


def read(raw: bytes, content_type: str) -> Body:
    """An object from a body. Raises 400 where it is none, 415 for formats other than JSON, YAML and protobuf."""
    kind = media_type(content_type)
    if kind in _YAML:
        return Body(_object(yaml.safe_load(raw)), [])
    if kind == protobuf.MEDIA:
        return Body(protobuf.read(raw), [])
    if kind not in ("application/json", ""):
        raise status.unsupported_media(_MEDIA + "application/json, application/yaml")
    if (plain := _plain(raw)) is not None:
        return Body(plain, [])
    objects = _Objects()
    try:
        value = json.loads(raw, object_pairs_hook=objects.make)
    except ValueError as error:
        raise status.bad_request(f"error decoding body: {error}") from None
    return Body(_object(value), _twice(value, "") if objects.twice else [])


def _plain(raw: bytes) -> Obj | None:
    """The object of a body that says it as we would: then no field is in it twice. None for any other body."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) and msgspec.json.encode(value) == raw else None


def _object(value: Any) -> Obj:
    if not isinstance(value, dict):
        raise status.bad_request("error decoding body: the body must be an object")
    return value
