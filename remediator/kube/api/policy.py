"""RemediationPolicy: which conditions, on which nodes, lead to which ladder."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.policy import Approval, InventoryMode, Mode, Release, Severity, TicketWhen
from remediator.kube.api.blast_radius import LIMIT, MaxBlastRadius
from remediator.kube.api.common import (
    API_VERSION,
    Base,
    Conditions,
    CountOrPercent,
    LabelKey,
    LabelSelector,
    Name,
    ObjectMeta,
    Operation,
    Rule,
    doc,
    rules,
    shaped,
)
from remediator.kube.api.confirm import Confirm
from remediator.kube.api.durations import Duration, HistoryWindow, Proof, ShortWindow, Timeout
from remediator.kube.api.failure_breaker import FailureBreaker
from remediator.kube.api.gates import URGENCY, Urgency, Window
from remediator.kube.api.new_criterion import NewCriterion
from remediator.kube.api.recurrence import Lemon, Relapse
from remediator.kube.api.when import WHEN, When

# Where messages say that something is wrong.
IDLE_TEST_WINDOW = "spec.idleTest.window"
IDLE_TEST_PROBE = "spec.idleTest.probe"


class Rung(Base, frozen=True, kw_only=True):
    """One rung of the ladder."""

    operation: Annotated[Operation, doc("Name of the NodeOperationTemplate to run.")]
    attempts: Annotated[int, Meta(ge=1, le=10), doc("How many times to try it before the next rung. Default 1.")] = 1
    parameters: Annotated[
        dict[str, Annotated[str, Meta(max_length=1024)]],
        Meta(max_length=32),
        doc("Handed to the operation's program in PARAMETERS, all as text."),
    ] = msgspec.field(default_factory=dict)


class Verify(Base, frozen=True, kw_only=True):
    """When a node counts as recovered after an operation."""

    settle: Annotated[
        Proof, doc("How long the node must stay healthy without a break before it is given back. Default 5m.")
    ] = "5m"
    fresh: Annotated[
        Proof,
        doc(
            "How much newer than the end of the operation, by the node's own clock, its heartbeats must be. Default 3m."
        ),
    ] = "3m"
    timeout: Annotated[
        Timeout, doc("How long to wait for recovery before the attempt counts as failed. Default 20m.")
    ] = "20m"
    probe: Annotated[
        Operation | None,
        doc(
            "Name of a NodeOperationTemplate whose operation must succeed once the conditions are healthy, before the "
            "node is given back. Exit 1: the attempt was in vain. Exit 2, or no result: it is tried again until "
            "timeout. Default: none."
        ),
    ] = None
    inventory: Annotated[
        InventoryMode,
        doc(
            "Keep: a node that shows fewer GPUs than it was known to have when the case was opened, or in an earlier "
            "case, has not recovered; after timeout the attempt was in vain. Ignore: nobody counts GPUs. Default Keep."
        ),
    ] = InventoryMode.KEEP


class Attempts(Base, frozen=True, kw_only=True):
    """How often a node may be operated on under this policy, over all its cases."""

    max: Annotated[int, Meta(ge=1, le=100), doc("Attempts within the window; then the case escalates. Default 4.")] = 4
    window: Annotated[HistoryWindow, doc("The time over which attempts are counted. Default 168h.")] = "168h"


class Escalation(Base, frozen=True, kw_only=True):
    """What becomes of a node whose ladder is spent."""

    release: Annotated[
        Release,
        doc(
            "Manual: it stays out of service until a person sets spec.release of its case. WhenHealthy: it is given "
            "back by itself once it has proven its health as after a repair, once within attempts.window. "
            "Default Manual."
        ),
    ] = Release.MANUAL


class Admit(Base, frozen=True, kw_only=True):
    """What a new node must pass before it works."""

    probe: Annotated[
        Operation,
        doc("Name of a NodeOperationTemplate whose operation must succeed, once the conditions of `when` are healthy."),
    ]
    taint: Annotated[
        str,
        shaped(
            r"^remediator[.]dev/[a-z]([-a-z0-9]{0,61}[a-z0-9])?$",
            "must be a key of remediator.dev, such as remediator.dev/unproven",
            80,
        ),
        doc(
            "Key of the taint that keeps work off until then. The kubelet puts it on (--register-with-taints, effect "
            "NoSchedule); it is ours to take off. Required."
        ),
    ]


class IdleTest(Base, frozen=True, kw_only=True):
    """A probe that is run again and again on nodes whose GPUs nobody uses."""

    probe: Annotated[
        Operation,
        doc(
            "Name of a NodeOperationTemplate whose program is run. Exit 0: passed. Exit 1: failed, which the Condition "
            "IdleTestFailed says. Whatever else becomes of it proves nothing."
        ),
    ]
    share: Annotated[
        CountOrPercent,
        doc(
            "Most nodes that are tested at once, as a count or a percentage of the nodes that the policy selects, "
            "rounded down but never below one node. Required."
        ),
    ]
    window: Annotated[
        Window,
        doc("When tests may start; each idle node is tested once each time that it opens. Required."),
    ]


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
        int,
        Meta(ge=2, le=1000),
        doc("The number of nodes that have the condition and all of `by` in common. Default 3."),
    ] = 3
    within: Annotated[ShortWindow, doc("How far apart their conditions may have begun. Default 10m.")] = "10m"
    by: Annotated[
        tuple[LabelKey, ...],
        Meta(max_length=8),
        doc(
            "What must be the same: message or reason of the condition, kernelVersion (status.nodeInfo) or "
            "driverVersion (label of GPU Feature Discovery) of the node, or keys of node labels such as "
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
        tuple[Annotated[When, WHEN], ...],
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
    confirm: Annotated[
        Confirm | None, doc("A second source that must agree before anything is done. Default: none is asked.")
    ] = None
    cooldown: Annotated[
        Duration, doc("Shortest time between the end of one case of a node and the start of the next. Default 30m.")
    ] = "30m"
    relapse: Annotated[
        Relapse | None,
        doc("A new case soon after the last one starts one rung higher. Default: it starts with the first."),
    ] = None
    lemon: Annotated[
        Lemon | None,
        doc("After so many cases of a node or a board a case escalates instead of another repair. Default: never."),
    ] = None
    urgency: Annotated[Urgency | None, URGENCY, doc("Whether running work may be disturbed. Default: now.")] = None
    windows: Annotated[
        tuple[Window, ...],
        Meta(max_length=16),
        doc(
            "Times in which cases may claim their node and begin an attempt; what has begun goes on. Default: always.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    approval: Annotated[
        Approval,
        doc("Required: a person must approve each case (spec.approved) before anything starts. Default None."),
    ] = Approval.NONE
    require_spare_gpus: Annotated[
        bool,
        doc(
            "Start a case only where the Pods of its node that hold GPUs would fit on other nodes: each as a whole, on "
            "healthy schedulable nodes whose taints its own node has, too. Default false."
        ),
    ] = msgspec.field(name="requireSpareGPUs", default=False)
    max_blast_radius: Annotated[
        MaxBlastRadius | None,
        LIMIT,
        doc(
            "What a start may end at most. A case that would end more, or of which nobody can tell, is held until a "
            "person approves it (spec.approved), whatever the severity. Default: any work."
        ),
    ] = None
    admit: Annotated[
        Admit | None,
        doc("Let a new node work only once its conditions are healthy and a probe has succeeded. Default: at once."),
    ] = None
    idle_test: Annotated[
        IdleTest | None,
        doc("Test nodes whose GPUs nobody uses, a few at a time, by Pods that give way to any other. Default: none."),
    ] = None
    ticket: Annotated[PolicyTicket | None, doc("Whether a case gets a GitHub issue. Default: never.")] = None
    escalation: Annotated[Escalation | None, doc("What becomes of a node whose ladder is spent.")] = None
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
        "!has(self.admit) || !(self.admit.taint in ['remediator.dev/case', 'remediator.dev/degraded'])",
        "this taint says which case holds a node, or that it waits for one; name another",
        ".admit.taint",
    ),
    Rule(
        f"({_CALLS}) || (has(self.ladder) && size(self.ladder) > 0)",
        "ladder must name at least one operation unless urgency.mode is Never",
        ".ladder",
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


class RemediationPolicyStatus(Base, frozen=True, kw_only=True):
    """What the controller makes of the policy."""

    observed_generation: Annotated[int, doc("The metadata.generation that was judged.")] = 0
    selected_nodes: Annotated[
        int | None, doc("How many nodes spec.nodeSelector selects; counted anew at most once a minute.")
    ] = None
    conditions: Conditions = ()
    criteria: Annotated[
        tuple[NewCriterion, ...],
        Meta(max_length=64),
        doc("The criteria that the policy asks for and that are new in a release.", x_kubernetes_list_type="atomic"),
    ] = ()
    breaker: Annotated[
        FailureBreaker | None,
        doc("The breaker on failures: 4 of the last 8 attempts under this policy, or of one of its templates."),
    ] = None


class RemediationPolicy(Base, frozen=True, kw_only=True):
    """Says which node Conditions, on which nodes, lead to which operations, and how careful to be."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "RemediationPolicy")
    metadata: ObjectMeta
    spec: Annotated[RemediationPolicySpec, _SPEC]
    status: RemediationPolicyStatus = RemediationPolicyStatus()
