"""All that the annotations of one Pod ask of GPUs: as lines, or in the form of a node affinity."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

import msgspec

from remediator.core.names import GPU, GPU_AFFINITY, GPU_PREFERRED
from remediator.scheduler.attributes import expression
from remediator.scheduler.attributes.catalog import WHOLE, NodeAttributes, attribute
from remediator.scheduler.attributes.requirement import AttributeOperator, AttributeRequirement, Met, requirement

T = TypeVar("T")
LONGEST = 8192  # characters of the affinity
MOST_WORDS = 300  # characters of a mistake: an event has room for a thousand


class AffinityRow(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One requirement of an affinity."""

    key: str
    operator: AttributeOperator
    values: tuple[str, ...] = ()


class Affinity(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The form of NVIDIA's fork of Kubernetes."""

    required: tuple[AffinityRow, ...] = ()
    preferred: tuple[AffinityRow, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class AttributeSelector:
    """What GPUs must be, and should be. With a `mistake` nothing else stands in it.

    Pods that ask for the same share one, so that it and the answers for thousands of nodes are found at once.
    """

    required: tuple[AttributeRequirement, ...] = ()
    preferred: tuple[AttributeRequirement, ...] = ()
    mistake: str = ""

    def met(self, facts: NodeAttributes, resources: tuple[str, ...]) -> Met:
        """Whether the GPUs of a node that these resources count meet all that is required."""
        return _judged(self, facts, resources).required

    @property
    def must(self) -> "AttributeSelector":
        """The same without its preferences."""
        return _shared(self.required, (), self.mistake)

    def liked(self, facts: NodeAttributes, resources: tuple[str, ...]) -> int:
        """How many of the preferences are met."""
        return _judged(self, facts, resources).preferred


class _SelectorAnswer(NamedTuple):
    required: Met
    preferred: int


@lru_cache(maxsize=4096)
def _judged(asked: AttributeSelector, facts: NodeAttributes, resources: tuple[str, ...]) -> _SelectorAnswer:
    kinds = resources or (WHOLE,)
    answers = {row.met(facts, kind) for row in asked.required for kind in kinds}
    required = next((answer for answer in (Met.NO, Met.UNKNOWN) if answer in answers), Met.YES)
    return _SelectorAnswer(
        required, sum(all(row.met(facts, kind) is Met.YES for kind in kinds) for row in asked.preferred)
    )


@lru_cache(maxsize=1024)
def _shared(
    required: tuple[AttributeRequirement, ...], preferred: tuple[AttributeRequirement, ...], mistake: str
) -> AttributeSelector:
    return AttributeSelector(required, preferred, mistake)


ANYTHING = _shared((), (), "")
_AFFINITY = msgspec.json.Decoder(Affinity)


def selector(required: str | None, preferred: str | None, affinity: str | None) -> AttributeSelector:
    """What three annotations ask for together; None of one that is not there.

    A mistake names the annotation and the place. It holds no comma, since kube-scheduler joins texts with commas. Of
    what is too long nothing is kept: Kubernetes lets annotations have 256 KiB, and anybody may write them.
    """
    lines = expression.LONGEST
    for name, text, most in (
        (GPU_AFFINITY, affinity, LONGEST),
        (GPU, required, lines),
        (GPU_PREFERRED, preferred, lines),
    ):
        if text is not None and len(text) > most:
            return malformed(f"{name}: longer than {most} characters")
    return _selector(required, preferred, affinity)


@lru_cache(maxsize=1024)
def _selector(required: str | None, preferred: str | None, affinity: str | None) -> AttributeSelector:
    try:
        both = _read(GPU_AFFINITY, affinity, _affinity) if affinity is not None else ANYTHING
        must = _read(GPU, required, expression.parse) if required is not None else ()
        should = _read(GPU_PREFERRED, preferred, expression.parse) if preferred is not None else ()
    except ValueError as error:
        return malformed(str(error))
    all_of, some_of = _sorted(both.required + must), _sorted(both.preferred + should)
    return _shared(all_of, some_of, "") if all_of or some_of else ANYTHING


def malformed(mistake: str) -> AttributeSelector:
    """What a Pod asks for of which an annotation cannot be read: nothing that a node could meet."""
    return _shared((), (), mistake[:MOST_WORDS].replace(",", ";"))


def _read(name: str, text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: {error}") from error


def _sorted(rows: Iterable[AttributeRequirement]) -> tuple[AttributeRequirement, ...]:
    """Each once, so that Pods that ask for the same have the same."""
    return tuple(sorted(set(rows), key=repr))


def _affinity(text: str) -> AttributeSelector:
    sent = _AFFINITY.decode(text)
    json.loads(text, object_pairs_hook=_each_once)
    return AttributeSelector(_rows("required", sent.required), _rows("preferred", sent.preferred))


def _each_once(pairs: list[tuple[str, object]]) -> None:
    """Of a field that stands twice a decoder takes one, and nobody is told of the other. Raises ValueError for it."""
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the field `{twice}` stands twice in one object; write it once")


def _rows(field: str, rows: tuple[AffinityRow, ...]) -> tuple[AttributeRequirement, ...]:
    if len(rows) > expression.MOST:
        raise ValueError(f"{field}: more than {expression.MOST} requirements")
    return tuple(_row(f"{field}[{index}]", row) for index, row in enumerate(rows))


def _row(place: str, row: AffinityRow) -> AttributeRequirement:
    try:
        wanted = attribute(row.key)
    except ValueError as error:
        raise ValueError(f"{place}.key: {row.key[:40]!r} is {error}") from None
    try:
        return requirement(wanted, row.operator, row.values)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
