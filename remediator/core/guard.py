"""Which cases may start now: first each node alone, then budgets and the breaker for all, the most urgent first."""

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import nsmallest
from itertools import product

from remediator.core.breaker import Breaker
from remediator.core.budget import MOST_CLAIMS, NOBODY, Account, Budget, Claim, account, accounts
from remediator.core.case import Block, Case
from remediator.core.census import BudgetSnapshot
from remediator.core.correlation import Causes, sharing
from remediator.core.evidence import judge
from remediator.core.node import Node
from remediator.core.policy import Mode, Policy, Urgency
from remediator.core.reasons import REMEDY, Reason


@dataclass(frozen=True, slots=True)
class Request:
    """One case that asks to start: to claim its node, or, `claimed` already, for its next attempt.

    `blocks` hold it whatever the budgets say; with any, budgets are not asked.
    """

    case: Case
    node: Node
    severity: int
    blocks: tuple[Block, ...]

    @property
    def order(self) -> tuple[bool, int, datetime, str]:
        """Cases that hold or have marked their node go first, then severity, then age; names settle ties."""
        holds = self.case.claimed or self.node.case_uid == self.case.uid
        return (not holds, self.severity, self.case.created, self.case.name)


@dataclass(frozen=True, slots=True)
class Admission:
    """What one pass over all requests allows: who goes on, who is held and why, and what each ledger gains."""

    admitted: tuple[Request, ...]
    held: tuple[tuple[Request, tuple[Block, ...]], ...]
    claims: Mapping[str, tuple[Claim, ...]]


def block(reason: Reason, message: str = "", until: datetime | None = None) -> Block:
    """A block whose message ends in the remedy."""
    remedy = REMEDY.get(reason, "")
    return Block(reason, "; ".join(part for part in (message, remedy) if part), until)


@dataclass(frozen=True, slots=True)
class Hosted:
    """What a node runs that nothing may disturb: `static_pod` of the control plane, our last ready replica."""

    static_pod: str = ""
    last_replica: bool = False


@dataclass(frozen=True, slots=True)
class FleetContext:
    """What is true of the whole fleet: shared by all requests of a pass."""

    templates: frozenset[str]
    paused: bool
    controller_nodes: frozenset[str]
    causes: Causes = field(default_factory=dict)
    failing: Mapping[str, str] = field(default_factory=dict)  # by policy: why its breaker on failures is open
    gone: frozenset[str] = frozenset()  # uids on marks of nodes that a live list does not have: their cases are no more
    control_plane: Mapping[str, str] = field(default_factory=dict)  # by node: its static Pod of the control plane
    silent: tuple[str, ...] = ()  # kinds whose watches have said nothing for long: what is known of them is old

    def hosted(self, node: str) -> Hosted:
        """What this node runs that nothing may disturb."""
        return Hosted(self.control_plane.get(node, ""), self.controller_nodes == {node})


def preconditions(
    case: Case, node: Node, policy: Policy | None, past: Sequence[Case], fleet: FleetContext, now: datetime
) -> tuple[Block, ...]:
    """What blocks one case, budgets apart; empty where nothing does."""
    if policy is None:
        return (block(Reason.POLICY_MISSING, f"no policy {case.policy}"),)
    judgement = judge(node, policy, now)
    doubts = [*map(str, judgement.doubts), *(f"the watch of {kind} has said nothing for long" for kind in fleet.silent)]
    unknown = [rung.operation for rung in policy.ladder if rung.operation not in fleet.templates]
    # One that does nothing to the node never waits for another.
    holder = _holder(case, node, past, fleet.gone) if policy.urgency is Urgency.NOW else ""
    rests = None if case.claimed else cooldown_until(case, policy, past, now)
    others = sharing(case, policy, node, fleet.causes)
    checks = (
        (bool(others), Reason.SHARED_CAUSE, _in_common(policy, others)),
        (policy.urgency is Urgency.NEVER, Reason.TICKET_ONLY, f"policy {policy.name} only escalates to a person"),
        (policy.name in fleet.failing, Reason.POLICY_FAILING, fleet.failing.get(policy.name, "")),
        (bool(holder), Reason.NODE_BUSY, f"case {holder} holds {node.name}"),
        (bool(unknown), Reason.UNKNOWN_OPERATION, f"no template {', '.join(unknown)}"),
        (bool(doubts), Reason.HEALTH_UNKNOWN, "; ".join(doubts)),
    )
    stopped = stops(case, node, policy, fleet.paused, fleet.hosted(node.name))
    blocks = (*stopped, *(block(reason, message) for holds, reason, message in checks if holds))
    return (*blocks, block(Reason.COOLDOWN, "its last case has ended a moment ago", rests)) if rests else blocks


