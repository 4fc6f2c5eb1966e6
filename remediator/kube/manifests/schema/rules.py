"""Which CEL rules of a schema an object violates. Rules about parts that did not change are not evaluated again."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from remediator.kube.manifests.schema.cel import CelValidation, Unanswered
from remediator.kube.manifests.schema.node import ABSENT, SchemaNode
from remediator.kube.manifests.schema.typed import typed
from remediator.kube.manifests.schema.values import below

MOST_ANSWERS = 128  # that are remembered of one place of a schema
UNCHANGED = "self == oldSelf"  # the rule that needs no evaluation where nothing has changed


class Broken(NamedTuple):
    """One rule that does not hold for `value`, which lies at `place`; `path` is the field that the rule blames.

    `reason` is the machine word that the rule chose, `message` its words. A rule that could not be evaluated does not
    hold either: it is not `answered`, and the message says why.
    """

    path: str
    place: str
    value: Any
    reason: str
    message: str
    answered: bool = True


def broken(value: Any, node: SchemaNode, old: Any = ABSENT, path: str = "") -> Iterator[Broken]:
    """Every rule that `value` breaks; rules that compare with the old value are asked only where there is one.

    Values of another type than their schema wants are passed over, with all below them.
    """
    unchanged = old is not ABSENT and old == value
    if value is None or not node.ruled or (unchanged and not node.transitions) or not node.takes(value):
        return
    asked = [rule for rule in node.rules if (old is not ABSENT if rule.transition else not unchanged)]
    asked = [rule for rule in asked if not (unchanged and rule.text == UNCHANGED)]
    yield from _asked(asked, value, node, old, path)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key, item in value.items():
            known = node.child(key)
            if known is not None and known.ruled:
                place = f"{path}[{key}]" if known is node.additional else below(path, key)
                yield from broken(item, known, before.get(key, ABSENT), place)
    elif isinstance(value, list) and node.items is not None:
        for at, item in enumerate(value):
            yield from broken(item, node.items, node.predecessor(item, old), below(path, at))


def _asked(rules: Sequence[CelValidation], value: Any, node: SchemaNode, old: Any, path: str) -> Iterator[Broken]:
    for rule in rules:
        answer = _remembered(rule, rule.seen(value), node, ABSENT if old is ABSENT else rule.seen(old))
        if answer.why is not None:
            blamed = (path + rule.field_path).lstrip(".") if answer.read else path
            yield Broken(blamed, path, value, rule.reason, answer.why, answer.evaluated)


class RuleAnswer(NamedTuple):
    """Why a rule does not hold, None where it does; whether its value could be read, and the rule evaluated."""

    why: str | None
    read: bool = True
    evaluated: bool = True


def _remembered(rule: CelValidation, value: Any, node: SchemaNode, old: Any) -> RuleAnswer:
    """The same values are written again and again, and celpy takes its time: what was answered once is remembered."""
    try:
        key = json.dumps([rule.text, value, None if old is ABSENT else [old]])
    except (TypeError, ValueError):  # of YAML, which has more types
        return _answer(rule, value, node, old)
    if key not in node.answers:
        if len(node.answers) >= MOST_ANSWERS:
            node.answers.clear()
        node.answers[key] = _answer(rule, value, node, old)
    answer: RuleAnswer = node.answers[key]
    return answer


def _answer(rule: CelValidation, value: Any, node: SchemaNode, old: Any) -> RuleAnswer:
    try:
        values = {"self": typed(value, node)} | ({} if old is ABSENT else {"oldSelf": typed(old, node)})
    except (TypeError, ValueError) as error:
        return RuleAnswer(f"rule evaluation error: {error}", read=False, evaluated=False)
    try:
        return RuleAnswer(rule.broken(values))
    except Unanswered as error:
        return RuleAnswer(str(error), evaluated=False)
