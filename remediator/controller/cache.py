"""The facts that the controller decides on, from the informers of the replica."""

from collections.abc import Callable, Iterator, Mapping, Set
from copy import copy
from datetime import datetime
from typing import Any, TypeVar

from remediator.controller.bundle_store import BundleStore
from remediator.controller.node_index import NodeIndex
from remediator.controller.places import NodeCounts, PlaceCounts, Uncounted
from remediator.controller.spare import SpareCounts
from remediator.controller.zones import ZoneCounts
from remediator.core import manual, new_node
from remediator.core.absence import APART, Absences
from remediator.core.breaker import DisruptiveStart, starts
from remediator.core.budget import Budget
from remediator.core.case import Case
from remediator.core.census import BudgetSnapshot
from remediator.core.covers import Covers
from remediator.core.idle import Work
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.places import SHIPPED, ApiNodes
from remediator.core.policy import Policy
from remediator.core.spare import SpareGpus
from remediator.core.template import Template
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer
from remediator.kube.runtime.subset import Subset

T = TypeVar("T")


class ClusterCache:
    """The informers that decisions rest on. Pods are keyed `namespace/name`, all else by name."""

    def __init__(self, informers: Informers, api_nodes: ApiNodes = SHIPPED, *, spare: bool = False) -> None:
        """`api_nodes`: where Pods with rights in the API may run. `spare`: count free GPUs by all Pods, too."""
        self.whole = informers.whole
        self.namespaces = informers.namespaces
        self.nodes = informers.nodes
        self.policies = informers.policies
        self.templates = informers.templates
        self.budgets = informers.budgets
        self.cases = informers.cases
        self.operations = informers.operations
        self.inventories = informers.inventories
        self.pods = informers.pods
        self.replicas = informers.replicas
        self.control_plane = informers.control_plane
        self.pause = informers.pause
        self.unfinished = Subset(self.cases, lambda case: case.open or case.finalizer, _name)
        self.ended = EndedCases(self.cases)
        self.memory = informers.fault_memory
        self.unfinished_operations = Subset(self.operations, _goes_on, _name)
        self.marked = Subset(self.nodes, lambda node: node.marks or node.degraded, _name)
        self.entries = LedgerEntries(self.budgets)
        self.moved = 0  # how often a case or a policy has: what rests on nothing else is made once for many passes
        self.cases.on_view(self._count)
        self.policies.on_view(self._count)
        self._covers: Covers | None = None
        self._by_template: dict[str, dict[str, Any]] = {}
        self.templates.on_view(self._forget_covers)
        self.places: NodeCounts = PlaceCounts(self.nodes, api_nodes) if self.whole else Uncounted(api_nodes)
        self.zones = ZoneCounts(self.nodes)
        self._spare = SpareCounts(self.nodes, informers.gpu_pods) if spare else None
        self.nodes_by = NodeIndex(self.nodes, self.budgets, self.policies)
        named = (self.nodes, self.policies, self.templates, self.budgets, self.cases, self.operations, self.inventories)
        hosted = (self.pods, self.replicas, self.control_plane)
        self.informers: tuple[Informer[Any], ...] = (*named, *hosted, self.pause)
        self.absences = Absences()  # when nobody could act
        self.silent: tuple[str, ...] = ()  # kinds whose watches have said nothing for long
        self.working: dict[str, Work] = {}  # by uid of a case: what works on its node, as a look at it has shown
        self.leases_untaken: dict[str, str] = {}  # by node: why its Lease could not be taken
        self.lease_holders: dict[str, str] = {}  # by node: another system that holds its Lease, as the last look showed
        self.bundle_store: BundleStore | None = None  # where bundles of evidence go; None: they stay on their nodes
        self.blast: dict[str, BlastRadius] = {}  # by node: what its repair would end, as a look at it has shown
        self.deleted_starts: frozenset[DisruptiveStart] = frozenset()  # those of cases that are not there any more

    @property
    def paused(self) -> bool:
        """Whether somebody stopped everything new, as the watch tells; before claims and each Pod it is read live."""
        return any(pause.paused for pause in self.pause)

    @property
    def leaving(self) -> bool:
        """Whether nodes are given back before Remediator is taken away: what goes on comes to its end, also late."""
        return any(pause.leaving for pause in self.pause)

    @property
    def spare(self) -> SpareGpus | None:
        """Which GPUs are free on nodes that take Pods; None where that is not known here."""
        return self._spare.now if self._spare else None

    def ledgers(self) -> BudgetSnapshot:
        """All budgets with the nodes that each counts, as they are now."""
        budgets = {ledger.name: ledger for ledger in self.budgets}
        return BudgetSnapshot(budgets, self.nodes_by.members(), self.nodes_by.index)

    def cases_since(self, when: datetime) -> Iterator[Case]:
        """Those that are not over, and those that have ended since: only they may have done anything since."""
        yield from self.unfinished
        yield from (case for case in self.ended.since(when - APART) if not case.finalizer)

    def starts(self, since: datetime) -> list[DisruptiveStart]:
        """The starts of the fleet that lie no further back, and some that do.

        A case in a ledger that does not say yet that it holds its node counts since it was entered; so does one that
        nobody knows here: another leader may have opened it, whom we have not heard of.
        """
        return [*starts(self.cases_since(since)), *self.deleted_starts, *self._unrecorded()]

    def _unrecorded(self) -> Iterator[DisruptiveStart]:
        deleted = {start.case for start in self.deleted_starts}
        for uid in self.entries:
            case, since = self.case(uid), self.entries.since(uid)
            counts = uid not in deleted if case is None else case.open and not case.claimed
            if counts and since is not None:
                yield DisruptiveStart(since, uid, case.node if case else "")

    @property
    def covers(self) -> Covers:
        """What each template covers; made once for each state of the templates."""
        self.templates.settle()
        if self._covers is None:
            self._covers = {template.name: template.covers for template in self.templates if template.covers}
        return self._covers

    def by_template(self, what: str, of: Callable[[Template], T]) -> Mapping[str, T]:
        """`of` each template, by its name, which may rest on templates alone: made once for each state of them."""
        self.templates.settle()
        if what not in self._by_template:
            self._by_template[what] = {template.name: of(template) for template in self.templates}
        return self._by_template[what]

    def _forget_covers(self, *_: object) -> None:
        self._covers = None
        self._by_template.clear()

    def _count(self, *_: object) -> None:
        self.moved += 1

    def beside_leader(self, absences: Absences) -> "ClusterCache":
        """The same facts for whoever explains beside the replica that leads: a case is held by what its status says."""
        shown = copy(self)
        shown.whole, shown.absences = False, absences
        return shown

    def policy_of(self, case: Case) -> Policy | None:
        """What rules a case: its policy, or what takes the place of one where a user asks for it."""
        return new_node.ruling(case, manual.policy(case.manual) if case.manual else self.policies.get(case.policy))

    def has_open_case(self, node: str) -> bool:
        """Whether a case of the node is open."""
        return any(case.open for case in self.cases.by("node", node))

    def case(self, uid: str) -> Case | None:
        """The case of this uid."""
        return next(iter(self.cases.by("uid", uid)), None)