def _in_common(policy: Policy, nodes: Sequence[str]) -> str:
    compared = " and ".join(policy.correlation.by) if policy.correlation else ""
    return f"{len(nodes)} nodes show the same {compared} ({', '.join(nodes[:5])})"


def stops(case: Case, node: Node, policy: Policy | None, paused: bool, hosted: Hosted) -> tuple[Block, ...]:
    """What a user, or what the node runs, stops the case with, also in its middle; empty where nothing does."""
    mode = policy.mode if policy and not policy.unreadable else None
    kept = case.claimed and node.kept_cordoned == case.uid  # its own operation took the node out for a person
    checks = (
        (paused, Reason.PAUSED, "all new work is paused"),
        (policy is not None and policy.unreadable, Reason.POLICY_UNREADABLE, f"policy {case.policy} cannot be read"),
        (mode is Mode.PAUSED, Reason.POLICY_PAUSED, f"policy {case.policy} is Paused"),
        (mode is Mode.DRY_RUN, Reason.DRY_RUN, f"would {_first(policy)}" if policy else ""),
        (case.hold, Reason.HELD_BY_USER, "spec.hold is true"),
        (node.opted_out, Reason.OPTED_OUT, f"{node.name} is excluded"),
        (node.control_plane or bool(hosted.static_pod), Reason.CONTROL_PLANE, _of_control_plane(node, hosted)),
        (hosted.last_replica, Reason.HOSTS_CONTROLLER, f"{node.name} runs our last ready replica"),
        (node.cordoned_by_user and not kept, Reason.CORDONED_BY_USER, f"{node.name} is cordoned"),
        (case.claimed and not node.unschedulable, Reason.UNCORDONED_BY_USER, f"a user has uncordoned {node.name}"),
    )
    return tuple(block(reason, message) for holds, reason, message in checks if holds)


def _of_control_plane(node: Node, hosted: Hosted) -> str:
    if hosted.static_pod:
        return f"{node.name} runs a static Pod of the control plane ({hosted.static_pod})"
    return f"{node.name} is part of the control plane"


def _first(policy: Policy) -> str:
    return (
        f"try {policy.ladder[0].operation}"
        if policy.ladder and policy.urgency is Urgency.NOW
        else "escalate to a person"
    )


def _holder(case: Case, node: Node, past: Sequence[Case], gone: frozenset[str]) -> str:
    """Which other case has the node, by what is known of cases, or by the node's marks; "" where none has."""
    known = [other.name for other in past if other.uid != case.uid and _holds(other, node)]
    marked = [] if case.claimed else sorted(node.marks - {case.uid} - gone)
    return next(iter([*known, *marked]), "")


def _holds(other: Case, node: Node) -> bool:
    """Whether this case has the node already: two cases of one node never work on it together."""
    return other.open and other.claimed and other.node_uid == node.uid


def cooldown_until(case: Case, policy: Policy, past: Sequence[Case], now: datetime) -> datetime | None:
    """Until when the node rests after the last case of this policy that had claimed it; None where it need not."""
    ends = [other.ended for other in past if other.ended and other.policy == policy.name and other.started]
    until = max(ends, default=None)
    return until + policy.cooldown if until and until + policy.cooldown > now else None


