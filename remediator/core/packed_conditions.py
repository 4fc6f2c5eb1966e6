"""The Conditions of one node in little memory: thousands of nodes say the same words, each at times of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from remediator.core.node import NodeCondition, Status

KINDS_OF_NODES = 256  # by the types of their Conditions
MOST_SHARED, LETTERS_SHARED = 256, 16384  # Conditions of a node that one object may serve, and letters in all of them


class ConditionWords(NamedTuple):
    """What a Condition says, without its times."""

    type: str
    status: Status
    reason: str
    message: str


class PackedConditions(Mapping[str, NodeCondition]):
    """The Conditions by type, each made when it is asked for: kept as such they take 3 KB a node."""

    __slots__ = ("_heartbeats", "_places", "_since", "_words")

    def __init__(
        self, words: tuple[ConditionWords, ...], since: Sequence[datetime], heartbeats: Sequence[datetime]
    ) -> None:
        """Of each type there may be one; all three are in one order."""
        types = tuple([each.type for each in words])
        self._places = _places(types) if shareable(types) else _places.__wrapped__(types)
        self._words, self._since, self._heartbeats = words, tuple(since), tuple(heartbeats)

    def __getitem__(self, type: str) -> NodeCondition:
        return self._at(self._places[type])

    def get(self, type: str, default: object = None) -> NodeCondition | None:  # type: ignore[override]
        """As of any mapping; that of `Mapping` costs an exception for each Condition that a node has not."""
        place = self._places.get(type)
        return default if place is None else self._at(place)  # type: ignore[return-value]

    def __contains__(self, type: object) -> bool:
        return type in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedConditions) and self._places is other._places:
            return self._since == other._since and _say_the_same(self._words, other._words)
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(dict(self))

    def _at(self, place: int) -> NodeCondition:
        condition = _new(NodeCondition)
        type, status, reason, message = self._words[place]
        _set_type(condition, type)
        _set_status(condition, status)
        _set_reason(condition, reason)
        _set_since(condition, self._since[place])
        _set_heartbeat(condition, self._heartbeats[place])
        _set_message(condition, message)
        return condition


# A frozen dataclass is made in three times the time that its slots take, and decisions ask for dozens of Conditions.
_new = object.__new__
_set_type, _set_status, _set_reason, _set_since, _set_heartbeat, _set_message = (
    vars(NodeCondition)[field.name].__set__ for field in fields(NodeCondition)
)


def _say_the_same(words: tuple[ConditionWords, ...], others: tuple[ConditionWords, ...]) -> bool:
    """But for messages, which a condition does not compare."""
    if words is others:  # as nearly always
        return True
    return all(each is other or each[:3] == other[:3] for each, other in zip(words, others, strict=True))


def shareable(parts: Sequence[str]) -> bool:
    """Whether it is so little that it may be kept: whoever may write the node may write ever new words, a MiB long."""
    return len(parts) <= MOST_SHARED and sum(map(len, parts)) <= LETTERS_SHARED


@lru_cache(KINDS_OF_NODES)
def _places(types: tuple[str, ...]) -> Mapping[str, int]:
    return {type: place for place, type in enumerate(types)}
