"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386) over plain objects."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from remediator_sim.apiserver.status import Failure, bad_request

JSON_PATCH = "application/json-patch+json"


def merge(target: Any, patch: Any) -> Any:
    """The merged value; null in the patch removes a key, a list replaces a list. `target` is left as it was."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _refused(why: str) -> Failure:
    failure = Failure(422, "Invalid", "the server rejected our request due to an error in our request")
    failure.details["causes"] = [{"message": why}]
    return failure


def _parts(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise bad_request(f"JSON patch: not a pointer: {pointer!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _index(part: str, length: int) -> int:
    if not part.isdigit() or int(part) >= length:
        raise _refused(f"array index out of bounds: {part}")
    return int(part)


def _step(at: Any, part: str) -> Any:
    if isinstance(at, list):
        return at[_index(part, len(at))]
    if isinstance(at, dict) and part in at:
        return at[part]
    raise _refused(f"missing path: {part}")


def _find(document: Any, parts: list[str]) -> Any:
    for part in parts:
        document = _step(document, part)
    return document


def _add(holder: Any, part: str, value: Any) -> None:
    if isinstance(holder, list):
        holder.insert(len(holder) if part == "-" else _index(part, len(holder) + 1), value)
    elif isinstance(holder, dict):
        holder[part] = value
    else:
        raise _refused(f"cannot add below a scalar: {part}")


def _take(holder: Any, part: str) -> Any:
    value = _step(holder, part)
    if isinstance(holder, list):
        holder.pop(int(part))
    else:
        del holder[part]
    return value


def _op_add(document: Any, parts: list[str], op: dict[str, Any]) -> None:
    _add(_find(document, parts[:-1]), parts[-1], op.get("value"))


def _op_remove(document: Any, parts: list[str], op: dict[str, Any]) -> None:
    _take(_find(document, parts[:-1]), parts[-1])


def _op_replace(document: Any, parts: list[str], op: dict[str, Any]) -> None:
    holder = _find(document, parts[:-1])
    if isinstance(holder, list):
        holder[_index(parts[-1], len(holder))] = op.get("value")
    else:
        # As the real server has it, a key that is missing is no error.
        _add(holder, parts[-1], op.get("value"))


def _op_test(document: Any, parts: list[str], op: dict[str, Any]) -> None:
    if _find(document, parts) != op.get("value"):
        raise _refused(f"testing value {op['path']} failed")


def _op_move(document: Any, parts: list[str], op: dict[str, Any]) -> None:
    source = _parts(op.get("from"))
    _add(_find(document, parts[:-1]), parts[-1], _take(_find(document, source[:-1]), source[-1]))


def _op_copy(document: Any, parts: list[str], op: dict[str, Any]) -> None:
    _add(_find(document, parts[:-1]), parts[-1], deepcopy(_find(document, _parts(op.get("from")))))


_OPS: dict[str, Callable[[Any, list[str], dict[str, Any]], None]] = {
    "add": _op_add,
    "remove": _op_remove,
    "replace": _op_replace,
    "test": _op_test,
    "move": _op_move,
    "copy": _op_copy,
}


def json_patch(document: dict[str, Any], operations: Any) -> dict[str, Any]:
    """Apply every operation to `document` in place and give it back. 400 for no patch, 422 where one does not fit."""
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: the body must be a list of operations")
    for op in operations:
        perform = _OPS.get(op.get("op", "")) if isinstance(op, dict) else None
        if perform is None:
            raise _refused(f"unexpected kind of operation: {op!r}")
        parts = _parts(op.get("path"))
        if not parts:
            raise bad_request("JSON patch: the whole document cannot be the target")
        perform(document, parts, op)
    return document
