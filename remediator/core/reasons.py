"""Reasons: one word for each thing that can happen to a case, the same in status, event, metric, log and `explain`."""

from datetime import timedelta
from enum import StrEnum


class Reason(StrEnum):
    """One member per reason; `REMEDY` says what a user can do about those that hold a case."""

    # Holds: nothing new starts.
    DRY_RUN = "DryRun"
    POLICY_PAUSED = "PolicyPaused"
    PAUSED = "Paused"
    HELD_BY_USER = "HeldByUser"
    OPTED_OUT = "OptedOut"
    CONTROL_PLANE = "ControlPlane"
    HOSTS_CONTROLLER = "HostsController"
    CORDONED_BY_USER = "CordonedByUser"
    UNCORDONED_BY_USER = "UncordonedByUser"
    NODE_BUSY = "NodeBusy"
    UNKNOWN_OPERATION = "UnknownOperation"
    POLICY_MISSING = "PolicyMissing"
    POLICY_UNREADABLE = "PolicyUnreadable"
    COOLDOWN = "Cooldown"
    TICKET_ONLY = "TicketOnly"
    SHARED_CAUSE = "SharedCause"
    BUDGET_SPENT = "BudgetSpent"
    BUDGET_UNREADY = "BudgetUnready"
    BUDGET_REFUSED = "BudgetRefused"
    GROUP_UNKNOWN = "GroupUnknown"
    QUARANTINE_FULL = "QuarantineFull"
    POLICY_FAILING = "PolicyFailing"
    BREAKER_OPEN = "BreakerOpen"
    HEALTH_UNKNOWN = "HealthUnknown"

    # Milestones of a case that goes on.
    HELD_LONG = "HeldLong"
    DETECTED = "Detected"
    CLAIMED = "Claimed"
    DIAGNOSED = "Diagnosed"
    DIAGNOSIS_FAILED = "DiagnosisFailed"
    RESUMED = "Resumed"
    STARTED = "OperationStarted"
    DRAINING = "Draining"
    OPERATING = "Operating"
    SUCCEEDED = "OperationSucceeded"
    FAILED = "OperationFailed"
    REFUSED = "OperationRefused"
    STOPPED = "OperationCancelled"
    VERIFY_TIMEOUT = "VerifyTimeout"

    # Ends of a case.
    VERIFIED = "Verified"
    CLEARED_ITSELF = "ClearedItself"
    LADDER_EXHAUSTED = "LadderExhausted"
    ATTEMPTS_SPENT = "AttemptsSpent"
    CASE_DELETED = "CaseDeleted"
    TAINT_REMOVED_BY_USER = "TaintRemovedByUser"
    NODE_GONE = "NodeGone"
    RELEASED_BY_USER = "ReleasedByUser"

    # Why one operation ended as it did.
    DRAIN_FAILED = "DrainFailed"
    DRAIN_TIMEOUT = "DrainTimeout"
    PROGRAM_FAILED = "ProgramFailed"
    TIMED_OUT = "TimedOut"
    DONE = "Done"
    CLAIM_LOST = "ClaimLost"
    REBOOTED = "Rebooted"
    NOT_CURRENT_ATTEMPT = "NotCurrentAttempt"


# What a user, a policy, or what the node runs stops a case with: what waits for its end has not failed.
STOPS = frozenset(
    {
        Reason.PAUSED,
        Reason.POLICY_UNREADABLE,
        Reason.POLICY_PAUSED,
        Reason.DRY_RUN,
        Reason.HELD_BY_USER,
        Reason.OPTED_OUT,
        Reason.CONTROL_PLANE,
        Reason.HOSTS_CONTROLLER,
        Reason.CORDONED_BY_USER,
        Reason.UNCORDONED_BY_USER,
    }
)


# Holds that a user has chosen: nobody is told that they last.
CHOSEN = frozenset(
    {
        Reason.DRY_RUN,
        Reason.POLICY_PAUSED,
        Reason.PAUSED,
        Reason.HELD_BY_USER,
        Reason.OPTED_OUT,
        Reason.CORDONED_BY_USER,
        Reason.COOLDOWN,
    }
)
# A budget that is full for so long stops the repair of many nodes; any other hold concerns one.
_FULL, _OTHERS = timedelta(minutes=30), timedelta(hours=1)


