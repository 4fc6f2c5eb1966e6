"""NodeDisruptionBudget: how many nodes of a group may be unavailable at once, and the ledger of who holds them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.kube.api.budget_breaker import BREAKER_RULES, BudgetBreaker
from remediator.kube.api.common import (
    API_VERSION,
    Base,
    CountOrPercent,
    LabelKey,
    LabelSelector,
    Name,
    ObjectMeta,
    Rule,
    Time,
    Uid,
    doc,
    rules,
)
from remediator.kube.api.failure_breaker import FailureBreaker


class NodeDisruptionBudgetSpec(Base, frozen=True, kw_only=True):
    """Which nodes, and how many of them may be unavailable at once."""

    selector: Annotated[LabelSelector, doc("Nodes that this budget counts; {} is every node. Required.")]
    max_unavailable: Annotated[
        CountOrPercent | None,
        doc(
            "Most nodes that may be unavailable, as a count or a percentage of the nodes, rounded down but never below "
            "one node."
        ),
    ] = None
    min_available: Annotated[
        CountOrPercent | None,
        doc("Fewest nodes that must stay available, as a count or a percentage of the nodes, rounded up."),
    ] = None
    max_quarantined: Annotated[
        CountOrPercent,
        doc(
            "Number of quarantined nodes at which nothing new starts, or a percentage of the nodes, rounded down "
            "but never below two nodes. A node whose case is Escalated counts here, not as unavailable. Default 20%."
        ),
    ] = "20%"
    fallback: Annotated[
        bool,
        doc("Counts only nodes that no other budget selects. Default false."),
    ] = False
    group_by: Annotated[
        LabelKey | None,
        doc(
            "Label key: one budget for each value that the nodes have. Every amount then holds for each group; a "
            "percentage in maxUnavailable or maxQuarantined also for all groups together. Nothing starts on a node "
            "without the label."
        ),
    ] = None
    breaker: Annotated[
        BudgetBreaker | None,
        doc("Stops new disruption in a storm of faults under this budget; with groupBy, in all its groups together."),
    ] = None


_SPEC = rules(
    Rule(
        "has(self.maxUnavailable) != has(self.minAvailable)",
        "exactly one of maxUnavailable and minAvailable is required; write one of them",
        ".maxUnavailable",
    ),
    *BREAKER_RULES,
)


class Claim(Base, frozen=True, kw_only=True):
    """One node that one case holds."""

    node: Annotated[Name, doc("Name of the node.")]
    case: Annotated[Uid, doc("metadata.uid of the NodeRemediation.")]
    since: Annotated[Time | None, doc("Since when the case holds the node.")] = None
    quarantined: Annotated[bool, doc("The case is Escalated: the node waits for a person.")] = False
    group: Annotated[
        str,
        Meta(max_length=63),
        doc("The node's group when it was claimed; it stays so where the label changes. Absent without groupBy."),
    ] = ""


class GroupStatus(Base, frozen=True, kw_only=True):
    """The sum of one group."""

    group: Annotated[str, Meta(max_length=63), doc("Value of the label that groupBy names.")]
    total: Annotated[int, doc("Nodes of the group.")]
    unavailable: Annotated[int, doc("Of these, nodes that are claimed or otherwise out of service.")]
    allowed: Annotated[int, doc("How many more of them may become unavailable.")]
    quarantined: Annotated[int, doc("Nodes whose case is Escalated; they do not count as unavailable.")] = 0


class NodeDisruptionBudgetStatus(Base, frozen=True, kw_only=True):
    """The ledger and its sum. Numbers are absent until they were first counted."""

    claims: Annotated[
        tuple[Claim, ...],
        Meta(max_length=2000),
        doc("Nodes held by cases. An entry goes only when its case has ended.", x_kubernetes_list_type="atomic"),
    ] = ()
    total: Annotated[int | None, doc("Nodes that this budget counts.")] = None
    unavailable: Annotated[int | None, doc("Of these, nodes that are claimed or otherwise out of service.")] = None
    allowed: Annotated[int | None, doc("How many more nodes may become unavailable now.")] = None
    quarantined: Annotated[int | None, doc("Nodes whose case is Escalated; they do not count as unavailable.")] = None
    group_total: Annotated[int, doc("With groupBy: how many groups there are.")] = 0
    groups_full: Annotated[
        int,
        doc("With groupBy: in how many of them no more node may become unavailable, or too many are quarantined."),
    ] = 0
    ungrouped: Annotated[int, doc("With groupBy: nodes without the label; nothing starts on them.")] = 0
    groups: Annotated[
        tuple[GroupStatus, ...],
        Meta(max_length=64),
        doc(
            "With groupBy: groups of which a node is unavailable or quarantined, the fullest 64 first.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    grouped_by: Annotated[
        str,
        Meta(max_length=317),
        doc("The label key that the groups of the claims go by; that of groupBy when adopted."),
    ] = ""
    breaker: Annotated[FailureBreaker | None, doc("What the breaker on failures rests on, and why it is open.")] = None
    observed_generation: Annotated[int, doc("The metadata.generation that was counted.")] = 0
    adopted_generation: Annotated[
        int, doc("The metadata.generation for which standing claims were taken over; before that nothing is admitted.")
    ] = 0
    adopted_uid: Annotated[str, Meta(max_length=64), doc("The metadata.uid for which they were taken over.")] = (
        msgspec.field(name="adoptedUID", default="")
    )


class NodeDisruptionBudget(Base, frozen=True, kw_only=True):
    """How many nodes of a group may be unavailable at once by our doing."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "NodeDisruptionBudget")
    metadata: ObjectMeta
    spec: Annotated[NodeDisruptionBudgetSpec, _SPEC]
    status: NodeDisruptionBudgetStatus = NodeDisruptionBudgetStatus()
