"""NodeOperation: one operation on one node."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.operation import OperationPhase
from remediator.kube.api.common import (
    API_VERSION,
    Base,
    Message,
    Name,
    ObjectMeta,
    Operation,
    Reason,
    Rule,
    Time,
    Uid,
    User,
    doc,
    rules,
)
from remediator.kube.api.remediation import Intent, KeepOut


class NodeOperationSpec(Base, frozen=True, kw_only=True):
    """What to do, to which node, for which case. Immutable as a whole."""

    node_name: Annotated[Name, doc("The node.")]
    node_uid: Annotated[Uid, doc("metadata.uid of the node: a later node of this name is left alone.")] = msgspec.field(
        name="nodeUID"
    )
    case_uid: Annotated[
        Uid | None,
        doc("metadata.uid of the NodeRemediation it belongs to; only the controller sets it."),
    ] = msgspec.field(name="caseUID", default=None)
    attempt: Annotated[int, Meta(ge=1), doc("Number of the attempt within the case, counted from 1. Default 1.")] = 1
    template_name: Annotated[Operation, doc("The NodeOperationTemplate that says how.")]
    parameters: Annotated[
        dict[str, Annotated[str, Meta(max_length=1024)]],
        Meta(max_length=32),
        doc("Handed to the operation's program in PARAMETERS."),
    ] = msgspec.field(default_factory=dict)
    keep_out: Annotated[
        KeepOut | None,
        doc(
            "Keep the node out of service after the operation has succeeded: drained, counted by its budgets, and not "
            "given back by itself. Left out: it is given back at once."
        ),
    ] = None
    requested_by: Annotated[
        User | None, doc("Who asked for it: a case by its name, or a user. Admission fills in the user.")
    ] = None


_SPEC = rules(
    Rule("self == oldSelf", "spec is immutable; make another NodeOperation"),
    Rule("!has(self.keepOut) || !has(self.caseUID)", "keepOut is of users' operations", ".keepOut"),
)


class BlockedPod(Base, frozen=True, kw_only=True):
    """One Pod that does not leave the node now."""

    pod: Annotated[str, Meta(max_length=320), doc("namespace/name of the Pod.")]
    pdb: Annotated[
        str, Meta(max_length=253), doc("The PodDisruptionBudgets over it, joined by commas, if they keep it.")
    ] = ""
    message: Annotated[Message, doc("What keeps the Pod, and what to do about it.")] = ""


class DrainStatus(Base, frozen=True, kw_only=True):
    """How far the drain is; written by the drain Pod."""

    left: Annotated[int | None, doc("Pods still on the node that must go.")] = None
    evicted: Annotated[int, doc("Pods evicted or deleted so far.")] = 0
    blocked: Annotated[
        tuple[BlockedPod, ...],
        Meta(max_length=256),
        doc("Pods that do not leave the node now, and why; the first 20.", x_kubernetes_list_type="atomic"),
    ] = ()


class NodeOperationStatus(Base, frozen=True, kw_only=True):
    """Where the operation stands."""

    phase: Annotated[OperationPhase | None, doc("Where the operation stands; the last four are final.")] = None
    case_name: Annotated[
        Name | None, doc("The NodeRemediation that was opened for an operation that a user has made.")
    ] = None
    reason: Annotated[Reason, doc("Why it is in this phase, in one word.")] = ""
    message: Annotated[Message, doc("Last message of the operation, or why it is in this phase.")] = ""
    started_at: Annotated[Time | None, doc("When the controller took it up.")] = None
    finished_at: Annotated[Time | None, doc("When it ended.")] = None
    drain: Annotated[DrainStatus | None, doc("How far the drain is.")] = None
    drain_started_at: Annotated[
        Time | None, doc("When the first drain Pod was made, or another system was asked to drain the node.")
    ] = None
    drain_round: Annotated[
        int, doc("Number of drains before this one: Pods that came after a drain are drained in another.")
    ] = 0
    drained_at: Annotated[Time | None, doc("When the drain of this round was done.")] = None
    drain_pod: Annotated[Name | None, doc("Name of the drain Pod.")] = None
    pod: Annotated[Name | None, doc("Name of the operation's own Pod, once it was seen: no other is made.")] = None
    intent: Annotated[Intent | None, doc("Written before the operation's Pod is made.")] = None


class NodeOperation(Base, frozen=True, kw_only=True):
    """One operation on one node, for a NodeRemediation: of a policy, or one that is opened for this operation."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "NodeOperation")
    metadata: ObjectMeta
    spec: Annotated[NodeOperationSpec, _SPEC]
    status: NodeOperationStatus = NodeOperationStatus()
