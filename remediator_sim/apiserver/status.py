"""The Status bodies an API server refuses with, as one exception and a function per refusal."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

Obj = dict[str, Any]


class StatusCause(NamedTuple):
    """One thing wrong with one field. `field` is a path such as `spec.ladder[0].operation`."""

    field: str
    reason: str
    message: str


class Failure(Exception):
    """A refusal: HTTP status `code`, machine `reason`, `message` for a person, `details` of the Status body."""

    def __init__(
        self, code: int, reason: str, message: str, details: Obj | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.retry_after = code, reason, message, retry_after
        self.details = dict(details or {})
        if retry_after:
            self.details["retryAfterSeconds"] = retry_after

    def body(self) -> Obj:
        """The Status object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            **({"details": self.details} if self.details else {}),
            "code": self.code,
        }


def success(group: str, plural: str, name: str, uid: str) -> Obj:
    """The Status that answers a delete which left nothing behind."""
    details = {"name": name, **({"group": group} if group else {}), "kind": plural, "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _about(group: str, kind: str, name: str) -> Obj:
    return {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}


def _qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_found(group: str, plural: str, name: str) -> Failure:
    """404 for one object."""
    message = f'{_qualified(plural, group)} "{name}" not found'
    return Failure(404, "NotFound", message, _about(group, plural, name))


def no_such_path() -> Failure:
    """404 for a kind or path that is not served."""
    return Failure(404, "NotFound", "the server could not find the requested resource")


def already_exists(group: str, plural: str, name: str) -> Failure:
    """409: the name is taken."""
    message = f'{_qualified(plural, group)} "{name}" already exists'
    return Failure(409, "AlreadyExists", message, _about(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> Failure:
    """409: a precondition on version or uid did not hold."""
    message = f'Operation cannot be fulfilled on {_qualified(plural, group)} "{name}": {why}'
    return Failure(409, "Conflict", message, _about(group, plural, name))


def moved(group: str, plural: str, name: str) -> Failure:
    """409: the object has another resourceVersion by now."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(group, plural, name, why)


def invalid(group: str, kind: str, name: str, causes: Sequence[StatusCause]) -> Failure:
    """422 with every cause in message and details."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{_qualified(kind, group)} "{name}" is invalid: {joined}'
    listed = [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]
    return Failure(422, "Invalid", message, {**_about(group, kind, name), "causes": listed})


def bad_request(message: str) -> Failure:
    """400: the request itself cannot be understood."""
    return Failure(400, "BadRequest", message)


def forbidden(group: str, plural: str, name: str, why: str) -> Failure:
    """403: understood, and not allowed."""
    message = f'{_qualified(plural, group)} "{name}" is forbidden: {why}'
    return Failure(403, "Forbidden", message, _about(group, plural, name))


def expired(message: str) -> Failure:
    """410: the version asked for is no longer kept."""
    return Failure(410, "Expired", message)


def too_large_version(asked: int, current: int) -> Failure:
    """504: a version from the future."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Failure(504, "Timeout", message, {"causes": [cause]}, retry_after=1)


def unsupported_media(message: str) -> Failure:
    """415: a body in a format that is not read here."""
    return Failure(415, "UnsupportedMediaType", message)


def method_not_allowed() -> Failure:
    """405: the path is there, the verb is not."""
    message = "the server does not allow this method on the requested resource"
    return Failure(405, "MethodNotAllowed", message)


def shown(value: Any) -> str:
    """A value as causes print it."""
    return msgspec.json.encode(value).decode()


def required(field: str, detail: str = "") -> StatusCause:
    """A field that has to be there."""
    return StatusCause(field, "FieldValueRequired", "Required value" + (f": {detail}" if detail else ""))


def wrong(field: str, value: Any, detail: str, reason: str = "FieldValueInvalid") -> StatusCause:
    """A value that is not acceptable."""
    return StatusCause(field, reason, f"Invalid value: {shown(value)}: {detail}")


def not_allowed(field: str, detail: str) -> StatusCause:
    """A change or field that is not permitted here."""
    return StatusCause(field, "FieldValueForbidden", f"Forbidden: {detail}")


def duplicate(field: str, value: Any) -> StatusCause:
    """A key that an earlier list item has already."""
    return StatusCause(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")
