"""Errors of an API server: one class per answer that a caller handles differently."""


class ApiError(Exception):
    """A refusal by the API server: HTTP status, machine reason (Kubernetes Status.reason), message for a person."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message, self.retry_after = status, reason, message, retry_after


class NotFound(ApiError):
    """404: no such object (or kind)."""


class AlreadyExists(ApiError):
    """409 AlreadyExists: an object of that name is there."""


class Conflict(ApiError):
    """409 Conflict: the resourceVersion or uid precondition did not hold; look again."""


class Expired(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""


class Forbidden(ApiError):
    """401 or 403: we may not do this."""


class Invalid(ApiError):
    """400, 415 or 422: the object or request itself is wrong; repeating it is useless."""


class TooManyRequests(ApiError):
    """429: an eviction that a PodDisruptionBudget forbids now, or a server that sheds load."""


class Unavailable(ApiError):
    """5xx, or no answer at all (status 0): the server is away; whether a write happened is not known."""


_BY_STATUS: dict[int, type[ApiError]] = {
    **dict.fromkeys((401, 403), Forbidden),
    **dict.fromkeys((400, 415, 422), Invalid),
    404: NotFound,
    410: Expired,
    429: TooManyRequests,
}


def from_status(status: int, reason: str, message: str, retry_after: float | None = None) -> ApiError:
    """The error for one answer of status >= 400."""
    if status == 409:
        kind: type[ApiError] = AlreadyExists if reason == "AlreadyExists" else Conflict
    else:
        kind = _BY_STATUS.get(status, Unavailable if status >= 500 else ApiError)
    return kind(status, reason, message, retry_after)
