"""What GitHub's description says of one operation, found by method and path: its query, and the models of its bodies.

It is read as text from the client that is generated from that description (package githubkit-schemas-2022-11-28), which
has one function for each operation.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from textwrap import dedent
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)


class NotDescribed(LookupError):
    """GitHub has no such operation."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. Types are as the client writes them, such as `list[Label]`; "" without a body.

    `query`: the type of each parameter; `refusals`: the type of each error that the description lists, by its status.
    """

    query: Mapping[str, str]
    asks: str
    answers: str
    refusals: Mapping[int, str]

    def query_errors(self, query: Mapping[str, str]) -> list[str]:
        """What GitHub does not know of a query, and would ignore, or does not allow there."""
        wrong = (name for name, text in query.items() if not _fits(self.query.get(name), text))
        return [f"{name}={query[name]} in the query, which the description does not allow" for name in wrong]


def _fits(parameter: str | None, text: str) -> bool:
    if parameter is None:
        return False
    if "Literal[" in parameter:
        return text in re.findall(r"'([^']*)'", parameter)
    if "datetime" in parameter:
        return _is_time(text)
    return "int" not in parameter or text.isdigit()


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


@cache
def find(method: str, path: str) -> Operation:
    """The operation of a path with {} for each part that changes: `/repos/{}/{}/issues`. Raises NotDescribed."""
    url = re.compile(r"\n        url = f?" + re.escape(f'"{path}"\n').replace(r"\{\}", r"\{\w+\}"))
    for function in _functions():
        if f'"{method}",\n' in function and url.search(function):
            return _operation(ast.parse(dedent(f"    def {function}")))
    raise NotDescribed(f"{method} {path}")


@cache
def _functions() -> tuple[str, ...]:
    spec = PathFinder.find_spec("githubkit_schemas")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("githubkit-schemas-2022-11-28 is not installed: pip install 'remediator[sim]'")
    files = sorted(Path(spec.submodule_search_locations[0], "v2022_11_28", "rest").glob("*.py"))
    return tuple(function for file in files for function in _of_file(file.read_text()))


def _of_file(text: str) -> Iterator[str]:
    """Each function that waits for its answer, without its twin that does not."""
    return (re.split(r"\n    (?:async def |@)", function)[0] for function in text.split("\n    def ")[1:])


def _operation(function: ast.AST) -> Operation:
    types = {arg.arg: ast.unparse(arg.annotation) for arg in _each(function, ast.arg) if arg.annotation}
    assigned = {ast.unparse(node.targets[0]): node.value for node in _each(function, ast.Assign)}
    calls = {ast.unparse(call.func): call for call in _each(function, ast.Call)}
    reply = {keyword.arg: keyword.value for keyword in calls["self._github.request"].keywords}
    return Operation(
        query={ast.literal_eval(key): types[ast.unparse(value)] for key, value in _entries(assigned.get("params"))},
        asks=ast.unparse(calls["type_validate_python"].args[0]) if "type_validate_python" in calls else "",
        answers=ast.unparse(reply["response_model"]) if "response_model" in reply else "",
        refusals={int(ast.literal_eval(key)): ast.unparse(value) for key, value in _entries(reply.get("error_models"))},
    )


def _each(function: ast.AST, kind: type[Node]) -> Iterator[Node]:
    return (node for node in ast.walk(function) if isinstance(node, kind))


def _entries(written: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The entries of a dict as it is written; none where there is none."""
    if isinstance(written, ast.Dict):
        yield from ((key, value) for key, value in zip(written.keys, written.values, strict=True) if key is not None)
