"""What admission asks of the annotation gpu-affinity, in regular expressions: CEL reads no JSON, nor calls our parser.

Written for RE2 and for Python. The text is held to a shape, then each requirement in it to rules. JSON with escapes is
refused, and so is a field that stands twice; the requirements and values are not counted.
"""

from typing import NamedTuple

from remediator.scheduler.attributes.pattern import VALUES, names_pattern
from remediator.scheduler.attributes.requirement import BARE, ORDERING, AttributeOperator
from remediator.scheduler.attributes.values import ValueKind

_S = r"[ \t\n\r]*"  # between the parts of JSON
_KEY, _OPERATOR, _VALUES = (f'"{field}"{_S}:{_S}' for field in ("key", "operator", "values"))
_NEVER = r"^[^{]"  # no requirement begins so
_WORD = r'"[^"\\{}\[\]]*"'
_NONE = rf"^[^\[]*$|\[{_S}\]"  # no values, or an empty list of them
REQUIREMENT = rf'\{{{_S}"(key|operator|values)"[^{{}}]*\}}'
TWICE = "|".join(rf'"{field}"{_S}:[\s\S]*"{field}"{_S}:' for field in ("required", "preferred"))


class AdmissionRule(NamedTuple):
    """A requirement in which the first is found must have the second, too."""

    where: str
    has: str


def shape() -> str:
    """From the first character of an affinity to the last."""
    some = rf'"(required|preferred)"{_S}:{_S}\[{_S}({REQUIREMENT}({_S},{_S}{REQUIREMENT})*)?{_S}\]'
    return rf"^{_S}\{{{_S}({some}({_S},{_S}{some})*)?{_S}\}}{_S}$"


def rules() -> tuple[AdmissionRule, ...]:
    """Of each requirement."""
    operators = "|".join(AttributeOperator)
    member = (
        rf'({_KEY}"({names_pattern(*ValueKind)})"|{_OPERATOR}"({operators})"'
        rf"|{_VALUES}\[{_S}({_WORD}({_S},{_S}{_WORD})*)?{_S}\])"
    )
    ordered = names_pattern(*(kind for kind in ValueKind if kind.ordered))
    return (
        AdmissionRule("", rf"^\{{{_S}{member}({_S},{_S}{member})*{_S}\}}$"),
        AdmissionRule("", _KEY),
        AdmissionRule("", _OPERATOR),
        AdmissionRule(_any_of(BARE), _NONE),
        AdmissionRule(_any_of(frozenset(AttributeOperator) - BARE), rf'{_VALUES}\[{_S}"'),
        AdmissionRule(_any_of(ORDERING), rf"{_VALUES}\[{_S}{_WORD}{_S}\]"),
        AdmissionRule(_any_of(ORDERING), rf'{_KEY}"({ordered})"'),
        *(AdmissionRule(rf"{field}[\s\S]*{field}", _NEVER) for field in (_KEY, _OPERATOR, _VALUES)),
        *(_of(kind) for kind in ValueKind),
    )


def _any_of(operators: frozenset[AttributeOperator]) -> str:
    return rf'{_OPERATOR}"({"|".join(each for each in AttributeOperator if each in operators)})"'


def _of(kind: ValueKind) -> AdmissionRule:
    """Values are of the kind of their attribute."""
    value = rf'"({VALUES[kind]})"'
    return AdmissionRule(
        rf'{_KEY}"({names_pattern(kind)})"', rf"{_NONE}|{_VALUES}\[{_S}{value}({_S},{_S}{value})*{_S}\]"
    )
