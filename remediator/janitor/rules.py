"""The rules file: which objects have which time to live by what they are. kube-janitor's format. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import jmespath
import yaml
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.lexer import Lexer

from remediator.janitor.ttl import UnreadableTime, parse_ttl

KEYS = ("id", "resources", "jmespath", "ttl")
EVERY = "*"
CONTEXT = "_context"
IDENT = re.compile("[a-z][a-z0-9-]*")
FORM = "write rules: as a list, each with id, resources, jmespath and ttl"


class WrongRules(ValueError):
    """A rules file that cannot be taken; the message names all that is wrong, one line each."""


@dataclass(frozen=True, slots=True)
class JanitorRule:
    """One rule. `problem`: why its expression cannot be used, with the column; "" where it can."""

    id: str
    resources: frozenset[str]
    ttl: timedelta | None  # None is for ever
    expression: str
    problem: str = ""
    compiled: Any = None

    def concerns(self, plural: str) -> bool:
        """Whether it is about objects of this kind."""
        return EVERY in self.resources or plural in self.resources

    @property
    def asks_context(self) -> bool:
        """Whether its expression looks at `_context`."""
        return CONTEXT in self.expression


class RuleMatch(NamedTuple):
    """What the rules say of one object.

    `rule` is the first that matches, None for none. `ttl` is its own, or that of a rule before it of which nobody can
    tell whether it matches, where that is longer; None is for ever. `doubts` says of which rules it is this object that
    they cannot tell of; those that do not compile are told once for all.
    """

    rule: JanitorRule | None = None
    ttl: timedelta | None = None
    doubts: tuple[str, ...] = ()


def read(text: str) -> tuple[JanitorRule, ...]:
    """The rules of a file. Raises Wrong; a rule whose expression does not compile is there, with its problem."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise WrongRules(f"is no YAML ({' '.join(str(error).split())}); {FORM}") from None
    entries = content.get("rules") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise WrongRules(f"has no list rules; {FORM}")
    rules, wrong = [], []
    for index, entry in enumerate(entries):
        try:
            rules.append(_rule(entry))
        except WrongRules as error:
            wrong.append(f"rules[{index}]{error}")
    if wrong:
        raise WrongRules("\n".join(wrong))
    return tuple(rules)


def _rule(entry: Any) -> JanitorRule:
    if not isinstance(entry, dict):
        raise WrongRules(f" is no mapping; {FORM}")
    if missing := [key for key in KEYS if key not in entry]:
        raise WrongRules(f": {', '.join(missing)} missing; {FORM}")
    name, resources, expression, ttl = (entry[key] for key in KEYS)
    if not isinstance(name, str) or not IDENT.fullmatch(name):
        raise WrongRules(f".id {name!r}: write lower-case letters, digits and dashes, a letter first")
    if not isinstance(resources, list) or not resources or not all(isinstance(plural, str) for plural in resources):
        raise WrongRules(f".resources of {name}: write a list of plurals such as [deployments], or ['*']")
    if not isinstance(expression, str):
        raise WrongRules(f".jmespath of {name}: write an expression as text")
    try:
        lives = parse_ttl(str(ttl))
    except UnreadableTime as error:
        raise WrongRules(f".ttl of {name}: {error}") from None
    problem = _problem(expression)
    compiled = None if problem else jmespath.compile(expression)
    return JanitorRule(name, frozenset(resources), lives, expression, problem, compiled)


def _problem(expression: str) -> str:
    """Why an expression does not compile, with the place; "" where it does."""
    try:
        jmespath.compile(expression)
    except JMESPathError as error:
        at = getattr(error, "lex_position", None)
        why = next(iter(str(error).splitlines()), "").partition(": Parse error")[0]
        for words in ("Bad jmespath expression: ", "Invalid jmespath expression: "):
            why = why.removeprefix(words).rstrip(":")
        return f"{_place(expression, len(expression) if at is None else at)}: {why}"
    tokens = list(Lexer().tokenize(expression))
    for token, following in pairwise(tokens):
        called = token["type"] == "unquoted_identifier" and following["type"] == "lparen"
        if called and token["value"] not in Functions.FUNCTION_TABLE:
            return f"{_place(expression, token['start'])}: there is no function {token['value']}"
    return ""


def _place(expression: str, position: int) -> str:
    before = expression[:position]
    line, column = before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1
    return f"column {column}" if line == 1 else f"line {line}, column {column}"


def first_match(
    rules: Iterable[JanitorRule], plural: str, obj: Mapping[str, Any], context: Mapping[str, Any] | None
) -> RuleMatch:
    """What the rules say of an object; `context`: what they may ask as `_context`, None where nobody can tell."""
    floor: timedelta | None = timedelta()
    doubts: list[str] = []
    asked = {**obj, CONTEXT: context or {}}
    for rule in rules:
        if not rule.concerns(plural):
            continue
        matches = _matches(rule, asked, known=context is not None)
        if isinstance(matches, str):
            doubts += [] if rule.problem else [f"rule {rule.id}: {matches}"]
            floor = _longer(floor, rule.ttl)
        elif matches:
            return RuleMatch(rule, _longer(floor, rule.ttl), tuple(doubts))
    return RuleMatch(doubts=tuple(doubts))


def _matches(rule: JanitorRule, asked: Mapping[str, Any], *, known: bool) -> bool | str:
    """Whether it matches, or why nobody can tell."""
    if rule.compiled is None:
        return rule.problem
    if rule.asks_context and not known:
        return f"{CONTEXT} could not be read"
    try:
        return bool(rule.compiled.search(asked))
    except Exception as error:  # a library's function on data that nobody foresaw: it cannot tell
        return " ".join(str(error).split())[:200] or type(error).__name__


def _longer(ttl: timedelta | None, other: timedelta | None) -> timedelta | None:
    return None if ttl is None or other is None else max(ttl, other)
