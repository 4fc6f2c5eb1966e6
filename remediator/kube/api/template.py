"""NodeOperationTemplate: how an operation is done."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from remediator.kube.api.common import (
    API_VERSION,
    Anything,
    Base,
    Conditions,
    LabelSelector,
    Name,
    ObjectMeta,
    Positive,
    Rule,
    TemplateName,
    doc,
    later,
    rules,
)

Strategy = Literal["Evict", "Delete", "None", "ForceDelete", "EvictThenDelete", "WaitForCompletion"]


class DrainRule(Base, frozen=True, kw_only=True):
    """Another strategy for some Pods."""

    namespace: Annotated[Name | None, doc("Pods of this namespace.")] = None
    pod_selector: Annotated[LabelSelector | None, doc("Pods with these labels.")] = None
    strategy: Annotated[Strategy, doc("How these Pods are moved away.")]


class Drain(Base, frozen=True, kw_only=True):
    """How Pods are moved off the node before the operation."""

    strategy: Annotated[
        Strategy,
        doc(
            "Evict: ask, and respect every PodDisruptionBudget. Delete: delete with the Pod's own grace. "
            "None: leave Pods alone. Not supported yet: ForceDelete, EvictThenDelete, WaitForCompletion. Required."
        ),
    ]
    timeout: Annotated[
        Positive, doc("How long the drain may take before the attempt counts as failed. Default 30m.")
    ] = "30m"
    skip_wait_for_delete: Annotated[
        Positive | None,
        doc(
            "A Pod that should have ended so long ago, its own grace included, is not waited for: its process cannot "
            "end, and the reboot is what ends it. Only with success.bootIDChanged. Default: every Pod is waited for."
        ),
    ] = None
    rules: Annotated[
        tuple[DrainRule, ...],
        Meta(max_length=16),
        doc(
            "Other strategies for some Pods; the first match wins. Not supported yet.", x_kubernetes_list_type="atomic"
        ),
    ] = ()


_DRAIN = rules(
    Rule(
        "self.strategy in ['Evict', 'Delete', 'None']",
        "drain.strategy other than Evict, Delete and None is not supported yet; remove it",
        ".strategy",
    ),
    later("rules", "drain."),
)


_OVERDUE = Rule(
    "!has(self.drain.skipWaitForDelete) || (has(self.success) && has(self.success.bootIDChanged) && "
    "self.success.bootIDChanged)",
    "drain.skipWaitForDelete needs success.bootIDChanged: true; only a reboot ends what cannot end",
    ".drain",
)


class Success(Base, frozen=True, kw_only=True):
    """What must be seen besides exit code 0; what is asked for here outranks the exit code."""

    boot_id_changed: Annotated[bool, doc("The node must come back with another bootID. Default false.")] = (
        msgspec.field(name="bootIDChanged", default=False)
    )
    node_ready: Annotated[bool, doc("The node must be Ready. Default false.")] = False


class NodeOperationTemplateSpec(Base, frozen=True, kw_only=True):
    """How an operation is done: what happens to the node's Pods, where it runs, and when it has succeeded."""

    drain: Annotated[Drain, _DRAIN, doc("How Pods are moved off the node first. Required.")]
    cordon: Annotated[
        bool,
        doc(
            "Also mark the node SchedulingDisabled while the case lasts; it is undone only if we did it. Default false."
        ),
    ] = False
    run_on: Annotated[
        Literal["Target", "Elsewhere"],
        doc("Target: on the node itself. Elsewhere: on any healthy node. Default Target."),
    ] = "Target"
    timeout: Annotated[
        Positive, doc("How long the operation's Pod may run before it is stopped and counts as failed. Default 15m.")
    ] = "15m"
    success: Annotated[Success, doc("What must be seen besides exit code 0. Default: nothing.")] = Success()
    pod_template: Annotated[
        Anything,
        doc(
            "An ordinary PodTemplateSpec. Its first container is given NODE_NAME, OPERATION, ATTEMPT_ID, "
            "EXPECTED_BOOT_ID and PARAMETERS. Required."
        ),
    ]
    covers: Annotated[
        tuple[TemplateName, ...],
        Meta(max_length=16),
        doc(
            "Operations that need not be tried once this one was done. Not supported yet.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    after: Annotated[
        tuple[TemplateName, ...],
        Meta(max_length=16),
        doc(
            "Operations that complete this one, in order, once it has worked. They are no attempts of their own, and "
            "what their own templates name here is not done.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()


class NodeOperationTemplateStatus(Base, frozen=True, kw_only=True):
    """What the controller makes of the template."""

    observed_generation: Annotated[int, doc("The metadata.generation that was judged.")] = 0
    conditions: Conditions = ()


class NodeOperationTemplate(Base, frozen=True, kw_only=True):
    """How an operation is done. Whoever may write one may run anything on any node."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "NodeOperationTemplate")
    metadata: ObjectMeta
    spec: Annotated[NodeOperationTemplateSpec, rules(_OVERDUE, later("covers"))]
    status: NodeOperationTemplateStatus = NodeOperationTemplateStatus()
