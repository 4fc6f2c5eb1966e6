"""The kinds of node-operation-controller (nodeops.k8s.preferred.jp/v1alpha1), as their CRDs have them.

A field that they do not have is an error: their API server drops it in silence, so the manifest never did what it says.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from remediator.kube.api import ObjectMeta

GROUP = "nodeops.k8s.preferred.jp"
NODE_NAME = f"{GROUP}/nodename"  # the annotation by which a Pod of theirs learns its node


class Strict(msgspec.Struct, rename="camel", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every type below."""


class JobTemplate(Strict, frozen=True, kw_only=True):
    """The Job that is the operation; its spec is batch/v1's, as it is."""

    metadata: ObjectMeta = ObjectMeta()
    spec: dict[str, Any]


class OperationSpec(Strict, frozen=True, kw_only=True):
    """What a template has: everything but the node."""

    job_template: JobTemplate
    eviction_strategy: str = ""
    skip_waiting_for_eviction: bool = False
    node_disruption_budget_selector: dict[str, str] = msgspec.field(default_factory=dict)


class NodeOperationSpec(OperationSpec, frozen=True, kw_only=True):
    """One operation on one node."""

    node_name: str


class OperationTemplate(Strict, frozen=True, kw_only=True):
    """`metadata` is that of the operations that are made of it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: OperationSpec


class NodeOperationTemplateSpec(Strict, frozen=True, kw_only=True):
    """See OperationTemplate."""

    template: OperationTemplate


class ConditionRule(Strict, frozen=True, kw_only=True):
    """One Condition, with the status that is a fault."""

    type: str
    status: str


class RemediationRule(Strict, frozen=True, kw_only=True):
    """All of them must hold."""

    conditions: tuple[ConditionRule, ...] = ()


class RemediationSpec(Strict, frozen=True, kw_only=True):
    """What a template has: everything but the node."""

    rule: RemediationRule
    node_operation_template_name: str


class NodeRemediationSpec(RemediationSpec, frozen=True, kw_only=True):
    """What to do to one node when its Conditions are a fault."""

    node_name: str


class RemediationTemplate(Strict, frozen=True, kw_only=True):
    """`metadata` is that of the remediations that are made of it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RemediationSpec


class NodeRemediationTemplateSpec(Strict, frozen=True, kw_only=True):
    """The same for each node that has these labels."""

    node_selector: dict[str, str]
    template: RemediationTemplate


Amount = Annotated[int, Meta(ge=0)]


class BudgetSpec(Strict, frozen=True, kw_only=True):
    """How many nodes with these labels may be unavailable. Nodes with these taints are."""

    selector: dict[str, str]
    max_unavailable: Amount | None = None
    min_available: Amount | None = None
    taint_targets: tuple[dict[str, str], ...] = ()


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Only of a NodeOperation is it looked at."""

    phase: str = ""


class Their(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """What every object of theirs has."""

    kind: str
    metadata: ObjectMeta
    status: Status = Status()


class NodeOperation(Their, frozen=True, kw_only=True):
    """See NodeOperationSpec."""

    spec: NodeOperationSpec


class NodeOperationTemplate(Their, frozen=True, kw_only=True):
    """See NodeOperationTemplateSpec."""

    spec: NodeOperationTemplateSpec


class NodeRemediation(Their, frozen=True, kw_only=True):
    """See NodeRemediationSpec."""

    spec: NodeRemediationSpec


class NodeRemediationTemplate(Their, frozen=True, kw_only=True):
    """See NodeRemediationTemplateSpec."""

    spec: NodeRemediationTemplateSpec


class NodeDisruptionBudget(Their, frozen=True, kw_only=True):
    """See BudgetSpec."""

    spec: BudgetSpec
