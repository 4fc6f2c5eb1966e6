"""NodeOperationTemplate: how an operation is done."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.template import RunOn
from remediator.kube.api.common import (
    API_VERSION,
    Anything,
    Base,
    LabelKey,
    ObjectMeta,
    Operation,
    Rule,
    doc,
    rules,
)
from remediator.kube.api.drain import DRAIN_RULES, Drain
from remediator.kube.api.durations import Timeout

_CONTAINERS = {
    "type": "array",
    "minItems": 1,
    "maxItems": 256,
    "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "description": "The containers of the Pod; the first one does the operation. Required.",
}
_POD = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"containers": _CONTAINERS},
    "required": ["containers"],
    "description": "The spec of the Pod. Required.",
}
# Of a Pod the schema knows no more than that it has something to run.
PodTemplate = Annotated[Anything, Meta(extra_json_schema={"properties": {"spec": _POD}, "required": ["spec"]})]


class Success(Base, frozen=True, kw_only=True):
    """What must be seen besides exit code 0; what is asked for here outranks the exit code."""

    boot_id_changed: Annotated[bool, doc("The node must come back with another bootID. Default false.")] = (
        msgspec.field(name="bootIDChanged", default=False)
    )
    node_ready: Annotated[bool, doc("The node must be Ready. Default false.")] = False


class TemplateNeighbours(Base, frozen=True, kw_only=True):
    """Idle nodes to which the program measures."""

    same_label: Annotated[
        LabelKey,
        doc("Neighbours have the same value of this node label, which names the nodes of one leaf switch. Required."),
    ]
    at_once: Annotated[
        int,
        Meta(ge=1, le=100),
        doc("How many neighbours may be taken at once, by all operations of this template together. Default 2."),
    ] = 2


NEIGHBOUR_RULE = Rule(
    "!has(self.neighbours) || !has(self.runOn) || self.runOn == 'Target'",
    "neighbours needs runOn: Target; only a program on the node itself measures from there",
    ".neighbours",
)


class NodeOperationTemplateSpec(Base, frozen=True, kw_only=True):
    """How an operation is done: what happens to the node's Pods, where it runs, and when it has succeeded."""

    drain: Annotated[Drain, doc("How Pods are moved off the node first. Required.")]
    run_on: Annotated[
        RunOn,
        doc(
            "Target: on the node itself. Elsewhere: on any healthy node. Watchdog: by the watchdog of the node, which "
            "needs no kubelet (docs/watchdog.md); the Pod is its order, and nothing starts it. Default Target."
        ),
    ] = RunOn.TARGET
    timeout: Annotated[
        Timeout, doc("How long the operation's Pod may run before it is stopped and counts as failed. Default 15m.")
    ] = "15m"
    success: Annotated[Success, doc("What must be seen besides exit code 0. Default: nothing.")] = Success()
    pod_template: Annotated[
        PodTemplate,
        doc(
            "An ordinary PodTemplateSpec. Its first container is given NODE_NAME, OPERATION, ATTEMPT_ID, "
            "EXPECTED_BOOT_ID, PARAMETERS, CASE_NAME and ON_BEHALF_OF. In the secretName of its volumes, $(NODE_NAME) "
            "stands for the node. Required."
        ),
    ]
    pause_gpu_operands: Annotated[
        bool,
        doc(
            "While its Pod works, the operands of the GPU operator that use GPUs are paused on the node, by their "
            "labels nvidia.com/gpu.deploy.NAME. The driver and the container toolkit go on. Default false."
        ),
    ] = False
    neighbours: Annotated[
        TemplateNeighbours | None,
        doc(
            "Let the program measure InfiniBand to one or two idle nodes beside the node; the other end is a Pod of "
            "this template that gives way to any other. Of what is shipped gpu-check can do that. Default: none."
        ),
    ] = None
    after: Annotated[
        tuple[Operation, ...],
        Meta(max_length=16),
        doc(
            "Operations that complete this one, in order, once it has worked. They are no attempts of their own, and "
            "what their own templates name here is not done.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    covers: Annotated[
        tuple[Operation, ...],
        Meta(max_length=16),
        doc(
            "Operations that need not be tried once this one has worked, with all that they cover themselves. Of "
            "several policies that match a node, the one whose operation covers the others' goes first.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()


class NodeOperationTemplate(Base, frozen=True, kw_only=True):
    """How an operation is done. Whoever may write one may run anything on any node."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "NodeOperationTemplate")
    metadata: ObjectMeta
    spec: Annotated[NodeOperationTemplateSpec, rules(*DRAIN_RULES, NEIGHBOUR_RULE)]
