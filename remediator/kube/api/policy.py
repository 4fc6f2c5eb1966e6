"""RemediationPolicy: which conditions, on which nodes, lead to which ladder."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.node import Status
from remediator.core.policy import Mode, Severity, TicketWhen
from remediator.core.policy import Urgency as UrgencyMode
from remediator.kube.api.common import (
    API_VERSION,
    Base,
    Conditions,
    Duration,
    LabelSelector,
    Message,
    Name,
    ObjectMeta,
    Positive,
    Reason,
    Rule,
    TemplateName,
    Time,
    doc,
    rules,
)

ConditionType = Annotated[str, Meta(pattern="^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$", max_length=128)]
Wanted = Annotated[
    Status,
    doc('Status that the Condition must have. "Unknown" only for Ready and with urgency.mode Never. Default "True".'),
]
Reasons = Annotated[
    tuple[Reason, ...],
    Meta(max_length=32),
    doc("Only these reasons of the Condition count. Default: any reason.", x_kubernetes_list_type="atomic"),
]
_UNKNOWN = Rule(
    "self.status != 'Unknown' || (has(self.condition) && self.condition == 'Ready')",
    'status "Unknown" is for the condition Ready only',
    ".status",
)
_NO_UNKNOWN = Rule("self.status != 'Unknown'", 'status "Unknown" does not go with others under all', ".status")


class ConditionMatch(Base, frozen=True, kw_only=True):
    """One node Condition in a list that must hold together."""

    condition: Annotated[ConditionType, doc("Type of the node Condition, for example GpuLost.")]
    status: Wanted = Status.TRUE
    reasons: Reasons = ()


class When(Base, frozen=True, kw_only=True):
    """One way in which a node counts as unhealthy: a Condition, or several that hold together (`all`)."""

    condition: Annotated[
        ConditionType | None, doc("Type of the node Condition, from node-problem-detector or the kubelet.")
    ] = None
    status: Wanted = Status.TRUE
    reasons: Reasons = ()
    for_: Annotated[
        Duration,
        doc("How long it must have held without a break before anything is done. Default 2m; 0s acts at once."),
    ] = msgspec.field(name="for", default="2m")
    all: Annotated[
        tuple[Annotated[ConditionMatch, rules(_NO_UNKNOWN)], ...],
        Meta(max_length=8),
        doc(
            "Conditions that must all hold at the same time, each for as long as `for`.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()


_WHEN = rules(
    _UNKNOWN,
    Rule(
        "has(self.alert) || has(self.condition) != (has(self.all) && size(self.all) > 0)",
        "exactly one of condition and all is required",
        ".condition",
    ),
    Rule(
        "!has(self.all) || (self.status == 'True' && !has(self.reasons))",
        "status and reasons belong inside the entries of all",
        ".all",
    ),
)


class Rung(Base, frozen=True, kw_only=True):
    """One step of the ladder."""

    operation: Annotated[TemplateName, doc("Name of the NodeOperationTemplate to run.")]
    attempts: Annotated[int, Meta(ge=1, le=10), doc("How many times to try it before the next rung. Default 1.")] = 1
    parameters: Annotated[
        dict[str, Annotated[str, Meta(max_length=1024)]],
        Meta(max_length=32),
        doc("Handed to the operation's program in PARAMETERS, all as text."),
    ] = msgspec.field(default_factory=dict)


class Verify(Base, frozen=True, kw_only=True):
    """When a node counts as recovered after an operation."""

    settle: Annotated[
        Duration, doc("How long the node must stay healthy without a break before it is given back. Default 5m.")
    ] = "5m"
    fresh: Annotated[
        Duration,
        doc(
            "How much newer than the end of the operation, by the node's own clock, its heartbeats must be. Default 3m."
        ),
    ] = "3m"
    timeout: Annotated[
        Positive, doc("How long to wait for recovery before the attempt counts as failed. Default 20m.")
    ] = "20m"


class Attempts(Base, frozen=True, kw_only=True):
    """How often a node may be operated on under this policy, over all its cases."""

    max: Annotated[int, Meta(ge=1, le=100), doc("Attempts within the window; then the case escalates. Default 4.")] = 4
    window: Annotated[Positive, doc("The time over which attempts are counted. Default 168h.")] = "168h"


class Urgency(Base, frozen=True, kw_only=True):
    """Whether running work may be disturbed."""

    mode: Annotated[
        UrgencyMode,
        doc("Now: at once. Never: change nothing, escalate to a person. Default Now."),
    ] = UrgencyMode.NOW


class PolicyTicket(Base, frozen=True, kw_only=True):
    """Whether a case gets a GitHub issue."""

    when: Annotated[
        TicketWhen,
        doc("Always: each case. OnEscalation: once a person is needed. Default Never."),
    ] = TicketWhen.NEVER
    route: Annotated[
        Name | None, doc("Name of the route that says which repository and people. Default: the default route.")
    ] = None


class Correlation(Base, frozen=True, kw_only=True):
    """When nodes that say the same thing have one cause that no node's repair cures."""

    nodes: Annotated[
        int, Meta(ge=2, le=1000), doc("So many nodes that have the condition and all of `by` in common. Default 3.")
    ] = 3
    within: Annotated[Positive, doc("Begun within this time of each other. Default 10m.")] = "10m"
    by: Annotated[
        tuple[Name, ...],
        Meta(max_length=8),
        doc(
            "What must be the same: message or reason of the condition, or keys of node labels such as "
            "topology.kubernetes.io/rack; all that are named. Default: the message.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()


class RemediationPolicySpec(Base, frozen=True, kw_only=True):
    """Which Conditions, on which nodes, lead to which operations."""

    mode: Annotated[
        Mode,
        doc(
            "Enforce: act. DryRun: decide and record what would be done, touch nothing. "
            "Paused: start nothing new, finish what runs. Required."
        ),
    ]
    node_selector: Annotated[
        LabelSelector, doc("Nodes that this policy covers. Required; {} is refused unless allNodes is true.")
    ]
    all_nodes: Annotated[bool, doc("Cover every node; nodeSelector must then be {}. Default false.")] = False
    when: Annotated[
        tuple[Annotated[When, _WHEN], ...],
        Meta(min_length=1, max_length=16),
        doc("What makes a node unhealthy; one matching entry is enough. Required.", x_kubernetes_list_type="atomic"),
    ]
    severity: Annotated[
        Severity,
        doc("Which cases go first when a budget does not admit all. Default Warning."),
    ] = Severity.WARNING
    ladder: Annotated[
        tuple[Rung, ...],
        Meta(max_length=16),
        doc(
            "Operations to try, mildest first. After the last one the case escalates and the node stays "
            "out of service. Required, unless urgency.mode is Never.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    verify: Annotated[Verify, doc("When the node counts as recovered after an operation.")] = Verify()
    attempts: Annotated[Attempts, doc("How often one node may be operated on before the case escalates.")] = Attempts()
    cooldown: Annotated[
        Duration, doc("Shortest time between the end of one case of a node and the start of the next. Default 30m.")
    ] = "30m"
    urgency: Annotated[Urgency | None, doc("Whether running work may be disturbed. Default: now.")] = None
    ticket: Annotated[PolicyTicket | None, doc("Whether a case gets a GitHub issue. Default: never.")] = None
    correlation: Annotated[
        Correlation | None,
        doc(
            "Hold cases of nodes that say the same thing at the same time, and open one ticket for all. Default: never."
        ),
    ] = None


_CHOOSES = (
    "(has(self.nodeSelector.matchLabels) && size(self.nodeSelector.matchLabels) > 0)"
    " || (has(self.nodeSelector.matchExpressions) && size(self.nodeSelector.matchExpressions) > 0)"
)
_CALLS = "has(self.urgency) && self.urgency.mode == 'Never'"
_SPEC = rules(
    Rule(
        f"({_CALLS}) || (has(self.ladder) && size(self.ladder) > 0)",
        "ladder must name at least one operation unless urgency.mode is Never",
        ".ladder",
    ),
    Rule(
        f"({_CALLS}) || !self.when.exists(entry, entry.status == 'Unknown')",
        'status "Unknown" proves no fault that an operation on the node could cure; it needs urgency.mode Never',
        ".when",
    ),
    Rule(
        f"(has(self.allNodes) && self.allNodes) || {_CHOOSES}",
        "nodeSelector must not be empty unless allNodes is true",
        ".nodeSelector",
    ),
    Rule(
        f"!(has(self.allNodes) && self.allNodes) || !({_CHOOSES})",
        "nodeSelector must be empty where allNodes is true",
        ".nodeSelector",
    ),
)


class AttemptRecord(Base, frozen=True, kw_only=True):
    """What became of one attempt."""

    operation: Annotated[Name, doc("Name of the NodeOperation.")]
    template: Annotated[TemplateName, doc("Name of its NodeOperationTemplate.")]
    ended_at: Annotated[Time, doc("When it ended.")]
    in_vain: Annotated[bool, doc("Its case went to a user: it failed, or the fault outlived it.")] = False
    node: Annotated[str, Meta(max_length=253), doc("Name of the Node.")] = ""


class FailureBreaker(Base, frozen=True, kw_only=True):
    """The breaker that opens when 4 of the last 8 attempts of a day, under a policy or of a template, were in vain."""

    opened_at: Annotated[Time | None, doc("Since when it is open; absent while it is closed.")] = None
    message: Annotated[Message, doc("Why it is open.")] = ""
    attempts: Annotated[
        tuple[AttemptRecord, ...],
        Meta(max_length=16),
        doc("The newest attempts under this policy, oldest first.", x_kubernetes_list_type="atomic"),
    ] = ()


class RemediationPolicyStatus(Base, frozen=True, kw_only=True):
    """What the controller makes of the policy."""

    observed_generation: Annotated[int, doc("The metadata.generation that was judged.")] = 0
    conditions: Conditions = ()
    breaker: Annotated[FailureBreaker | None, doc("The breaker on failures.")] = None


class RemediationPolicy(Base, frozen=True, kw_only=True):
    """Says which node Conditions, on which nodes, lead to which operations, and how careful to be."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "RemediationPolicy")
    metadata: ObjectMeta
    spec: Annotated[RemediationPolicySpec, _SPEC]
    status: RemediationPolicyStatus = RemediationPolicyStatus()
