"""The facts that the controller decides on, from the informers of the replica."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from remediator.core.absence import Absences
from remediator.core.breaker import Start, starts
from remediator.core.budget import Members, members
from remediator.core.case import Case
from remediator.core.node import Node
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer


class ClusterCache:
    """The informers that decisions rest on. Pods are keyed `namespace/name`, all else by name."""

    def __init__(self, informers: Informers) -> None:
        self.namespaces = informers.namespaces
        self.nodes = informers.nodes
        self.policies = informers.policies
        self.templates = informers.templates
        self.budgets = informers.budgets
        self.cases = informers.cases
        self.operations = informers.operations
        self.pods = informers.pods
        self.replicas = informers.replicas
        self.control_plane = informers.control_plane
        self.pause = informers.pause
        self._epoch = 0  # moves whenever a number of a budget may have: counting a fleet in each pass costs too much
        self._counted_for: object = None
        self._counted: dict[str, Members] = {}
        self.absences = Absences()  # when nobody could act
        self.silent: tuple[str, ...] = ()  # kinds whose watches have said nothing for long
        self.deleted_starts: frozenset[Start] = frozenset()  # those of cases that are not there any more
        self.nodes.on_view(self._on_node)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """All of them."""
        named = (self.nodes, self.policies, self.templates, self.budgets, self.cases, self.operations)
        return (*named, self.pods, self.replicas, self.control_plane, self.pause)

    @property
    def paused(self) -> bool:
        """Whether somebody stopped everything new, for admissions; before each Pod it is read live."""
        return any(pause.paused for pause in self.pause)

    def counted(self) -> Mapping[str, Members]:
        """The nodes that each budget counts, counted anew only when a node or a selector has moved."""
        ledgers = {ledger.name: ledger for ledger in self.budgets}
        selectors = {name: (ledger.selector, ledger.fallback) for name, ledger in ledgers.items()}
        if (self._epoch, selectors) != self._counted_for:
            nodes = list(self.nodes)  # nodes whose overlay has expired move the epoch while they are listed
            self._counted = {name: members(ledger, nodes, ledgers) for name, ledger in ledgers.items()}
            self._counted_for = (self._epoch, selectors)
        return self._counted

    def starts(self) -> list[datetime]:
        """All starts that the breaker of the fleet is asked about."""
        return [*starts(self.cases), *(start.at for start in self.deleted_starts)]

    def case(self, uid: str) -> Case | None:
        """The case of this uid."""
        return next(iter(self.cases.by("uid", uid)), None)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        if availability(old) != availability(new):
            self._epoch += 1


def availability(node: Node | None) -> tuple[object, ...]:
    """What the numbers of a budget depend on."""
    return (node.ready, node.unschedulable, node.kept_out, node.labels) if node else ()