def _name(fact: Case | Node | Operation) -> str:
    return fact.name


def _goes_on(operation: Operation) -> bool:
    return operation.finished is None or operation.deleting


class EndedCases:
    """The cases that have ended, by the hour."""

    def __init__(self, cases: Informer[Case]) -> None:
        self._cases = cases
        self._by_hour: dict[datetime, dict[str, None]] = {}
        cases.on_view(self._moved)

    def since(self, when: datetime) -> Iterator[Case]:
        """Those that ended then or later."""
        self._cases.settle()
        first = _hour(when)
        names = [name for hour, names in self._by_hour.items() if hour >= first for name in names]
        cases = (self._cases.get(name) for name in names)
        return (case for case in cases if case is not None and case.ended is not None and case.ended >= when)

    def _moved(self, old: Case | None, new: Case | None) -> None:
        if old is not None and old.ended is not None:
            names = self._by_hour.get(_hour(old.ended), {})
            names.pop(old.name, None)
            if not names:
                self._by_hour.pop(_hour(old.ended), None)
        if new is not None and new.ended is not None:
            self._by_hour.setdefault(_hour(new.ended), {})[new.name] = None


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


class LedgerEntries:
    """Which budgets hold an entry of which case."""

    def __init__(self, budgets: Informer[Budget]) -> None:
        self._budgets = budgets
        self._by_case: dict[str, dict[str, datetime]] = {}  # since when, by the name of the budget
        budgets.on_view(self._moved)

    def __iter__(self) -> Iterator[str]:
        """The uids of all cases with an entry."""
        self._budgets.settle()
        return iter(tuple(self._by_case))

    def of(self, uid: str) -> Set[str]:
        """The budgets that hold an entry of this case."""
        self._budgets.settle()
        return self._by_case.get(uid, {}).keys()

    def since(self, uid: str) -> datetime | None:
        """When the first of the entries of this case was made; None where it has none."""
        self._budgets.settle()
        return min(self._by_case.get(uid, {}).values(), default=None)

    def _moved(self, old: Budget | None, new: Budget | None) -> None:
        budget = new or old
        if budget is None:
            return
        before, after = _since(old), _since(new)
        for uid in before.keys() - after.keys():
            entries = self._by_case[uid]
            entries.pop(budget.name, None)
            if not entries:
                del self._by_case[uid]
        for uid, since in after.items():
            if before.get(uid) != since:
                self._by_case.setdefault(uid, {})[budget.name] = since


def _since(budget: Budget | None) -> dict[str, datetime]:
    return {claim.case: claim.since for claim in budget.claims} if budget else {}
