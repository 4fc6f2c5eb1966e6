"""What passes ask of all nodes, kept node by node: what each budget counts, and which nodes show a condition."""

import asyncio
from collections.abc import Iterator, Mapping

from remediator.core import new_node
from remediator.core.account import Members
from remediator.core.budget import Budget
from remediator.core.census import BudgetIndex, Census
from remediator.core.new_criteria import asked
from remediator.core.node import Node, Status
from remediator.core.policy import Policy
from remediator.kube.runtime.informer import Informer

SLICE = 200  # nodes between two turns of the loop
ROUNDS = 3  # how often all nodes are counted anew, in slices, while users go on to change what is asked of them
Shown = tuple[str, Status]  # type and status of a condition


class _Index:
    """Both, for the selectors and conditions of one moment."""

    def __init__(self, budgets: Informer[Budget], policies: Informer[Policy]) -> None:
        self.census, self._gates = Census(budgets), new_node.taints_of(policies)
        self.showing: dict[Shown, dict[str, None]] = {shown: {} for policy in policies for shown in _asked(policy)}

    def put(self, name: str, old: Node | None, new: Node | None) -> None:
        """A node is another now; `old` is what is known of it here, None for nothing."""
        before, after = self._counted(old), self._counted(new)
        if before is None or after is None or availability(before) != availability(after):
            self.census.put(name, after)
        if old is not None:
            for shown in self._shown(old):
                self.showing[shown].pop(name, None)
        if new is not None:
            for shown in self._shown(new):
                self.showing[shown][name] = None

    def _counted(self, node: Node | None) -> Node | None:
        """The node, unless it is a new one: what has never worked is neither there to be missed nor missed."""
        return None if node is None or not self._gates.isdisjoint(node.gates) else node

    def _shown(self, node: Node) -> Iterator[Shown]:
        conditions = node.conditions
        for shown in self.showing:
            condition = conditions.get(shown[0])
            if condition is not None and condition.status is shown[1]:
                yield shown


class NodeIndex:
    """Follows nodes; where what is asked of them changes, it is made anew, a slice of nodes at a time."""

    def __init__(self, nodes: Informer[Node], budgets: Informer[Budget], policies: Informer[Policy]) -> None:
        self._nodes, self._budgets, self._policies = nodes, budgets, policies
        self._index = _Index(budgets, policies)
        self._next: _Index | None = None
        self._known: set[str] = set()  # nodes that `_next` has already
        self._stale, self._refreshing = True, asyncio.Lock()
        self._members: Mapping[str, Members] | None = None
        nodes.on_view(self._on_node)
        budgets.on_view(self._on_budget)
        policies.on_view(self._on_policy)

    async def refresh(self) -> None:
        """Bring it up to date with what is asked of nodes; others run in between, and who asks for the same waits.

        Where users change that faster than all nodes can be counted, the wait has an end: who reads it then counts them
        in one turn.
        """
        async with self._refreshing:
            for _ in range(ROUNDS):
                if not self._stale:
                    return
                for _ in self._renewed():
                    await asyncio.sleep(0)

    def members(self) -> Mapping[str, Members]:
        """What each budget counts, by its name; the same object while no number has moved."""
        self._settle()
        if self._members is None:
            self._members = self._index.census.members()
        return self._members

    @property
    def index(self) -> BudgetIndex:
        """Which budgets are over a node."""
        self._settle()
        return self._index.census.index

    def showing(self, shown: Shown) -> list[str]:
        """The names of the nodes whose condition has this status, of those that policies compare nodes by."""
        self._settle()
        return list(self._index.showing.get(shown, ()))

    def _settle(self) -> None:
        """Where nobody has refreshed it, do so at once."""
        self._nodes.settle()
        if self._stale and self._next is None:
            for _ in self._renewed():
                pass

    def _renewed(self) -> Iterator[None]:
        self._stale, self._known = False, set()
        fresh = self._next = _Index(self._budgets, self._policies)
        try:
            for number, node in enumerate(self._nodes, 1):
                if node.name not in self._known:
                    self._known.add(node.name)
                    fresh.put(node.name, None, node)
                if number % SLICE == 0:
                    yield
            self._index, self._members = fresh, None
        except BaseException:
            self._stale = True
            raise
        finally:
            self._next = None

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if node is None:
            return
        self._index.put(node.name, old, new)
        if availability(old) != availability(new):
            self._members = None
        if self._next is not None:
            self._next.put(node.name, old if node.name in self._known else None, new)
            self._known.add(node.name)

    def _on_budget(self, old: Budget | None, new: Budget | None) -> None:
        if _selecting(old) != _selecting(new):
            self._stale = True

    def _on_policy(self, old: Policy | None, new: Policy | None) -> None:
        if _watched(old) != _watched(new):
            self._stale = True


def availability(node: Node | None) -> tuple[object, ...]:
    """What the numbers of a budget depend on."""
    return (node.ready, node.unschedulable, node.kept_out, node.labels, node.gates) if node else ()


def _selecting(budget: Budget | None) -> tuple[object, ...]:
    return (budget.selector, budget.fallback, budget.group_by) if budget else ()


def _watched(policy: Policy | None) -> tuple[object, ...]:
    """What the index asks of nodes because of a policy."""
    return (_asked(policy), policy.admit.taint if policy.admit else "") if policy else (set(), "")


def _asked(policy: Policy) -> set[Shown]:
    """The conditions that a policy compares nodes by, and those of new criteria, whose nodes are counted."""
    clauses = (clause for when in policy.when for clause in when.clauses) if policy.correlation else ()
    new = {(criterion.condition, Status.TRUE) for criterion in asked(policy)}
    return new | {(clause.condition, clause.status) for clause in clauses}
