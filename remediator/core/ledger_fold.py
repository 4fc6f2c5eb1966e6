"""The ledgers in one admission pass: which budgets admit a node, and what each ledger gains by those admitted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nsmallest
from itertools import product

from remediator.core.account import NOBODY, Account, account, account_of_group, claims_by_group
from remediator.core.budget import MOST_CLAIMS, Budget, Claim
from remediator.core.case import Block
from remediator.core.census import BudgetSnapshot
from remediator.core.guard import block
from remediator.core.node import Node
from remediator.core.reasons import Reason

_EMPTY = Account(0, 0, frozenset(), frozenset())


class LedgerFold:
    """Each admission sees what the ones before it have entered.

    Attributes:
        index: Which budgets are over a node.
        entries: The uids of the cases that hold each node, by its name.
        entered: Since when which ledgers have an entry, by the uid of its case.
    """

    def __init__(self, snapshot: BudgetSnapshot, now: datetime) -> None:
        self._snapshot, self._now, self.index = snapshot, now, snapshot.index
        self.entries: dict[str, set[str]] = {}
        self.entered: dict[str, dict[str, datetime]] = {}
        for ledger in snapshot.budgets.values():
            for claim in ledger.claims:
                self.entries.setdefault(claim.node, set()).add(claim.case)
                self.entered.setdefault(claim.case, {})[ledger.name] = claim.since
        self._whole: dict[str, Account] = {}
        self._accounts: dict[str, dict[str, Account]] = {}
        self._claims: dict[str, Mapping[str, Sequence[Claim]]] = {}
        self._refusals: dict[tuple[str, str, bool], tuple[Block, ...]] = {}
        self._gained: dict[str, list[Claim]] = {}

    @property
    def gained(self) -> Mapping[str, tuple[Claim, ...]]:
        """What each ledger gains."""
        return {name: tuple(claims) for name, claims in self._gained.items()}

    def first_entry(self, case: str) -> datetime | None:
        """Since when a case, by its uid, has an entry in any ledger; None where it has none."""
        return min(self.entered.get(case, {}).values(), default=None)

    def over(self, node: Node, case: str) -> list[str]:
        """The budgets over the node now, and those that have an entry of the case."""
        return sorted({*self.index.over(node), *self.entered.get(case, ())})

    def refusals(self, node: Node, case: str) -> tuple[Block, ...]:
        """Why budgets do not admit a node: every one over it must, but for those that hold an entry of the case."""
        if not self.index.places(node):
            return (block(Reason.BUDGET_UNREADY, "no budget selects the node, and none is a fallback"),)
        open_to = self._open_to(node, case)
        return tuple(block for name, group in open_to for block in self._refusal(node, name, group))

    def _open_to(self, node: Node, case: str) -> list[tuple[str, str]]:
        held = self.entered.get(case, ())
        return [(name, group) for name, group in self.index.places(node) if name not in held]

    def _refusal(self, node: Node, name: str, group: str) -> tuple[Block, ...]:
        """Why a budget does not admit a node: the same for all of a group that are down, and for all that are not."""
        standing = self._account(name, group)
        if node.name in standing.claimed:
            return self._refused(node, name, group, standing)
        key = (name, group, node.name in standing.down)
        if key not in self._refusals:
            self._refusals[key] = self._refused(node, name, group, standing)
        return self._refusals[key]

    def _account(self, name: str, group: str) -> Account:
        """Where a group stands with what was entered here; of many groups only those are counted that are asked for."""
        ledger, members = self._snapshot.budgets[name], self._snapshot.members.get(name, NOBODY)
        if name not in self._accounts:
            self._accounts[name], self._claims[name] = {}, claims_by_group(ledger)
            self._whole[name] = account(ledger, members)
        known = self._accounts[name]
        if group not in known:
            known[group] = account_of_group(ledger, members, group, self._claims[name]) or _EMPTY
        return known[group]

    def _refused(self, node: Node, name: str, group: str, standing: Account) -> tuple[Block, ...]:
        ledger, gained = self._snapshot.budgets[name], len(self._gained.get(name, ()))
        return _refusal(node.name, ledger, group, standing, self._whole[name], len(ledger.claims) + gained)

    def take(self, node: Node, case: str) -> None:
        """Enter the claim of a case, by its uid, where the next request will see it. `refusals` was asked before."""
        for name, group in self._open_to(node, case):
            self._gained.setdefault(name, []).append(Claim(node.name, case, self._now, group=group))
            by_group = self._accounts[name]
            standing = self._account(name, group)
            by_group[group] = replace(standing, claimed=standing.claimed | {node.name})
            groups = by_group if self._shared_by_all(name, node.name) else (group,)
            for other, down in product(groups, (True, False)):
                self._refusals.pop((name, other, down), None)

    def _shared_by_all(self, name: str, node: str) -> bool:
        """Whether this claim has filled what all groups of a budget share: its ledger, or a percentage of the whole."""
        ledger, whole = self._snapshot.budgets[name], self._whole[name]
        full = len(ledger.claims) + len(self._gained[name]) >= MOST_CLAIMS
        if not ledger.limits_all_groups:
            return full
        whole = self._whole[name] = replace(whole, claimed=whole.claimed | {node})
        return full or whole.most in (len(whole.claimed), len(whole.unavailable))


def _refusal(
    node: str, ledger: Budget, group: str, standing: Account, whole: Account, entries: int
) -> tuple[Block, ...]:
    if ledger.unreadable:
        return (block(Reason.BUDGET_UNREADY, f"budget {ledger.name} cannot be read"),)
    if not ledger.adopted:
        return (block(Reason.BUDGET_UNREADY, f"budget {ledger.name}"),)
    if ledger.group_by and not group:
        lacking = f"{standing.total} of {whole.total} nodes of the budget lack it"
        message = f"budget {ledger.name} groups by a label that the node lacks ({lacking}): {ledger.group_by}"
        return (block(Reason.GROUP_UNKNOWN, message),)
    place = f"budget {ledger.name}" + (f", {ledger.group_by} {group}" if group else "")
    full, where = standing, place
    if group and ledger.max_quarantined.percent and whole.full_of_quarantine:
        full, where = whole, f"budget {ledger.name}, all groups"
    if full.full_of_quarantine:
        waiting = f"{len(full.quarantined)} of {full.most_quarantined} quarantined"
        return (block(Reason.QUARANTINE_FULL, f"{where}: {waiting} ({_first_five(full.quarantined)})"),)
    if entries >= MOST_CLAIMS:
        return (block(Reason.BUDGET_SPENT, f"budget {ledger.name}: its ledger has room for {MOST_CLAIMS} nodes"),)
    if not standing.admits(node):
        return (_spent(place, standing),)
    if ledger.limits_all_groups and not whole.admits(node):
        return (_spent(f"budget {ledger.name}, all groups", whole),)
    return ()


def _spent(place: str, account: Account) -> Block:
    """Why nothing more may become unavailable. Where nothing ever may, no wait for other nodes ends it."""
    if account.most <= 0:
        return Block(Reason.BUDGET_SPENT, f"{place} lets no node of {account.total} be unavailable; raise the budget")
    waiting = f"{len(account.unavailable)} of {account.most} unavailable"
    return block(Reason.BUDGET_SPENT, f"{place}: {waiting} ({_first_five(account.unavailable)})")


def _first_five(nodes: frozenset[str]) -> str:
    return ", ".join(nsmallest(5, nodes))
