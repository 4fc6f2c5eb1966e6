"""NodeDisruptionBudget: how many nodes of a group may be unavailable at once, and the ledger of who holds them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.kube.api.common import (
    API_VERSION,
    Base,
    CountOrPercent,
    LabelSelector,
    Name,
    ObjectMeta,
    Rule,
    Time,
    Uid,
    doc,
    rules,
)


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
            "At so many quarantined nodes nothing new starts, as a count or a percentage of the nodes, rounded down "
            "but never below two nodes. A node whose case is Escalated counts here, not as unavailable. Default 20%."
        ),
    ] = "20%"
    fallback: Annotated[
        bool,
        doc("Counts only nodes that no other budget selects. Default false."),
    ] = False


_SPEC = rules(
    Rule(
        "has(self.maxUnavailable) != has(self.minAvailable)",
        "exactly one of maxUnavailable and minAvailable is required",
        ".maxUnavailable",
    ),
)


class Claim(Base, frozen=True, kw_only=True):
    """One node that one case holds."""

    node: Annotated[Name, doc("Name of the node.")]
    case: Annotated[Uid, doc("metadata.uid of the NodeRemediation.")]
    since: Annotated[Time | None, doc("Since when.")] = None
    quarantined: Annotated[bool, doc("The case is Escalated: the node waits for a person.")] = False


class NodeDisruptionBudgetStatus(Base, frozen=True, kw_only=True):
    """The ledger and its sum. Numbers are absent until they were first counted."""

    claims: Annotated[
        tuple[Claim, ...],
        Meta(max_length=2000),
        doc("Nodes held by cases. An entry goes only when its case has ended.", x_kubernetes_list_type="atomic"),
    ] = ()
    total: Annotated[int | None, doc("Nodes that this budget counts.")] = None
    unavailable: Annotated[int | None, doc("Of these, nodes that are claimed or otherwise out of service.")] = None
    allowed: Annotated[int | None, doc("Most nodes that may be unavailable now.")] = None
    quarantined: Annotated[int | None, doc("Nodes whose case is Escalated; they do not count as unavailable.")] = None
    observed_generation: Annotated[int, doc("The metadata.generation that was counted.")] = 0
    adopted_generation: Annotated[
        int, doc("The metadata.generation for which standing claims were taken over; before that nothing is admitted.")
    ] = 0
    adopted_uid: Annotated[str, Meta(max_length=64), doc("The metadata.uid for which the same was done.")] = (
        msgspec.field(name="adoptedUID", default="")
    )


class NodeDisruptionBudget(Base, frozen=True, kw_only=True):
    """How many nodes of a group may be unavailable at once by our doing."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "NodeDisruptionBudget")
    metadata: ObjectMeta
    spec: Annotated[NodeDisruptionBudgetSpec, _SPEC]
    status: NodeDisruptionBudgetStatus = NodeDisruptionBudgetStatus()
