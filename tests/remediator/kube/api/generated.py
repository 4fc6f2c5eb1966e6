"""Any value of an API type, made from what msgspec knows of the type: its fields, bounds and patterns."""

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from remediator.kube import api

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECONDS = st.integers(946_684_800_000_000, 7_258_118_400_000_000)  # the years 2000 to 2200
TIMES = MICROSECONDS.map(lambda count: EPOCH + timedelta(microseconds=count))
# What stands in JSON in UTF-8: everything but lone surrogates.
LETTERS = st.characters(codec="utf-8")


@cache
def values(type_: Any) -> st.SearchStrategy[Any]:
    """Values that the type takes."""
    return _values(inspect.type_info(type_))


def _values(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.Metadata():
            return _values(info.type)
        case inspect.StructType():
            given = {field.name: _values(field.type) for field in info.fields if field.required}
            more = {field.name: _values(field.type) for field in info.fields if not field.required and _ours(field)}
            return st.fixed_dictionaries(given, optional=more).map(lambda fields: info.cls(**fields))
        case inspect.UnionType():
            return st.one_of(*map(_values, info.types))
        case inspect.EnumType():
            return st.sampled_from(info.cls)
        case inspect.VarTupleType():
            most = min(2, info.max_length or 2)
            return st.lists(_values(info.item_type), min_size=info.min_length or 0, max_size=most).map(tuple)
        case inspect.DictType():
            return st.dictionaries(
                _values(info.key_type), _values(info.value_type), min_size=info.min_length or 0, max_size=2
            )
        case inspect.StrType():
            return _texts(info)
        case inspect.IntType():
            return st.integers(info.ge or 0, info.le or 2**31)
    return _PLAIN[type(info)]


def _ours(field: inspect.Field) -> bool:
    """Who an object is stands fixed."""
    return field.name not in ("api_version", "kind") or field.required


def _texts(info: inspect.StrType) -> st.SearchStrategy[str]:
    if info.pattern:
        most = info.max_length or 20
        return st.from_regex(re.compile(info.pattern), fullmatch=True).filter(lambda text: _taken(text, most))
    return st.text(LETTERS, min_size=info.min_length or 0, max_size=min(20, info.max_length or 20))


def _taken(text: str, most: int) -> bool:
    """Whether the API takes a text of the pattern of its field: a duration has a limit that msgspec does not know."""
    if len(text) > most:
        return False
    try:
        return not api.too_long(text)
    except ValueError:  # no duration
        return True


_PLAIN: dict[type, st.SearchStrategy[Any]] = {
    inspect.NoneType: st.none(),
    inspect.BoolType: st.booleans(),
    inspect.DateTimeType: TIMES,
    inspect.AnyType: st.none() | st.booleans() | st.text(LETTERS, max_size=5),
}


def read_back(value: msgspec.Struct) -> msgspec.Struct:
    """A value after it went over the wire as JSON."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))
