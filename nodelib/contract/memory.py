"""What a detector knows from run to run: a NamedTuple, and the JSON file that keeps it in the state folder.

What is of another boot, of another form or from the future is no memory: the detector begins anew, as after a boot. The
fields of the NamedTuple are keys of the file, and say by their types what may stand there. Not made of dataclasses:
importing these takes longer than all else that a run does.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from enum import IntEnum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from nodelib.contract.npd import read_json, write_json

INFINITE = float("inf")  # math would be one module more at each start
M = TypeVar("M", bound=tuple[Any, ...])
Reader = Callable[[Any], Any]
LIMIT = 2.0**64  # no number that is remembered is as large


class Scope(IntEnum):
    """For how long a memory is good.

    BOOT: this boot; boots whose id cannot be read are taken for one. KNOWN_BOOT: not even that, because places in the
    kernel's log are part of it. NODE: whatever boots.
    """

    BOOT = 0
    KNOWN_BOOT = 1
    NODE = 2


class Nonsense(ValueError):
    """A value is not of the type that it should have."""


class Stamp(NamedTuple):
    """In which boot a memory is written or read, and when, in seconds since boot."""

    boot: str
    now: float


def recall(path: Path, kind: type[M], stamp: Stamp, scope: Scope = Scope.BOOT) -> M:
    """Return what the last run kept in `path`, and `kind` without arguments where that is no memory of now."""
    content = read_json(path)
    if scope is Scope.NODE or _is_of(content, stamp, scope):
        try:
            return kind(**{name: read(content[name]) for name, read in _fields(kind).items() if name in content})
        except Nonsense:
            pass
    return kind()


def keep(path: Path, memory: Any, stamp: Stamp) -> None:
    """Write down what the next run must know, a NamedTuple. Raises OSError."""
    write_json(path, {"boot_id": stamp.boot, "at": stamp.now, **memory._asdict()}, odd=_listed)


def age(path: Path, stamp: Stamp, scope: Scope) -> float:
    """Return how many seconds ago the memory in `path` was kept; what is good whatever boots does not get old."""
    at = read_json(path).get("at")
    if scope is Scope.NODE:
        return 0.0
    return stamp.now - at if type(at) in (int, float) else INFINITE


def _is_of(content: Mapping[str, Any], stamp: Stamp, scope: Scope) -> bool:
    at = content.get("at", stamp.now)
    same = content.get("boot_id") == stamp.boot and (bool(stamp.boot) or scope is Scope.BOOT)
    return same and type(at) in (int, float) and at <= stamp.now


def _listed(value: Any) -> Any:
    """Return what JSON knows for what it does not know: sets, and mappings that are no dict."""
    return dict(value) if isinstance(value, Mapping) else sorted(value)


def _fields(kind: Any) -> dict[str, Reader]:
    return {name: reader(hint) for name, hint in kind.__annotations__.items()}


def reader(kind: Any) -> Reader:
    """Return what reads a value of this type from what json.loads gives. It raises Nonsense.

    >>> reader(dict[str, frozenset[int]])({"eth0": [2, 1]})
    {'eth0': frozenset({1, 2})}
    """
    if kind is Any:
        return lambda value: value
    if isinstance(kind, type) and hasattr(kind, "_fields"):
        return _record(kind)
    make = _GENERIC.get(get_origin(kind))
    return make(*get_args(kind)) if make else _plain(kind)


def _plain(kind: type) -> Reader:
    kinds = (int, float) if kind is float else (kind,)

    def read(value: Any) -> Any:
        if type(value) not in kinds or (int in kinds and not -LIMIT < value < LIMIT):
            raise Nonsense(value)
        return value

    return read


def _record(kind: Any) -> Reader:
    readers, least = _fields(kind), len(kind._fields) - len(kind._field_defaults)

    def read(value: Any) -> Any:
        if isinstance(value, dict):  # earlier versions kept some by the names of their fields
            return _by_name(kind, readers, value)
        if not isinstance(value, list) or not least <= len(value) <= len(readers):
            raise Nonsense(value)
        return kind(*(each(part) for each, part in zip(readers.values(), value, strict=False)))

    return read


def _by_name(kind: Any, readers: Mapping[str, Reader], value: Mapping[str, Any]) -> Any:
    if {*kind._fields} - {*kind._field_defaults} - {*value} or not {*value} <= {*kind._fields}:
        raise Nonsense(value)
    return kind(**{name: readers[name](part) for name, part in value.items()})


def _many(make: Callable[[Any], Any]) -> Callable[..., Reader]:
    def made(inner: Any, *_: Any) -> Reader:
        reads = reader(inner)

        def read(value: Any) -> Any:
            if not isinstance(value, list):
                raise Nonsense(value)
            try:
                return make([reads(part) for part in value])
            except TypeError as error:  # what cannot be part of a set
                raise Nonsense(value) from error

        return read

    return made


def _tuple(*inner: Any) -> Reader:
    if inner[-1] is ...:
        return _many(tuple)(inner[0])
    readers = [reader(kind) for kind in inner]

    def read(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(readers):
            raise Nonsense(value)
        return tuple(each(part) for each, part in zip(readers, value, strict=True))

    return read


def _mapping(_: Any, inner: Any) -> Reader:
    reads = reader(inner)

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Nonsense(value)
        return {key: reads(part) for key, part in value.items()}

    return read


def _either(*kinds: Any) -> Reader:
    readers = [reader(kind) for kind in kinds]

    def read(value: Any) -> Any:
        for each in readers:
            try:
                return each(value)
            except Nonsense:
                continue
        raise Nonsense(value)

    return read


def _words(*words: Any) -> Reader:
    def read(value: Any) -> Any:
        if value not in words:
            raise Nonsense(value)
        return value

    return read


_GENERIC: dict[Any, Callable[..., Reader]] = {
    **dict.fromkeys((dict, Mapping), _mapping),
    **dict.fromkeys((list, Sequence), _many(list)),
    **dict.fromkeys((frozenset, Set, Collection), _many(frozenset)),
    set: _many(set),
    tuple: _tuple,
    **dict.fromkeys((Union, UnionType), _either),
    Literal: _words,
}