def reported_after(reason: Reason) -> timedelta | None:
    """After what time a user is told that this holds a case; None where a user has chosen it."""
    if reason in CHOSEN:
        return None
    return _FULL if reason in (Reason.BUDGET_SPENT, Reason.QUARANTINE_FULL) else _OTHERS


# Reasons that somebody should look at; their Events are warnings.
WARNINGS = frozenset(
    {
        Reason.DIAGNOSIS_FAILED,
        Reason.FAILED,
        Reason.REFUSED,
        Reason.HEALTH_UNKNOWN,
        Reason.UNKNOWN_OPERATION,
        Reason.POLICY_MISSING,
        Reason.POLICY_UNREADABLE,
        Reason.UNCORDONED_BY_USER,
        Reason.BREAKER_OPEN,
        Reason.BUDGET_REFUSED,
        Reason.GROUP_UNKNOWN,
        Reason.QUARANTINE_FULL,
        Reason.POLICY_FAILING,
        Reason.HELD_LONG,
        Reason.SHARED_CAUSE,
        Reason.LADDER_EXHAUSTED,
        Reason.ATTEMPTS_SPENT,
    }
)
REMEDY: dict[Reason, str] = {
    Reason.DRY_RUN: "set spec.mode of the policy to Enforce to let it act",
    Reason.POLICY_PAUSED: "set spec.mode of the policy to Enforce to let it act",
    Reason.PAUSED: "remove the annotation remediator.dev/paused from the namespace of the controller",
    Reason.HELD_BY_USER: "set spec.hold of the case to false",
    Reason.OPTED_OUT: "remove the label remediator.dev/exclude from the node, or set it to false",
    Reason.CONTROL_PLANE: "control plane nodes are repaired by a person; where a case holds the node: repair it, or "
    "delete the case",
    Reason.HOSTS_CONTROLLER: "start another replica of the controller on another node",
    Reason.CORDONED_BY_USER: "uncordon the node to let the case start, or delete the case",
    Reason.UNCORDONED_BY_USER: "cordon the node, then set its annotation remediator.dev/cordoned-by to the uid of the "
    "case, and the case goes on; or delete the case",
    Reason.NODE_BUSY: "wait for the other case of the node to end, or delete one of the two",
    Reason.UNKNOWN_OPERATION: "create the NodeOperationTemplate that the policy names, or correct the policy",
    Reason.POLICY_MISSING: "create the policy again, or delete the case; it ends by itself in half an hour",
    Reason.POLICY_UNREADABLE: "run the version of Remediator that wrote it, or write it again for this version",
    Reason.COOLDOWN: "wait, or shorten spec.cooldown of the policy",
    Reason.TICKET_ONLY: "repair it by hand; the case ends by itself once the condition clears",
    Reason.SHARED_CAUSE: "repair what the nodes have in common; each case goes on by itself once fewer nodes show it",
    Reason.BUDGET_SPENT: "wait for the other nodes, or raise the budget",
    Reason.BUDGET_UNREADY: "wait a moment: the budget is taking over the claims that stand",
    Reason.BUDGET_REFUSED: "let the controller write the budget's status: look for a webhook or a rule that refuses it",
    Reason.GROUP_UNKNOWN: "give the node the label that spec.groupBy of the budget names, or correct spec.groupBy",
    Reason.QUARANTINE_FULL: "repair the quarantined nodes, release their cases and uncordon what stays cordoned, or "
    "raise maxQuarantined",
    Reason.POLICY_FAILING: "look why, then close the breaker with the command",
    Reason.BREAKER_OPEN: "look at what fails in many places at once; starts go on when the window is over",
    Reason.HEALTH_UNKNOWN: "look at node-problem-detector and the kubelet of the node",
    Reason.LADDER_EXHAUSTED: "repair the node by hand, then set spec.release of the case to true",
    Reason.ATTEMPTS_SPENT: "repair the node by hand, then set spec.release of the case to true",
}