def admit(
    requests: Iterable[Request], ledgers: BudgetSnapshot, starts: Iterable[datetime], breaker: Breaker, now: datetime
) -> Admission:
    """Fold budgets and breaker over the requests, in order, each seeing what the ones before it were given."""
    fold = AdmissionFold(ledgers, starts, breaker, now)
    for request in sorted(requests, key=lambda request: request.order):
        fold.decide(request)
    return fold.admission()


class AdmissionFold:
    """Decides one request after the other on one snapshot. Whoever folds hands them over in their order.

    Two passes over the same cache admit the same cases. A case that claims must be admitted by every budget over its
    node; one that has claimed needs only the breaker, and not even that for its first attempt, while the claim counts
    as its start. One with entries that does not say yet that it holds its node is a start since the first of them.
    """

    def __init__(self, ledgers: BudgetSnapshot, starts: Iterable[datetime], breaker: Breaker, now: datetime) -> None:
        self.ledgers, self.breaker, self.now = ledgers, breaker, now
        self.entries: dict[str, set[str]] = {}  # the uids of the cases that hold each node, by its name
        self.entered: dict[str, dict[str, datetime]] = {}  # since when which ledgers have an entry, by uid of its case
        for ledger in ledgers.budgets.values():
            for claim in ledger.claims:
                self.entries.setdefault(claim.node, set()).add(claim.case)
                self.entered.setdefault(claim.case, {})[ledger.name] = claim.since
        self.recent = breaker.recent(starts, now)
        self.taken: dict[str, str] = {}  # the case that was admitted in this pass, by node
        self._whole: dict[str, Account] = {}
        self._accounts: dict[str, dict[str, Account]] = {}
        self._refusals: dict[tuple[str, str, bool], tuple[Block, ...]] = {}
        self._gained: dict[str, list[Claim]] = {}
        self._admitted: list[Request] = []
        self._held: list[tuple[Request, tuple[Block, ...]]] = []

    def decide(self, request: Request) -> None:
        """Admit or hold one case."""
        blocks = (
            request.blocks
            or _taken(request, self)
            or _entered(request, self)
            or _breaker(request, self)
            or _budgets(request, self)
        )
        if blocks:
            self._held.append((request, blocks))
            return
        self._admitted.append(request)
        self.taken[request.node.name] = request.case.name
        if not self.counts(request.case):
            insort(self.recent, self.now)
        if not request.case.claimed:
            self._take(request)

    def counts(self, case: Case) -> bool:
        """Whether the case counts as a start already: by its claim, or by its entries while no claim is recorded."""
        if case.claimed:
            return self.breaker.admitted(case, self.now)
        since = min(self.entered.get(case.uid, {}).values(), default=None)
        return since is not None and since > self.now - self.breaker.window

    def admission(self) -> Admission:
        """What was decided."""
        claims = {name: tuple(claims) for name, claims in self._gained.items()}
        return Admission(tuple(self._admitted), tuple(self._held), claims)

    def refusal(self, node: Node, name: str, group: str) -> tuple[Block, ...]:
        """Why a budget does not admit a node: the same for all of a group that are down, and for all that are not."""
        if name not in self._accounts:
            ledger, members = self.ledgers.budgets[name], self.ledgers.members.get(name, NOBODY)
            self._accounts[name], self._whole[name] = accounts(ledger, members), account(ledger, members)
        standing = self._accounts[name].get(group, _EMPTY)
        if node.name in standing.claimed:
            return self._refused(node, name, group, standing)
        key = (name, group, node.name in standing.down)
        if key not in self._refusals:
            self._refusals[key] = self._refused(node, name, group, standing)
        return self._refusals[key]

    def _refused(self, node: Node, name: str, group: str, standing: Account) -> tuple[Block, ...]:
        ledger, gained = self.ledgers.budgets[name], len(self._gained.get(name, ()))
        return _refusal(node.name, ledger, group, standing, self._whole[name], len(ledger.claims) + gained)

    def _take(self, request: Request) -> None:
        """Enter the claim where the next request will see it."""
        node, case = request.node.name, request.case.uid
        for name, group in self.ledgers.index.places(request.node):
            if name in self.entered.get(case, ()):
                continue
            self._gained.setdefault(name, []).append(Claim(node, case, self.now, group=group))
            by_group = self._accounts[name]
            standing = by_group.get(group, _EMPTY)
            by_group[group] = replace(standing, claimed=standing.claimed | {node})
            groups = by_group if self._shared_by_all(name, node) else (group,)
            for other, down in product(groups, (True, False)):
                self._refusals.pop((name, other, down), None)

    def _shared_by_all(self, name: str, node: str) -> bool:
        """Whether this claim has filled what all groups of a budget share: its ledger, or a percentage of the whole."""
        ledger, whole = self.ledgers.budgets[name], self._whole[name]
        full = len(ledger.claims) + len(self._gained[name]) >= MOST_CLAIMS
        if not ledger.limits_all_groups:
            return full
        whole = self._whole[name] = replace(whole, claimed=whole.claimed | {node})
        return full or whole.most in (len(whole.claimed), len(whole.unavailable))


