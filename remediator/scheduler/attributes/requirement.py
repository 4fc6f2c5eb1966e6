"""One requirement on an attribute, and whether a node meets it. "Cannot tell" is an answer of its own."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from remediator.scheduler.attributes.catalog import ATTRIBUTES, Attribute, NodeAttributes
from remediator.scheduler.attributes.values import READ, Value, like

MOST_VALUES = 16


class AttributeOperator(StrEnum):
    """How a fact is compared: the words of a node affinity, and two more."""

    GT = "Gt"
    GE = "Ge"
    LT = "Lt"
    LE = "Le"
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


ORDERING = frozenset({AttributeOperator.GT, AttributeOperator.GE, AttributeOperator.LT, AttributeOperator.LE})
BARE = frozenset({AttributeOperator.EXISTS, AttributeOperator.DOES_NOT_EXIST})


class Met(StrEnum):
    """Whether a node meets what is asked."""

    YES = "Yes"
    NO = "No"
    UNKNOWN = "Unknown"


class AttributeRequirement(NamedTuple):
    """What one attribute must be."""

    attribute: str
    operator: AttributeOperator
    values: tuple[Value, ...] = ()

    def met(self, facts: NodeAttributes, resource: str) -> Met:
        """By the GPUs of a node that this resource counts."""
        attribute = ATTRIBUTES[self.attribute]
        fact = facts.of(attribute, resource)
        if fact is not None:
            return Met.YES if _holds(fact, self.operator, self.values) else Met.NO
        if facts.lacks(attribute, resource):
            return Met.YES if self.operator in (AttributeOperator.NOT_IN, AttributeOperator.DOES_NOT_EXIST) else Met.NO
        return Met.UNKNOWN


def _holds(fact: Value, operator: AttributeOperator, values: tuple[Value, ...]) -> bool:
    match operator:
        case AttributeOperator.IN:
            return any(like(fact, value) for value in values)
        case AttributeOperator.NOT_IN:
            return not any(like(fact, value) for value in values)
        case AttributeOperator.EXISTS:
            return True
        case AttributeOperator.DOES_NOT_EXIST:
            return False
    (limit,) = values
    if operator in (AttributeOperator.GT, AttributeOperator.LE):  # of one kind, as `requirement` has made sure
        return (fact > limit) is (operator is AttributeOperator.GT)  # type: ignore[operator]
    return (fact < limit) is (operator is AttributeOperator.LT)  # type: ignore[operator]


def requirement(attribute: Attribute, operator: AttributeOperator, values: Iterable[str]) -> AttributeRequirement:
    """A requirement that can be judged. Raises ValueError with what does not fit, and what would."""
    read = tuple(dict.fromkeys(_value(attribute, value) for value in values))
    if operator in ORDERING and not attribute.kind.ordered:
        raise ValueError(f"{attribute.name} is a {attribute.kind} and is never more or less; use In or NotIn")
    if operator in BARE and read:
        raise ValueError(f"{operator} takes no value")
    if operator in ORDERING and len(read) != 1:
        raise ValueError(f"{operator} takes one value")
    if operator in (AttributeOperator.IN, AttributeOperator.NOT_IN) and not 1 <= len(read) <= MOST_VALUES:
        raise ValueError(f"{operator} takes 1 to {MOST_VALUES} values")
    return AttributeRequirement(attribute.name, operator, read)


def _value(attribute: Attribute, text: str) -> Value:
    try:
        return READ[attribute.kind](text)
    except ValueError as error:
        raise ValueError(f"{text[:40]!r} is {error}") from None
