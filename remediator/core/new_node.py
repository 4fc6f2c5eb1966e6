"""Gates of new nodes: a node that carries the taint of a policy's `admit` works only once a probe has succeeded on it.

The taint and the annotation are the only memory: what came through is written with the same write that opens the gate.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from remediator.core import names
from remediator.core.case import Case, NewNode, Phase, Trigger
from remediator.core.health import Health
from remediator.core.judgement import judge
from remediator.core.node import Node, Taint
from remediator.core.policy import Admit, Approval, Mode, Policy, Urgency
from remediator.core.reasons import Reason

CONDITION, REASON = "NewNode", "NotProven"  # what the trigger of such a case says
# Ends after which the node works: proven, or a person answers for it.
_ADMITS = frozenset({Reason.VERIFIED, Reason.RELEASED_BY_USER, Reason.RELEASED_HEALTHY})
# Ends by which a user says that nobody is to try the node out.
_CANCELS = frozenset({Reason.CASE_DELETED, Reason.TAINT_REMOVED_BY_USER})


@dataclass(frozen=True, slots=True)
class Opening:
    """A case to be opened for a new node: its name, its policy and the gate at which the node waits."""

    name: str
    policy: str
    gate: NewNode
    trigger: Trigger


def gates(node: Node, policies: Iterable[Policy]) -> Iterator[tuple[Policy, Admit]]:
    """The gates that stand over a node. Of two policies with one taint the first by name rules it."""
    taints = set[str]()
    for policy in sorted((policy for policy in policies if policy.admit), key=lambda policy: policy.name):
        if policy.admit is not None and policy.admit.taint not in taints and policy.selects(node):
            taints.add(policy.admit.taint)
            yield policy, policy.admit


def taints_of(policies: Iterable[Policy]) -> frozenset[str]:
    """The keys of the taints of all gates."""
    return frozenset(policy.admit.taint for policy in policies if policy.admit is not None)


def waits_at(node: Node, taint: str) -> bool:
    """Whether the node waits at this gate."""
    return taint in node.gates


def admitted(node: Node, taint: str) -> str | None:
    """The machine that came through this gate last, as the node's annotation says; None where none did."""
    entries = (entry.partition("=") for entry in node.admitted)
    return next((machine for key, _, machine in entries if key == taint), None)


def without(node: Node, taints: Container[str]) -> tuple[str, ...]:
    """The entries of the annotation for other gates than these."""
    return tuple(entry for entry in node.admitted if entry.partition("=")[0] not in taints)


def with_admitted(node: Node, gate: NewNode) -> str:
    """The annotation once the machine has come through the gate."""
    return ",".join((*without(node, {gate.taint}), f"{gate.taint}={gate.machine}"))


def opening(node: Node, policies: Iterable[Policy], cases: Sequence[Case], now: datetime) -> Opening | None:
    """The case that is to be opened for a new node; None where it waits at no gate, is proven or was cancelled, and
    while a case works on it, or the policy finds what it repairs. One that only watches keeps no proof back.
    """
    everyone = tuple(policies) if node.gates else ()  # of all nodes only a few wait at one
    if not everyone or _holder(node, everyone, cases) is not None:
        return None
    for policy, admit in gates(node, everyone):
        name = _name(node, policy, admit, cases) if not _is_ill(node, policy, now) else None
        if name is not None and waits_at(node, admit.taint) and admitted(node, admit.taint) != node.machine:
            message = f"{node.name} is new: {admit.probe} must succeed on it before {admit.taint} is taken off"
            trigger = Trigger(CONDITION, "True", REASON, message, now)
            return Opening(name, policy.name, NewNode(admit.taint, node.machine), trigger)
    return None


def _holder(node: Node, policies: Iterable[Policy], cases: Iterable[Case]) -> Case | None:
    """The first case of the node that may work on it, or has not given it back."""
    watching = {policy.name for policy in policies if not policy.acts}
    ours = (case for case in cases if case.node_uid == node.uid and (case.open or case.finalizer))
    return next((case for case in ours if case.policy not in watching or case.claimed), None)


def _is_ill(node: Node, policy: Policy, now: datetime) -> bool:
    """Whether the node shows the fault that the policy repairs."""
    return judge(node, policy, now).health is Health.UNHEALTHY


