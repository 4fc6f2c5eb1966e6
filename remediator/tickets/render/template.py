"""Templates of issues, in jinja2's sandbox: what others wrote is always a code span, and nothing can be called."""

import json
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, wraps
from importlib.resources import files
from typing import Any
from urllib.parse import quote_plus

import jinja2
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from remediator.tickets.render.markdown import code

FILTERS = (
    *("default", "dictsort", "first", "groupby", "int", "items", "join", "last", "length", "list", "lower", "map"),
    *(
        "max",
        "min",
        "reject",
        "rejectattr",
        "round",
        "select",
        "selectattr",
        "sort",
        "string",
        "sum",
        "title",
        "tojson",
    ),
    *("trim", "truncate", "unique", "upper", "urlencode"),
)
LAZY = ("items", "map", "reject", "rejectattr", "select", "selectattr", "unique")  # what they give is made a list
OURS: Mapping[str, Callable[[Any], str]] = {  # of alertmanager-to-github, by their names there
    "json": lambda value: json.dumps(value, ensure_ascii=False, default=str),
    "urlQueryEscape": lambda value: quote_plus(str(value)),
}
FUNCTION = "{} is a function, which has no text, and nothing can be called in a template"
SHIPPED_NAME = "the shipped template"


class Markdown(str):
    """Text of ours that is markdown already. What is made of it by a filter or an operator is plain text again."""

    __slots__ = ()


class BadTemplate(ValueError):
    """Why a template gives no text; `line` is counted from 1, 0 where nobody can tell."""

    def __init__(self, name: str, line: int, why: str) -> None:
        super().__init__(f"template {name}: {f'line {line}: ' if line else ''}{why}")


def _shown(value: object) -> str:
    """What a template prints: our markdown as it is, a number as a number, everything else as a code span.

    What has no letter is a dash that makes no list and no line. What could be called has no text but its address in
    memory, another one in each process.
    """
    if callable(value) and not isinstance(value, jinja2.Undefined):
        raise SecurityError(FUNCTION.format("this"))
    if isinstance(value, Markdown):
        return value
    if isinstance(value, int | float):
        return str(value)
    shown = code(str(value))
    return shown if shown.startswith("`") else "–"


class _Sandbox(ImmutableSandboxedEnvironment):
    """No loader, no globals, no methods, no numbers as big as one likes: an expression only reads what it is given."""

    intercepted_binops = frozenset(["*", "**", "%"])

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return super().is_safe_attribute(obj, attr, value) and not callable(value)

    def wrap_str_format(self, value: Any) -> None:
        """Nothing: `format` of a text is no more to be had than other functions."""

    def unsafe_undefined(self, obj: Any, attribute: str) -> jinja2.Undefined:
        if attribute.startswith("_"):
            return super().unsafe_undefined(obj, attribute)
        return self.undefined(FUNCTION.format(repr(attribute)), name=attribute, obj=obj, exc=SecurityError)

    def call(self, context: jinja2.runtime.Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        raise SecurityError("nothing can be called in a template")

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or not all(isinstance(side, int | float) for side in (left, right)):
            raise SecurityError(f"{operator} is for numbers only" if operator != "**" else "** is not allowed")
        return super().call_binop(context, operator, left, right)


def environment(finalize: Any) -> jinja2.Environment:
    """A sandbox whose expressions are printed by `finalize`."""
    made = _Sandbox(undefined=jinja2.StrictUndefined, finalize=finalize, trim_blocks=True, lstrip_blocks=True)
    made.globals.clear()
    given = {name: made.filters[name] for name in FILTERS}
    made.filters = {**given, **{name: _listed(given[name]) for name in LAZY}, **OURS}
    return made


def _listed(lazy: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A filter that gives a list: a generator would be printed as its address in memory."""

    @wraps(lazy)
    def whole(*args: Any, **kwargs: Any) -> list[Any]:
        return list(lazy(*args, **kwargs))

    return whole


@cache
def _environment() -> jinja2.Environment:
    return environment(_shown)


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """One template; one that does not compile says why when it is rendered. Two of the same text are equal."""

    name: str
    text: str
    compiled: jinja2.Template | BadTemplate = field(compare=False, repr=False)

    def render(self, values: Mapping[str, object]) -> str:
        """Raises BadTemplate."""
        if isinstance(self.compiled, BadTemplate):
            raise self.compiled
        try:
            return self.compiled.render(values)
        except Exception as error:  # whatever an expression raises is a mistake of this template
            raise BadTemplate(self.name, _line(error), _why(error)) from None


def template(name: str, text: str, sandbox: jinja2.Environment | None = None) -> TextTemplate:
    """A template of this text, whether it compiles or not."""
    try:
        return TextTemplate(name, text, (sandbox or _environment()).from_string(text))
    except jinja2.TemplateSyntaxError as error:
        return broken(name, _why(error), text, error.lineno)
    except Exception as error:  # compiling folds constants, which may raise anything, RecursionError too
        return broken(name, _why(error), text)


def broken(name: str, why: str, text: str = "", line: int = 0) -> TextTemplate:
    """One that gives no text, and says why."""
    return TextTemplate(name, text, BadTemplate(name, line, why))


def _line(error: BaseException) -> int:
    """The line of the template: jinja2 gives its frames the name <template>."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return (lines[-1] or 0) if lines else 0


def _why(error: BaseException) -> str:
    """In one line: a template may raise what it likes, and its text may be long."""
    return " ".join(f"{error or type(error).__name__}".split())[:300]


@cache
def shipped() -> TextTemplate:
    """The template that is used where a route names none, or one that gives no text."""
    return template(SHIPPED_NAME, files(__package__).joinpath("issue.md.j2").read_text("utf-8"))
