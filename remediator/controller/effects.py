"""The effects that a plan may contain: small idempotent values. Each one ends with Done, Retry or GaveUp."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remediator.core.case import Case, CaseEvent
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.kube.wire.client import Kind
from remediator.kube.wire.transport import MERGE_PATCH


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object; one of that name being there is success. `gated`: not while all new work is paused.

    A Pod is created in the namespace of operations; the other kinds have none.
    """

    kind: Kind[Any]
    body: Mapping[str, Any]
    gated: bool = False
    namespace: str = ""  # "": that of operations, where the kind has namespaces


@dataclass(frozen=True, slots=True)
class SaveCase:
    """Write a case's status, if `after` says anything new, under the version of `before`.

    `events_later`: the Events of what is new are left to `CreateEvents`.
    """

    before: Case
    after: Case
    events_later: bool = False

    @property
    def events(self) -> tuple[CaseEvent, ...]:
        """What is new in the timeline."""
        return tuple(event for event in self.after.timeline if event not in self.before.timeline)


@dataclass(frozen=True, slots=True)
class CreateEvents:
    """Create the Events of these entries of a case's timeline; losing one loses no knowledge."""

    case: Case
    events: tuple[CaseEvent, ...]


@dataclass(frozen=True, slots=True)
class SaveOperation:
    """Write an operation's status, the same way."""

    before: Operation
    after: Operation


@dataclass(frozen=True, slots=True)
class Patch:
    """Patch one object, by a merge patch unless `content_type` says otherwise; its being gone is success."""

    kind: Kind[Any]
    name: str
    body: Mapping[str, Any]
    namespace: str = ""
    subresource: str = ""
    content_type: str = MERGE_PATCH


@dataclass(frozen=True, slots=True)
class ChangeNode:
    """Change a node's marks: `change` gives the patch for the node as it is now, None where nothing is to be done.

    It is asked again with a live read after each conflict, so heartbeats that move the node do no harm. It gives Retry
    where the node is no longer what the decision was made about.
    """

    name: str
    change: "Callable[[Node], Mapping[str, Any] | Retry | None]"


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one object of this uid with its own grace; its being gone is success."""

    kind: Kind[Any]
    name: str
    uid: str
    namespace: str = ""


Effect = Create | SaveCase | CreateEvents | SaveOperation | Patch | ChangeNode | Delete
Plan = tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """It is as wanted now."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Not done now; try again after this many seconds."""

    after: float
    why: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The API server refuses it: repeating it is useless until something changes. Look again in `after` seconds."""

    why: str
    after: float = 60.0


EffectResult = Done | Retry | GaveUp
