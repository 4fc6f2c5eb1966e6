"""GitHub's own description as the judge of what comes in and what goes out.

The models are generated from that description (package githubkit-schemas-2022-11-28). Only those asked for are loaded.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, reduce
from importlib import import_module
from importlib.machinery import PathFinder
from itertools import chain
from operator import or_
from types import ModuleType
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

_MODELS = "githubkit_schemas.v2022_11_28.models"


def shape_errors(model: str, body: bytes) -> list[str]:
    """What GitHub would refuse in the JSON `body` as a `model`; unknown fields are not among it."""
    return _errors(model, body, extra="ignore")


def all_errors(model: str, body: bytes) -> list[str]:
    """The same, and the fields that the description does not know."""
    return _errors(model, body, extra="forbid")


def _errors(model: str, body: bytes, **how: Any) -> list[str]:
    try:
        adapter(model).validate_json(body, strict=True, **how)
    except ValidationError as error:
        details = [detail for detail in error.errors() if not _is_allowed(model, detail["type"], detail["loc"])]
        errors = [(".".join(map(str, detail["loc"])), detail["msg"]) for detail in details]
        return [f"{model} {where}: {what}" for where, what in errors if "<UNSET>" not in where]
    return [f"{model} {name}: null, which the description does not allow" for name in _nulls(model, json.loads(body))]


def _is_allowed(model: str, error: str, where: tuple[int | str, ...]) -> bool:
    """True for a field that has no name in the description, where it says that there may be others."""
    if error != "extra_forbidden":
        return False
    here = [_load(name) for name in _parts(model)[1] if name not in _PLAIN]
    for step in where[:-1]:
        inner = [field.annotation for kind in here for name, field in kind.model_fields.items() if step == name]
        here = [kind for kind in here if kind.__name__ == step] or [*chain(*map(_models, inner))] or here
    return any(kind.model_config.get("extra") == "allow" for kind in here)


def _models(written: Any) -> list[Any]:
    """The models that a type is made of."""
    inner = get_args(written)
    return [*chain(*map(_models, inner))] if inner else [written] if hasattr(written, "model_fields") else []


def _nulls(model: str, body: Any) -> list[str]:
    """The fields of a body, or of a list of them, that are null and must not be.

    githubkit lets every optional field be null, GitHub does not; how the field is written still tells. Unions are not
    looked into, nor are bodies inside bodies.
    """
    many, names = _parts(model)
    if len(names) > 1 or names[0] in _PLAIN:
        return []
    written = _load(names[0]).__annotations__
    items = [item for item in (body if many else [body]) if isinstance(item, dict)]
    empty = {name for item in items for name, value in item.items() if value is None}
    return sorted(name for name in empty if not written.get(name, "None]]").endswith(("None]]", "None]", "None")))


@cache
def adapter(model: str) -> TypeAdapter[Any]:
    """The validator of `A`, of `A | B`, or of a list of these, `list[A | B]`; names of models, or `list[str]`."""
    many, names = _parts(model)
    union: Any = reduce(or_, [_PLAIN.get(name) or _load(name) for name in names])
    return TypeAdapter(list[union] if many else union)


def _parts(model: str) -> tuple[bool, list[str]]:
    many = model.startswith("list[")
    return many, (model[5:-1] if many else model).split(" | ")


_PLAIN: dict[str, Any] = {"list[str]": list[str]}


@cache
def _load(name: str) -> Any:
    with _models_only():
        models = import_module(_MODELS)
        group = next(group for group, names in models.__lazy_vars__.items() if name in names)
        return getattr(import_module(group, _MODELS), name)


@contextmanager
def _models_only() -> Iterator[None]:
    """Let the models import githubkit's small modules without its client.

    The client behind `githubkit/__init__.py` costs a second time as much, and does not start with hishel 2.0.0, which
    its metadata allows. Who imports githubkit later gets the whole of it.
    """
    if "githubkit" in sys.modules:
        yield
        return
    spec = PathFinder.find_spec("githubkit")
    if spec is None:
        raise ModuleNotFoundError("githubkit-schemas-2022-11-28 is not installed: pip install 'remediator[sim]'")
    bare = sys.modules["githubkit"] = ModuleType("githubkit")
    bare.__path__ = list(spec.submodule_search_locations or ())
    try:
        yield
    finally:
        del sys.modules["githubkit"]
