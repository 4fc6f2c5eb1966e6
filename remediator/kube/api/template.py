"""NodeOperationTemplate: how an operation is done."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.policy import RunOn, Strategy
from remediator.kube.api.common import (
    API_VERSION,
    Anything,
    Base,
    ObjectMeta,
    Positive,
    Rule,
    TemplateName,
    doc,
    rules,
)


class Drain(Base, frozen=True, kw_only=True):
    """How Pods are moved off the node before the operation."""

    strategy: Annotated[
        Strategy,
        doc(
            "Evict: ask, and respect every PodDisruptionBudget. Delete: delete with the Pod's own grace. "
            "None: leave Pods alone. Required."
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

    drain: Annotated[Drain, doc("How Pods are moved off the node first. Required.")]
    run_on: Annotated[
        RunOn,
        doc("Target: on the node itself. Elsewhere: on any healthy node. Default Target."),
    ] = RunOn.TARGET
    timeout: Annotated[
        Positive, doc("How long the operation's Pod may run before it is stopped and counts as failed. Default 15m.")
    ] = "15m"
    success: Annotated[Success, doc("What must be seen besides exit code 0. Default: nothing.")] = Success()
    pod_template: Annotated[
        Anything,
        doc(
            "An ordinary PodTemplateSpec. Its first container is given NODE_NAME, OPERATION, ATTEMPT_ID, "
            "EXPECTED_BOOT_ID and PARAMETERS. In the secretName of its volumes, $(NODE_NAME) stands for the node. "
            "Required."
        ),
    ]
    after: Annotated[
        tuple[TemplateName, ...],
        Meta(max_length=16),
        doc(
            "Operations that complete this one, in order, once it has worked. They are no attempts of their own, and "
            "what their own templates name here is not done.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()


class NodeOperationTemplate(Base, frozen=True, kw_only=True):
    """How an operation is done. Whoever may write one may run anything on any node."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "NodeOperationTemplate")
    metadata: ObjectMeta
    spec: Annotated[NodeOperationTemplateSpec, rules(_OVERDUE)]