def _name(node: Node, policy: Policy, admit: Admit, cases: Sequence[Case]) -> str | None:
    """The next name of a case for this machine at this gate; None where a user has cancelled one."""
    before, number = {case.name: case for case in cases}, 0
    while True:
        name = names.name(node.name, policy.name, node.uid, policy.name, admit.taint, node.machine, str(number))
        case = before.get(name)
        if case is None:
            return None if name in node.handled else name
        if case.ended is None or case.reason in _CANCELS or case.deleting:
            return None
        number += 1


def closing(node: Node, policies: Iterable[Policy]) -> tuple[str, ...]:
    """The taints of gates that another machine came through than the one that the node is now."""
    if node.opted_out or node.control_plane:
        return ()
    acting = (admit.taint for policy, admit in gates(node, policies) if policy.mode is Mode.ENFORCE)
    before = {key: admitted(node, key) for key in acting if not waits_at(node, key)}
    return tuple(key for key, machine in before.items() if machine and node.machine and machine != node.machine)


def taint(key: str) -> Taint:
    """The taint of a gate, as it is put on."""
    return Taint(key, "", "NoSchedule")


def ruling(case: Case, policy: Policy | None) -> Policy | None:
    """What rules a case: of a new node its policy, without its ladder and all that spares work that is disturbed.

    None where the policy has no such gate any more.
    """
    if case.new_node is None or policy is None:
        return policy
    if policy.admit is None or policy.admit.taint != case.new_node.taint:
        return policy if policy.unreadable else None
    return replace(
        policy,
        ladder=(),
        verify=replace(policy.verify, probe=policy.admit.probe),
        cooldown=timedelta(0),
        urgency=Urgency.NOW,
        windows=(),
        approval=Approval.NONE,
        correlation=None,
        confirm=None,
        require_spare_gpus=False,
        max_blast_radius=None,
        relapse=None,
        lemon=None,
    )


def fault_goes_first(case: Case, node: Node | None, policy: Policy | None, now: datetime) -> bool:
    """Whether the node shows the fault that its policy repairs: nobody tries out what is known to be broken."""
    if case.new_node is None or node is None or policy is None or case.phase is Phase.ESCALATED:
        return False
    due = judge(node, policy, now).due
    return due is not None and due <= now


def admits(case: Case, node: Node) -> bool:
    """Whether the end of the case lets its node work."""
    gate = case.new_node
    return case.reason in _ADMITS and not case.deleting and gate is not None and node.machine in ("", gate.machine)


def cancelled(case: Case) -> bool:
    """Whether a user wants no other case of this new node."""
    return case.new_node is not None and (case.deleting or case.reason in _CANCELS)


def standing(node: Node, policies: Iterable[Policy], cases: Sequence[Case], now: datetime) -> Iterator[str]:
    """What a user reads of the gates at which the node waits, a sentence each."""
    everyone = tuple(policies)
    holder = _holder(node, everyone, cases)
    for policy, admit in gates(node, everyone):
        if waits_at(node, admit.taint):
            first = f"what policy {policy.name} repairs is over" if _is_ill(node, policy, now) else ""
            first = f"case {holder.name} is over" if holder else first
            yield f"new node: {_why(node, policy, admit, cases, first)}"


def _why(node: Node, policy: Policy, admit: Admit, cases: Sequence[Case], first: str) -> str:
    """`first`: what must come before a case opens for it; "" for nothing."""
    off = f"kubectl taint node {node.name} {admit.taint}-"
    mine = [case for case in cases if case.open and case.new_node and case.new_node.taint == admit.taint]
    if mine:
        return f"{admit.taint} keeps work off until case {mine[0].name} is over; to let the node work without: {off}"
    if admitted(node, admit.taint) == node.machine:
        return (
            f"this machine has passed already, and somebody has put {admit.taint} on again; to let it work: {off}; to "
            f"have it tried out again: kubectl annotate node {node.name} {names.ADMITTED}-"
        )
    if _name(node, policy, admit, cases) is None:
        return f"its case was cancelled, so nobody tries it out and {admit.taint} stays; to let the node work: {off}"
    opens = f"a case opens for it once {first}; to let the node work without: {off}" if first else "a case opens for it"
    return f"{admit.taint} keeps work off until {admit.probe} has succeeded (policy {policy.name}); {opens}"
