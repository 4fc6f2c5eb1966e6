"""NodeRemediation: one case of one unhealthy node, from the decision to recovery or escalation."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.case import MOST_RETRIES, AttemptOutcome, Diagnosis, Phase
from remediator.kube.api.blast_radius import BlastRadius
from remediator.kube.api.common import (
    API_VERSION,
    Anything,
    Base,
    Because,
    Message,
    Name,
    ObjectMeta,
    Reason,
    Rule,
    TemplateName,
    Time,
    Uid,
    User,
    doc,
    fixed,
    rules,
)

# The field selector of the cases that have not ended.
OPEN = ",".join(f"status.phase!={phase.value}" for phase in (Phase.RECOVERED, Phase.CANCELLED))


class Trigger(Base, frozen=True, kw_only=True):
    """What was seen when the case was opened."""

    condition: Annotated[Name, doc("Type of the node Condition; empty for a case made by hand.")] | None = None
    status: Annotated[str, Meta(max_length=16), doc("Its status.")] = ""
    reason: Annotated[Reason, doc("Its reason.")] = ""
    message: Annotated[Message, doc("Its message.")] = ""
    since: Annotated[Time | None, doc("Since when it held.")] = None
    cause: Annotated[
        Message, doc("What the policy compared with other nodes (correlation.by), where that is not the message.")
    ] = ""
    devices: Annotated[
        dict[Annotated[str, Meta(max_length=128)], Annotated[int, Meta(ge=0)]],
        Meta(max_length=16),
        doc("GPUs that the node was known to have then: its capacity by resource, and the label nvidia.com/gpu.count."),
    ] = msgspec.field(default_factory=dict)
    layout: Annotated[
        dict[Annotated[str, Meta(max_length=128)], Annotated[str, Meta(max_length=64)]],
        Meta(max_length=16),
        doc("How these were divided (MIG) and shared then: labels of the node, without those that say neither."),
    ] = msgspec.field(default_factory=dict)


class KeepOut(Base, frozen=True, kw_only=True):
    """That a user keeps the node once their operation has succeeded: it is not given back by itself."""

    until: Annotated[Time, doc("Until when they mean to have it. After that everybody is told that it is overdue.")]
    reason: Annotated[Because, doc("Why; shown wherever the node is shown as taken out.")] = ""


class Manual(Base, frozen=True, kw_only=True):
    """The NodeOperation of a user that a case carries out."""

    operation: Annotated[Name, doc("Name of the NodeOperation; its status shows how far the case is.")]
    uid: Annotated[Uid, doc("metadata.uid of it.")]
    template_name: Annotated[TemplateName, doc("The NodeOperationTemplate that it asks for.")]
    parameters: Annotated[
        dict[str, Annotated[str, Meta(max_length=1024)]],
        Meta(max_length=32),
        doc("Handed to the operation's program in PARAMETERS."),
    ] = msgspec.field(default_factory=dict)
    requested_by: Annotated[User | None, doc("Who asks for it.")] = None


class NewNode(Base, frozen=True, kw_only=True):
    """The gate at which a new node waits."""

    taint: Annotated[str, Meta(max_length=80), doc("Key of the taint that is taken off once the node has passed.")]
    machine: Annotated[
        str,
        Meta(max_length=64),
        doc("One word for systemUUID and machineID of the node: another machine of its name must pass by itself."),
    ] = ""


class NodeRemediationSpec(Base, frozen=True, kw_only=True):
    """Which node, under which policy, and what a person says about it."""

    node_name: Annotated[Name, fixed("nodeName"), doc("The node. Immutable.")]
    node_uid: Annotated[
        Uid, fixed("nodeUID"), doc("metadata.uid of the node: a later node of this name is another one. Immutable.")
    ] = msgspec.field(name="nodeUID")
    policy_name: Annotated[
        Name | None, doc("The RemediationPolicy that rules this case. Required, unless `manual` is there. Immutable.")
    ] = None
    manual: Annotated[
        Manual | None,
        doc("The NodeOperation of a user that this case carries out; only the controller sets it. Immutable."),
    ] = None
    keep_out: Annotated[
        KeepOut | None,
        doc(
            "Until when the user of `manual` keeps the node once their operation has succeeded. Write another time to "
            "have it longer, or shorter; set `release` to give it back."
        ),
    ] = None
    new_node: Annotated[
        NewNode | None,
        doc("The gate that a new node must pass: the case asks for the probe alone. Immutable."),
    ] = None
    trigger: Annotated[Trigger, doc("What was seen when the case was opened.")] = Trigger()
    hold: Annotated[bool, doc("Set true to let nothing new be started in this case. Default false.")] = False
    hold_set_by: Annotated[User | None, doc("The user who has set `hold`; admission fills it in.")] = None
    release: Annotated[
        bool,
        doc(
            "Set true to give an Escalated node back: taint and claims are taken off. Refused before the case is "
            "Escalated. Default false."
        ),
    ] = False
    approved: Annotated[
        bool,
        doc(
            "Set true to let this case start where its policy has approval: Required, or where it would end more than "
            "maxBlastRadius of its policy; false takes it back: nothing new starts. Default false."
        ),
    ] = False
    approved_by: Annotated[User | None, doc("The user who has set `approved`; admission fills it in.")] = None
    release_set_by: Annotated[User | None, doc("The user who has set `release`; admission fills it in.")] = None
    retry: Annotated[
        int,
        Meta(ge=0, le=MOST_RETRIES),
        doc(
            "Raise it by one to let an Escalated case try again, from the rung that it came to last; attempts.max of "
            "the policy still counts. Default 0."
        ),
    ] = 0
    retry_set_by: Annotated[User | None, doc("The user who has set `retry`; admission fills it in.")] = None


_SPEC = rules(
    Rule(
        "has(self.policyName) != has(self.manual)",
        "policyName is required; for one operation that no policy asks for, make a NodeOperation",
        ".policyName",
    ),
    Rule(
        "has(self.policyName) == has(oldSelf.policyName) "
        "&& (!has(self.policyName) || self.policyName == oldSelf.policyName)",
        "policyName is immutable",
        ".policyName",
    ),
    Rule(
        "has(self.manual) == has(oldSelf.manual) && (!has(self.manual) || self.manual == oldSelf.manual)",
        "manual is immutable",
        ".manual",
    ),
    Rule(
        "!has(self.keepOut) || has(self.manual)",
        "keepOut is of cases of users' operations; to take a node out: remediator take-out NODE --for LENGTH",
        ".keepOut",
    ),
    Rule(
        "has(self.keepOut) == has(oldSelf.keepOut)",
        "keepOut can be changed, not added or removed; set release to true to give the node back",
        ".keepOut",
    ),
    Rule(
        "has(self.newNode) == has(oldSelf.newNode) && (!has(self.newNode) || self.newNode == oldSelf.newNode)",
        "newNode is immutable",
        ".newNode",
    ),
)

# On the whole object, since the phase stands in the status. Set earlier, it would give the node back in the moment in
# which the case escalates, before a person has seen why.
RELEASED_ONCE_ESCALATED = Rule(
    "!has(self.spec.release) || !self.spec.release || (has(oldSelf.spec.release) && oldSelf.spec.release) "
    f"|| (has(self.status) && has(self.status.phase) && self.status.phase == '{Phase.ESCALATED.value}')",
    "gives back the node of an Escalated case, and this one is not Escalated: set it once it is; to end the case now, "
    "delete it",
    ".spec.release",
)


class Blocker(Base, frozen=True, kw_only=True):
    """One reason why nothing is started now."""

    reason: Annotated[Reason, doc("One word; the same in events, metrics and explain.")]
    message: Annotated[Message, doc("One sentence with names and numbers.")] = ""
    since: Annotated[
        Time | None, doc("Since when this reason holds the case without a break, whatever the message says.")
    ] = None
    until: Annotated[Time | None, doc("When it ends by itself, if that is known.")] = None
    reported: Annotated[bool, doc("It has lasted so long that it was reported to a user.")] = False


class Intent(Base, frozen=True, kw_only=True):
    """Written before the operation Pod is made, so that no crash can run it twice."""

    boot_id: Annotated[str, Meta(max_length=64), doc("bootID of the node just before.")] = msgspec.field(
        name="bootID", default=""
    )
    at: Annotated[Time | None, doc("When it was written.")] = None


class Attempt(Base, frozen=True, kw_only=True):
    """One operation of this case."""

    operation: Annotated[Name, doc("Name of the NodeOperation.")]
    template: Annotated[TemplateName, doc("Name of its NodeOperationTemplate.")]
    rung: Annotated[int, doc("Number of the rung in the policy's ladder, counted from 1.")]
    attempt: Annotated[int, doc("Number of the attempt within the case, counted from 1.")]
    follows: Annotated[
        str, Meta(max_length=253), doc("The NodeOperation that this one completes: it is no attempt of its own.")
    ] = ""
    probe: Annotated[
        bool, doc("It only proves health: the ladder, attempts.max and the breaker do not count it. Default false.")
    ] = False
    counts: Annotated[
        bool,
        doc("False where nothing ran: it is no attempt for the ladder, attempts.max and the breaker. Default True."),
    ] = True
    intent: Annotated[
        Intent | None, doc("The boot in which it was begun; once its intent is written, the boot of the intent.")
    ] = None
    started_at: Annotated[Time | None, doc("When it started.")] = None
    finished_at: Annotated[Time | None, doc("When its outcome was recorded.")] = None
    outcome: Annotated[AttemptOutcome, doc("How it ended; absent while it runs.")] = AttemptOutcome.OPEN
    reason: Annotated[Reason, doc("Why the operation ended so, in one word.")] = ""
    message: Annotated[Message, doc("Last message of the operation.")] = ""
    node_heartbeats: Annotated[
        dict[Annotated[str, Meta(max_length=316)], Time],
        Meta(max_length=64),
        doc("Heartbeats of the node's Conditions, by the node's own clock, when the operation had ended."),
    ] = msgspec.field(default_factory=dict)


class Diagnostics(Base, frozen=True, kw_only=True):
    """The read-only look at the node before anything disturbs it."""

    outcome: Annotated[Diagnosis, doc("How it ended. A failure stops nothing.")]


class TimelineEntry(Base, frozen=True, kw_only=True):
    """One thing that happened in the case."""

    at: Annotated[Time, doc("When it happened.")]
    reason: Annotated[Reason, doc("What happened, in one word.")]
    message: Annotated[Message, doc("One sentence.")] = ""


class PastCase(Base, frozen=True, kw_only=True):
    """An earlier case of the node, or of a board in it."""

    case: Annotated[Name, doc("Name of the NodeRemediation.")]
    node_name: Annotated[Name, doc("Its node.")]
    policy_name: Annotated[Name, doc("Its policy.")]
    ended_at: Annotated[Time, doc("When it ended.")]
    operations: Annotated[
        tuple[TemplateName, ...],
        Meta(max_length=160),
        doc("What was done to the node.", x_kubernetes_list_type="atomic"),
    ] = ()
    outcome: Annotated[Phase, doc("How it ended.")] = Phase.NEW


class NodeRemediationStatus(Base, frozen=True, kw_only=True):
    """Where the case stands."""

    phase: Annotated[Phase, doc("Where the case stands; the last three are final.")] = Phase.NEW
    reason: Annotated[Reason, doc("Why it is in this phase, in one word.")] = ""
    message: Annotated[Message, doc("Why it is in this phase, in one sentence.")] = ""
    rung: Annotated[int | None, doc("Number of the current rung in the policy's ladder, counted from 1.")] = None
    blocked_by: Annotated[
        tuple[Blocker, ...],
        Meta(max_length=16),
        doc("Why nothing is started now; empty when nothing blocks it.", x_kubernetes_list_type="atomic"),
    ] = ()
    evidence: Annotated[
        Anything, doc("What the Condition and the diagnostics said: text, bootID, GPU UUIDs and serials, kernel lines.")
    ] = msgspec.field(default_factory=dict)
    diagnostics: Annotated[Diagnostics | None, doc("The read-only look before the first operation.")] = None
    attempts: Annotated[
        tuple[Attempt, ...],
        Meta(max_length=160),
        doc("Every operation of this case, oldest first.", x_kubernetes_list_type="atomic"),
    ] = ()
    history: Annotated[
        tuple[PastCase, ...],
        Meta(max_length=10),
        doc(
            "Earlier cases because of which this case was escalated, oldest first, the newest 10.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    blast_radius: Annotated[
        BlastRadius | None, doc("The work on the node that a start ends, as it was before the start.")
    ] = None
    started_at: Annotated[Time | None, doc("When the case first got its claim.")] = None
    ended_at: Annotated[Time | None, doc("When the case ended.")] = None
    healthy_since: Annotated[
        Time | None, doc("Since when the node of an Escalated case looks healthy again: it may be released.")
    ] = None
    retries: Annotated[int, Meta(ge=0), doc("The value of spec.retry that was answered last. Default 0.")] = 0
    retried_at: Annotated[Time | None, doc("When the case began to try again, as a user had asked.")] = None
    retried_after: Annotated[
        int, Meta(ge=0), doc("How many attempts it had then: those do not count for its rungs. Default 0.")
    ] = 0
    timeline: Annotated[
        tuple[TimelineEntry, ...],
        Meta(max_length=50),
        doc("The latest 50 things that happened, oldest first.", x_kubernetes_list_type="atomic"),
    ] = ()


class NodeRemediation(Base, frozen=True, kw_only=True):
    """One case of one unhealthy node. Deleting it cancels it."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "NodeRemediation")
    metadata: ObjectMeta
    spec: Annotated[NodeRemediationSpec, _SPEC]
    status: NodeRemediationStatus = NodeRemediationStatus()
