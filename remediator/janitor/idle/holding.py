"""Who holds GPUs: an owner whose Pods can be told to end, with all of them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from remediator.core.idle_policy import IdleAction, IdlePolicy
from remediator.janitor.decide import kept
from remediator.janitor.idle.evidence import Evidence, GpuPod
from remediator.janitor.idle.table import TABLE, Row, State, notice, told
from remediator.janitor.ttl import Unreadable
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
    """`maker`: who would undo what is done to it, such as PyTorchJob/bert, "" for nobody."""

    kind: Kind[Any]
    namespace: str
    name: str
    uid: str
    annotations: Mapping[str, str]
    pods: tuple[GpuPod, ...]
    maker: str = ""
    space: Mapping[str, str] = field(default_factory=dict)  # annotations of its namespace

    @property
    def gpus(self) -> int:
        """How many GPUs its Pods have together."""
        return sum(pod.gpus or 0 for pod in self.pods)

    def owner(self, policy: IdlePolicy) -> str:
        """Whose it is, as a label of its Pods says."""
        return next((owner for pod in self.pods if (owner := pod.labels.get(policy.owner_label))), "")

    def action(self, policy: IdlePolicy) -> IdleAction | None:
        """How its GPUs are taken; None where they are not."""
        action = ACTIONS[self.kind.name]
        return action if action in policy.actions and not self.maker else None


def state(holding: Holding, evidence: Evidence, policy: IdlePolicy, now: datetime, *, shut: bool) -> tuple[State, str]:
    """What is known of it, and a sentence. What was used is used, whoever keeps it."""
    if evidence.state is not State.IDLE:
        return evidence.state, evidence.why
    idle = (
        f"{holding.gpus} GPU{'s' * (holding.gpus != 1)} idle for {int(policy.idle_for.total_seconds() // 60)} minutes"
    )
    try:
        keeps = [
            kept(marks, now)
            for marks in (holding.annotations, holding.space, *(pod.annotations for pod in holding.pods))
        ]
    except Unreadable as wrong:
        return State.UNREADABLE, str(wrong)
    if why := next(filter(None, keeps), ""):
        return State.KEPT, f"{idle}; {why}"
    if shut:
        return State.SHUT, idle
    if holding.action(policy) is None:
        return State.FIXED, f"{idle}; {holding.maker} would undo it" if holding.maker else idle
    return State.IDLE, idle


def decide(
    holding: Holding, evidence: Evidence, policy: IdlePolicy, now: datetime, *, shut: bool
) -> tuple[State, Row, str]:
    """What becomes of it now: its state, the row of the table, and a sentence."""
    known, why = state(holding, evidence, policy, now, shut=shut)
    return known, TABLE[known, notice(told(holding.annotations), policy, now)], why
