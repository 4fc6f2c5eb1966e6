"""Which nodes share a domain, such as an NVLink fabric, a rack or a zone, by labels of nodes."""

from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from remediator.core.node import Node


class Domain(NamedTuple):
    """The nodes with one value of one label. `level`: 1 for the widest kind, more for narrower ones."""

    level: int
    value: str


class Topology:
    """Follows nodes. `labels`: from the narrowest domain to the widest."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.version = 0  # how often a node has come to another domain
        self._levels = [(len(labels) - index, label) for index, label in enumerate(labels)]
        self._of_node: dict[str, tuple[Domain, ...]] = {}
        self._members: dict[Domain, dict[str, None]] = {}

    @property
    def levels(self) -> int:
        """How many kinds of domains there are."""
        return len(self._levels)

    def moved(self, old: Node | None, new: Node | None) -> None:
        """A node as it was, and as it is now."""
        node = new or old
        if node is None:
            return
        domains = tuple(self._domains(new)) if new is not None else ()
        before = self._of_node.get(node.name, ())
        if domains == before:
            return
        self.version += 1
        for domain in before:
            del self._members[domain][node.name]
            if not self._members[domain]:
                del self._members[domain]
        for domain in domains:
            self._members.setdefault(domain, {})[node.name] = None
        self._of_node[node.name] = domains
        if not domains:
            self._of_node.pop(node.name)

    def of(self, node: str) -> tuple[Domain, ...]:
        """The domains of a node, the narrowest first."""
        return self._of_node.get(node, ())

    def members(self, domain: Domain) -> Set[str]:
        """The nodes of a domain."""
        return self._members.get(domain, {}).keys()

    def domains(self) -> Iterable[tuple[Domain, Iterable[str]]]:
        """All domains with their nodes."""
        return self._members.items()

    def _domains(self, node: Node) -> Iterable[Domain]:
        return (
            Domain(level, f"{label}={node.labels[label]}") for level, label in self._levels if node.labels.get(label)
        )
