"""One request and one answer, apart from HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from remediator_sim.github.refusal import Refusal, invalid


@dataclass(frozen=True, slots=True)
class GithubRequest:
    """What was asked. `path` has no prefix and is decoded; `body` is JSON as it came, None without one."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    raw: bytes
    body: Any
    at: datetime
    parts: Mapping[str, str] = field(default_factory=dict)  # what the route's pattern found in the path

    def number(self, name: str, default: int, most: int) -> int:
        """A number of the query, from 1 to `most`; nonsense is the default, as GitHub has it."""
        text = self.query.get(name, "")
        return min(int(text), most) if text.isdigit() and int(text) else default

    def choice(self, name: str, default: str, *allowed: str) -> str:
        """A word of the query.

        Raises:
            Refusal: 422, another word.
        """
        word = self.query.get(name, default)
        if word not in (default, *allowed):
            raise invalid(name, "invalid", value=word)
        return word

    def moment(self, name: str) -> datetime | None:
        """A time of the query, ISO 8601; None without it.

        Raises:
            Refusal: 422, not a time.
        """
        text = self.query.get(name)
        try:
            return datetime.fromisoformat(text) if text else None
        except ValueError:
            raise Refusal(422, f"Validation Failed: {name} is not a time") from None


@dataclass(frozen=True, slots=True)
class GithubAnswer:
    """What is said. `items` are pages of a list when `total` is given."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Logged:
    """One line of the request log. `status` 0: never answered."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    status: int
    at: datetime


def cursor_page(request: GithubRequest, items: list[Any], url: str) -> tuple[list[Any], dict[str, str]]:
    """One page of `items` of a list that counts no pages: the Link header says after which item the next begins."""
    size, start = request.number("per_page", 30, 100), request.number("after", 0, len(items))
    rest = urlencode({name: value for name, value in request.query.items() if name != "after"})
    more = start + size < len(items)
    headers = {"link": f'<{url}?{rest}{"&" if rest else ""}after={start + size}>; rel="next"'} if more else {}
    return items[start : start + size], headers


def page(request: GithubRequest, items: list[Any], url: str) -> tuple[list[Any], dict[str, str]]:
    """One page of `items`, and the Link header to the others."""
    size, number = request.number("per_page", 30, 100), request.number("page", 1, 10**6)
    last = max(1, -(-len(items) // size))
    rest = "&".join(f"{name}={value}" for name, value in request.query.items() if name != "page")
    to = {"prev": number - 1, "next": number + 1, "first": 1, "last": last}
    shown = [name for name in to if (number < last if name in ("next", "last") else number > 1)]
    links = ", ".join(f'<{url}?{rest}{"&" if rest else ""}page={to[name]}>; rel="{name}"' for name in shown)
    return items[(number - 1) * size : number * size], {"link": links} if links else {}
