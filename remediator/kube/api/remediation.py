"""NodeRemediation: one case of one unhealthy node, from the decision to recovery or escalation."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.case import AttemptOutcome, Diagnosis, Phase
from remediator.kube.api.common import (
    API_VERSION,
    Anything,
    Base,
    Message,
    Name,
    ObjectMeta,
    Reason,
    TemplateName,
    Time,
    Uid,
    doc,
    fixed,
)


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


class NodeRemediationSpec(Base, frozen=True, kw_only=True):
    """Which node, under which policy, and what a person says about it."""

    node_name: Annotated[Name, fixed("nodeName"), doc("The node. Immutable.")]
    node_uid: Annotated[
        Uid, fixed("nodeUID"), doc("metadata.uid of the node: a namesake that comes later is another node. Immutable.")
    ] = msgspec.field(name="nodeUID")
    policy_name: Annotated[Name, fixed("policyName"), doc("The RemediationPolicy that rules this case. Immutable.")]
    trigger: Annotated[Trigger, doc("What was seen when the case was opened.")] = Trigger()
    hold: Annotated[bool, doc("Set true to let nothing new be started in this case. Default false.")] = False
    release: Annotated[
        bool, doc("Set true to give an Escalated node back: taint and claims are taken off. Default false.")
    ] = False


class Blocker(Base, frozen=True, kw_only=True):
    """One reason why nothing is started now."""

    reason: Annotated[Reason, doc("One word; the same in events, metrics and `remediator explain`.")]
    message: Annotated[Message, doc("One sentence with names and numbers.")] = ""
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
        str, Meta(max_length=253), doc("The NodeOperation that this one completes: it is no try of its own.")
    ] = ""
    counts: Annotated[
        bool,
        doc("False where nothing ran: it is no attempt for the ladder, attempts.max and the breaker. Default True."),
    ] = True
    intent: Annotated[
        Intent | None, doc("The boot in which it was begun; from its intent on, the one that the intent names.")
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

    at: Annotated[Time, doc("When.")]
    reason: Annotated[Reason, doc("One word.")]
    message: Annotated[Message, doc("One sentence.")] = ""


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
    started_at: Annotated[Time | None, doc("When the case first got its claim.")] = None
    ended_at: Annotated[Time | None, doc("When the case ended.")] = None
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
    spec: NodeRemediationSpec
    status: NodeRemediationStatus = NodeRemediationStatus()