_EMPTY = Account(0, 0, frozenset(), frozenset())


def _taken(request: Request, fold: AdmissionFold) -> tuple[Block, ...]:
    """One case per node, also within one pass."""
    first = fold.taken.get(request.node.name, "")
    return (block(Reason.NODE_BUSY, f"case {first} holds {request.node.name}"),) if first else ()


def _entered(request: Request, fold: AdmissionFold) -> tuple[Block, ...]:
    """A node has one case: a ledger, written under its version, is what two leaders cannot both win."""
    others = fold.entries.get(request.node.name, set()) - {request.case.uid}
    if request.case.claimed or not others:
        return ()
    return (block(Reason.NODE_BUSY, f"a budget says that case {min(others)} holds {request.node.name}"),)


def _breaker(request: Request, fold: AdmissionFold) -> tuple[Block, ...]:
    breaker = fold.breaker
    if fold.counts(request.case):
        return ()
    until = breaker.opened(fold.recent)
    return (block(Reason.BREAKER_OPEN, f"{breaker.starts} starts in {breaker.window}", until),) if until else ()


def _budgets(request: Request, fold: AdmissionFold) -> tuple[Block, ...]:
    """Every budget over the node must admit it; one that holds our entry already has."""
    if request.case.claimed:
        return ()
    places = fold.ledgers.index.places(request.node)
    if not places:
        return (block(Reason.BUDGET_UNREADY, "no budget selects the node, and none is a fallback"),)
    held = fold.entered.get(request.case.uid, ())
    open_to = [(name, group) for name, group in places if name not in held]
    return tuple(block for name, group in open_to for block in fold.refusal(request.node, name, group))


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
        return (block(Reason.BUDGET_SPENT, f"{place}: {_spent(standing)}"),)
    if ledger.limits_all_groups and not whole.admits(node):
        return (block(Reason.BUDGET_SPENT, f"budget {ledger.name}, all groups: {_spent(whole)}"),)
    return ()


def _spent(account: Account) -> str:
    return f"{len(account.unavailable)} of {account.most} unavailable ({_first_five(account.unavailable)})"


def _first_five(nodes: frozenset[str]) -> str:
    return ", ".join(nsmallest(5, nodes))


def waits_in_queue(blocks: Sequence[Block]) -> bool:
    """Whether the node is about to be repaired and only waits its turn, so that new work had better go elsewhere."""
    return bool(blocks) and all(block.reason in _QUEUE for block in blocks)


_QUEUE = frozenset({Reason.BUDGET_SPENT, Reason.BUDGET_UNREADY, Reason.BUDGET_REFUSED, Reason.BREAKER_OPEN})
