"""Which cases may start now: first each node alone, then budgets and the breaker for all, the most urgent first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from remediator.core import budget as budgets_
from remediator.core.breaker import Breaker
from remediator.core.budget import Account, Budget, Claim, Members
from remediator.core.case import Block, Case
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
        """Cases that hold their node already go first, then severity, then age; names settle ties."""
        return (not self.case.claimed, self.severity, self.case.created, self.case.name)


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
    requests: Sequence[Request],
    budgets: Mapping[str, Budget],
    counted: Mapping[str, Members],
    starts: Sequence[datetime],
    breaker: Breaker,
    now: datetime,
) -> Admission:
    """Fold budgets and breaker over the requests, in order, each seeing what the ones before it were given.

    Two passes over the same cache admit the same cases. A case that claims must be admitted by every budget over its
    node; one that has claimed needs only the breaker, and not even that for its first attempt, while the claim counts
    as its start.
    """
    ledgers = dict(budgets)
    entries = budgets_.entries(budgets.values())
    accounts = {name: budgets_.account(ledger, counted[name]) for name, ledger in budgets.items()}
    started = list(starts)
    admitted: list[Request] = []
    held: list[tuple[Request, tuple[Block, ...]]] = []
    for request in sorted(requests, key=lambda request: request.order):
        blocks = (
            request.blocks
            or _taken(request, admitted)
            or _entered(request, entries)
            or _breaker(request, breaker, started, now)
            or _budgets(request, ledgers, accounts)
        )
        if blocks:
            held.append((request, blocks))
            continue
        admitted.append(request)
        if not breaker.admitted(request.case, now):
            started.append(now)
        if not request.case.claimed:
            _take(request, ledgers, accounts, now)
    gained = {name: ledger.claims[len(budgets[name].claims) :] for name, ledger in ledgers.items()}
    return Admission(tuple(admitted), tuple(held), {name: claims for name, claims in gained.items() if claims})


def _taken(request: Request, admitted: Sequence[Request]) -> tuple[Block, ...]:
    """One case per node, also within one pass."""
    first = next((other.case.name for other in admitted if other.node.name == request.node.name), "")
    return (block(Reason.NODE_BUSY, f"case {first} holds {request.node.name}"),) if first else ()


def _entered(request: Request, entries: Mapping[str, frozenset[str]]) -> tuple[Block, ...]:
    """A node has one case: a ledger, written under its version, is what two leaders cannot both win."""
    others = entries.get(request.node.name, frozenset()) - {request.case.uid}
    if request.case.claimed or not others:
        return ()
    return (block(Reason.NODE_BUSY, f"a budget says that case {min(others)} holds {request.node.name}"),)


def _breaker(request: Request, breaker: Breaker, counted: Sequence[datetime], now: datetime) -> tuple[Block, ...]:
    if breaker.admitted(request.case, now):
        return ()
    until = breaker.opens(counted, now)
    return (block(Reason.BREAKER_OPEN, f"{breaker.starts} starts in {breaker.window}", until),) if until else ()


def _budgets(request: Request, ledgers: Mapping[str, Budget], accounts: Mapping[str, Account]) -> tuple[Block, ...]:
    """Every budget over the node must admit it; one that holds our entry already has."""
    if request.case.claimed:
        return ()
    over = budgets_.over(request.node, ledgers)
    if not over:
        return (block(Reason.BUDGET_UNREADY, "no budget selects the node, and none is a fallback"),)
    open_to = [ledger for ledger in over if not ledger.holds(request.case.uid)]
    return tuple(block for ledger in open_to for block in _refusal(request.node.name, ledger, accounts[ledger.name]))


def _refusal(node: str, ledger: Budget, account: Account) -> tuple[Block, ...]:
    if ledger.unreadable:
        return (block(Reason.BUDGET_UNREADY, f"budget {ledger.name} cannot be read"),)
    if not ledger.adopted:
        return (block(Reason.BUDGET_UNREADY, f"budget {ledger.name}"),)
    if account.full_of_quarantine:
        names = ", ".join(sorted(account.quarantined)[:5])
        message = (
            f"budget {ledger.name}: {len(account.quarantined)} of {account.most_quarantined} quarantined ({names})"
        )
        return (block(Reason.QUARANTINE_FULL, message),)
    if account.admits(node) and len(ledger.claims) < budgets_.MOST_CLAIMS:
        return ()
    names = ", ".join(sorted(account.unavailable)[:5])
    message = f"budget {ledger.name}: {len(account.unavailable)} of {account.most} unavailable ({names})"
    return (block(Reason.BUDGET_SPENT, message),)


def _take(request: Request, ledgers: dict[str, Budget], accounts: dict[str, Account], now: datetime) -> None:
    """Enter the claim where the next request will see it."""
    claim = Claim(request.node.name, request.case.uid, now)
    for ledger in budgets_.over(request.node, ledgers):
        ledgers[ledger.name] = budgets_.with_claims(ledger, [claim])
        account = accounts[ledger.name]
        accounts[ledger.name] = replace(account, claimed=account.claimed | {claim.node})


def waits_in_queue(blocks: Sequence[Block]) -> bool:
    """Whether the node is about to be repaired and only waits its turn, so that new work had better go elsewhere."""
    return bool(blocks) and all(block.reason in _QUEUE for block in blocks)


_QUEUE = frozenset({Reason.BUDGET_SPENT, Reason.BUDGET_UNREADY, Reason.BUDGET_REFUSED, Reason.BREAKER_OPEN})
