"""What GitHub says no with, in its own words."""

from collections.abc import Mapping, Sequence
from typing import Any

DOCS = "https://docs.github.com/rest"


class Refusal(Exception):
    """An answer of status >= 400. `errors` makes it a 422 that names fields."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {message}")
        self.status, self.message, self.errors, self.headers = status, message, list(errors), dict(headers or {})

    @property
    def model(self) -> str:
        """The name of its body in GitHub's description."""
        return "ValidationError" if self.status == 422 else "BasicError"

    def body(self) -> dict[str, Any]:
        """Its JSON."""
        body: dict[str, Any] = {"message": self.message, "documentation_url": DOCS}
        if self.status != 422:
            return body | {"status": str(self.status)}
        return body | ({"errors": self.errors} if self.errors else {})


def not_found(message: str = "Not Found") -> Refusal:
    """It is not there, or may not be seen."""
    return Refusal(404, message)


def invalid(field: str, code: str, *, message: str = "", value: Any = None, resource: str = "Issue") -> Refusal:
    """422: one field is wrong."""
    error: dict[str, Any] = {"resource": resource, "field": field, "code": code}
    error |= {"message": message} if message else {}
    error |= {"value": value} if value is not None else {}
    return Refusal(422, "Validation Failed", [error])


def too_long(field: str, limit: int) -> Refusal:
    """422 for a text over its limit."""
    return invalid(field, "custom", message=f"{field} is too long (maximum is {limit} characters)")
