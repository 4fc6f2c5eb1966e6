"""Whom an IdlePolicy is about: an owner whose Pods can be told to end, with all of them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from remediator.core.idle_policy import Finding, IdleAction, IdlePolicy
from remediator.core.pod_facts import PodFacts
from remediator.janitor.decide import kept
from remediator.janitor.idle.evidence import Evidence
from remediator.janitor.idle.table import State, StepAndReason, notice, row, told
from remediator.janitor.ttl import UnreadableTime
from remediator.kube.api import owners
from remediator.kube.wire.client import Kind

ACTIONS = {
    owners.JOB.name: IdleAction.SUSPEND,
    owners.DEPLOYMENT.name: IdleAction.SCALE,
    owners.STATEFUL_SET.name: IdleAction.SCALE,
    owners.POD.name: IdleAction.DELETE,
}
WILL = {
    IdleAction.SUSPEND: "will be suspended",
    IdleAction.SCALE: "will be scaled to 0",
    IdleAction.DELETE: "will be deleted",
    None: "nothing is taken",
}


@dataclass(frozen=True, slots=True)
class Holding:
    """`maker`: who would undo what is done to it, such as PyTorchJob/bert, "" for nobody. `others`: it has more Pods.

    `whole`: all of its Pods are what the policy looks for.
    """

    kind: Kind[Any]
    namespace: str
    name: str
    uid: str
    annotations: Mapping[str, str]
    pods: tuple[PodFacts, ...]
    maker: str = ""
    space: Mapping[str, str] = field(default_factory=dict)  # annotations of its namespace
    others: bool = False
    whole: bool = True

    @property
    def gpus(self) -> int:
        """How many GPUs its Pods have together."""
        return sum(pod.gpus or 0 for pod in self.pods)

    def owner(self, policy: IdlePolicy) -> str:
        """Whose it is, as a label of its Pods says."""
        return next((owner for pod in self.pods if (owner := pod.labels.get(policy.owner_label))), "")

    def action(self, policy: IdlePolicy) -> IdleAction | None:
        """What is done to it in the end; None for nothing."""
        action = ACTIONS[self.kind.name]
        return action if action in policy.actions and self.whole and not self.maker else None


def state(holding: Holding, evidence: Evidence, policy: IdlePolicy, now: datetime, *, shut: bool) -> tuple[State, str]:
    """What is known of it, and a sentence. What was used is used, whoever keeps it."""
    if evidence.state is not State.IDLE:
        return evidence.state, evidence.why
    idle = _idle(holding, evidence, policy)
    try:
        keeps = [
            kept(marks, now)
            for marks in (holding.annotations, holding.space, *(pod.annotations for pod in holding.pods))
        ]
    except UnreadableTime as wrong:
        return State.UNREADABLE, str(wrong)
    if why := next(filter(None, keeps), ""):
        return State.KEPT, f"{idle}; {why}"
    if vague := next((pod.name for pod in holding.pods if not pod.all_labels), ""):
        return State.UNKNOWN, f"{idle}; {vague} has more labels than anybody reads"
    if shut:
        return State.SHUT, idle
    if not holding.whole:
        return State.FIXED, f"{idle}; others of its Pods work"
    if holding.action(policy) is None:
        return State.FIXED, f"{idle}; {holding.maker} would undo it" if holding.maker else idle
    return State.IDLE, idle


def _idle(holding: Holding, evidence: Evidence, policy: IdlePolicy) -> str:
    """What the policy has found, in words."""
    minutes = int(policy.idle_for.total_seconds() // 60)
    if policy.finds is Finding.IDLE_GPUS:
        return f"{holding.gpus} GPU{'s' * (holding.gpus != 1)} idle for {minutes} minutes"
    return f"CPU idle for {minutes} minutes" if policy.finds is Finding.IDLE_CPU else evidence.why


def decide(
    holding: Holding, evidence: Evidence, policy: IdlePolicy, now: datetime, *, shut: bool
) -> tuple[State, StepAndReason, str]:
    """What becomes of it now: its state, the row of the table, and a sentence."""
    known, why = state(holding, evidence, policy, now, shut=shut)
    return known, row(known, notice(told(holding.annotations), policy, now), policy.finds), why
