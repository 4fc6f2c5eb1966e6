"""The small part of JSONPath that printer columns use: fields, [0], [-1:], [*] and [?(@.type=="Ready")]."""

import re
from collections.abc import Callable, Iterator
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\.?(?P<field>(?:[\w/-]|\\.)+) | \[['"](?P<quoted>[^'"]+)['"]\] | \[(?P<index>-?\d+)\]
    | \[(?P<slice>-?\d*:-?\d*)\] | (?P<all>\.?\[?\*\]?)
    | \[\?\(\s*@\.?(?P<where>[\w.\\/-]*)\s*==\s*(?P<value>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]""",
    re.VERBOSE,
)


def compile_path(text: str) -> Callable[[Any], list[Any]]:
    """A function from an object to what the path finds in it, in order. Raises ValueError for a path beyond us."""
    text = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps, at = [], 0
    while at < len(text) and text != ".":
        match = _TOKEN.match(text, at)
        if not match:
            raise ValueError(f"JSONPath not understood at {text[at:]!r}")
        steps.append(_step(match))
        at = match.end()

    def find(value: Any) -> list[Any]:
        values = [value]
        for step in steps:
            values = [one for item in values for one in step(item)]
        return values

    return find


def _step(match: re.Match[str]) -> Step:
    if match["field"] or match["quoted"]:
        return _field(match["quoted"] or re.sub(r"\\(.)", r"\1", match["field"]))
    if match["index"]:
        return _index(int(match["index"]))
    if match["slice"]:
        return _slice(*(int(part) if part else None for part in match["slice"].split(":")))
    if match["all"]:
        return _all
    return _where(compile_path("." + match["where"]), match["value"].strip("\"'"))


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(at: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= at < len(value):
            yield value[at]

    return step


def _slice(start: int | None, end: int | None) -> Step:
    def step(value: Any) -> Iterator[Any]:
        yield from value[start:end] if isinstance(value, list) else ()

    return step


def _all(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _where(path: Callable[[Any], list[Any]], wanted: str) -> Step:
    def plain(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    def step(value: Any) -> Iterator[Any]:
        items = value if isinstance(value, list) else []
        yield from (item for item in items if any(plain(one) == wanted for one in path(item)))

    return step
