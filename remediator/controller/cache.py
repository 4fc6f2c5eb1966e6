"""What the controller knows: facts from the reflectors, with our own writes visible at once.

A decision must be visible in the state that the next decision reads. A reply to one of our writes is therefore kept
over the reflector's copy until the reflector has caught up with it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from remediator.core.budget import Budget, Members, members
from remediator.core.case import Case, Operation
from remediator.core.names import Namespaces
from remediator.core.node import Node
from remediator.core.pod import Pod
from remediator.core.policy import Policy, Template


class Fact(Protocol):
    """What every fact carries."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...


F = TypeVar("F", bound=Fact)
OVERLAY_SECONDS = 2.0


class Store(Generic[F]):
    """The facts of one kind, by name. `fields` name what else they are looked up by.

    Those never change while an object lives; a namesake that came later is told apart when looked up.
    """

    def __init__(self, monotonic: Callable[[], float], *fields: str) -> None:
        self._base: Mapping[str, F] = {}
        self._written: dict[str, tuple[F, float]] = {}
        self._monotonic = monotonic
        self._index: dict[str, defaultdict[str, set[str]]] = {field: defaultdict(set) for field in fields}

    def attach(self, base: Mapping[str, F]) -> None:
        """Read from this reflector's store from now on."""
        self._base = base

    def changed(self, key: str, old: F | None, new: F | None) -> None:
        """What the reflector says has happened."""
        written = self._written.get(key)
        if written and (new is None or _reaches(new.version, written[0].version)):
            del self._written[key]
        if new is not None:
            self._enter(key, new)
        elif old is not None:
            self._leave(key, old)

    def note(self, key: str, fact: F) -> None:
        """What the server answered to a write of ours, or to a live read."""
        self._written[key] = (fact, self._monotonic() + OVERLAY_SECONDS)
        self._enter(key, fact)

    def get(self, key: str) -> F | None:
        """The newest we know of one object."""
        written = self._written.get(key)
        if written is None:
            return self._base.get(key)
        fact, until = written
        base = self._base.get(key)
        if self._monotonic() > until or (base is not None and _reaches(base.version, fact.version)):
            del self._written[key]
            return base
        return fact

    def by(self, field: str, value: str) -> list[F]:
        """The facts whose `field` has this value, by name."""
        facts = (self.get(key) for key in sorted(self._index[field].get(value, ())))
        return [fact for fact in facts if fact is not None and getattr(fact, field) == value]

    def __iter__(self) -> Iterator[F]:
        keys = [*self._base, *(key for key in self._written if key not in self._base)]
        return (fact for key in keys if (fact := self.get(key)) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _enter(self, key: str, fact: Any) -> None:
        for field, index in self._index.items():
            index[getattr(fact, field)].add(key)

    def _leave(self, key: str, fact: Any) -> None:
        for field, index in self._index.items():
            index[getattr(fact, field)].discard(key)


def _reaches(version: str, other: str) -> bool:
    """Whether a version is the other or newer.

    Equality alone would not do: heartbeats move a node past our write before anybody looks, and then the write would
    hide what came after it. Versions of one kind are ordered integers wherever both are decimal; others have no order.
    """
    if version.isdecimal() and other.isdecimal():
        return int(version) >= int(other)
    return version == other


class Nodes(Store[Node]):
    """Nodes. `epoch` moves whenever a number of a budget may have: counting a fleet in each pass costs too much."""

    epoch = 0

    def changed(self, key: str, old: Node | None, new: Node | None) -> None:
        """What the reflector says has happened."""
        super().changed(key, old, new)
        self._moved(old, new)

    def note(self, key: str, fact: Node) -> None:
        """What the server answered."""
        before = self.get(key)
        super().note(key, fact)
        self._moved(before, fact)

    def get(self, key: str) -> Node | None:
        """The newest we know of one node."""
        written = self._written.get(key)
        found = super().get(key)
        if written is not None and key not in self._written:
            self._moved(written[0], found)
        return found

    def _moved(self, old: Node | None, new: Node | None) -> None:
        if availability(old) != availability(new):
            self.epoch += 1


def availability(node: Node | None) -> tuple[object, ...]:
    """What the numbers of a budget depend on."""
    return (node.ready, node.unschedulable, node.labels) if node else ()


class ClusterCache:
    """All stores. Pods are keyed `namespace/name`, all else by name."""

    def __init__(self, monotonic: Callable[[], float], namespaces: Namespaces | None = None) -> None:
        self.namespaces = namespaces or Namespaces()
        self.nodes = Nodes(monotonic)
        self.paused = False
        self._counted_for: object = None
        self._counted: dict[str, Members] = {}
        self.policies: Store[Policy] = Store(monotonic)
        self.templates: Store[Template] = Store(monotonic)
        self.budgets: Store[Budget] = Store(monotonic)
        self.cases: Store[Case] = Store(monotonic, "node", "uid")
        self.operations: Store[Operation] = Store(monotonic, "case_uid", "uid")
        self.pods: Store[Pod] = Store(monotonic, "case_uid", "operation_uid")
        self.replicas: Store[Pod] = Store(monotonic)

    def counted(self) -> Mapping[str, Members]:
        """The nodes that each budget counts, counted anew only when a node or a selector has moved."""
        ledgers = {ledger.name: ledger for ledger in self.budgets}
        now = (self.nodes.epoch, {name: (ledger.selector, ledger.fallback) for name, ledger in ledgers.items()})
        if now != self._counted_for:
            nodes = list(self.nodes)
            self._counted = {name: members(ledger, nodes, ledgers) for name, ledger in ledgers.items()}
            self._counted_for = (self.nodes.epoch, now[1])
        return self._counted

    def case(self, uid: str) -> Case | None:
        """The case of this uid."""
        return next(iter(self.cases.by("uid", uid)), None)
