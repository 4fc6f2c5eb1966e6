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
    UNDER_MAINTENANCE = "UnderMaintenance"
    NODE_BUSY = "NodeBusy"
    UNKNOWN_OPERATION = "UnknownOperation"
    NO_NODE_FOR_API_PODS = "NoNodeForApiPods"
    NOT_ENOUGH_SPARE_GPUS = "NotEnoughSpareGpus"
    POLICY_MISSING = "PolicyMissing"
    POLICY_UNREADABLE = "PolicyUnreadable"
    NOT_SELECTED = "NotSelected"
    COOLDOWN = "Cooldown"
    TICKET_ONLY = "TicketOnly"
    SHARED_CAUSE = "SharedCause"
    NEW_CRITERION = "NewCriterion"
    CRITERION_MUTED = "CriterionMuted"
    ZONE_UNREACHABLE = "ZoneUnreachable"
    NEEDS_KUBELET = "NeedsKubelet"
    LEASE_RENEWED = "LeaseRenewed"
    IMAGE_NOT_PULLED = "ImageNotPulled"
    CONTAINER_NOT_CREATED = "ContainerNotCreated"
    POD_NOT_PLACED = "PodNotPlaced"
    POD_START_UNKNOWN = "PodStartUnknown"
    BUDGET_SPENT = "BudgetSpent"
    BUDGET_UNREADY = "BudgetUnready"
    BUDGET_REFUSED = "BudgetRefused"
    GROUP_UNKNOWN = "GroupUnknown"
    QUARANTINE_FULL = "QuarantineFull"
    POLICY_FAILING = "PolicyFailing"
    BUDGET_FAILING = "BudgetFailing"
    BREAKER_OPEN = "BreakerOpen"
    HEALTH_UNKNOWN = "HealthUnknown"
    NOT_CONFIRMED = "NotConfirmed"
    CONFIRMATION_UNKNOWN = "ConfirmationUnknown"
    APPROVAL_NEEDED = "ApprovalNeeded"
    OUTSIDE_WINDOW = "OutsideWindow"
    WINDOW_INVALID = "WindowInvalid"
    WAITING_FOR_IDLE = "WaitingForIdle"
    BLAST_RADIUS = "BlastRadius"
    BLAST_RADIUS_UNKNOWN = "BlastRadiusUnknown"

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
    PROBING = "Probing"
    HEALTHY_AGAIN = "HealthyAgain"
    RETRIED_BY_USER = "RetriedByUser"
    TAKEN_OUT = "TakenOut"
    TAKE_OUT_OVERDUE = "TakeOutOverdue"

    # Ends of a case.
    VERIFIED = "Verified"
    CLEARED_ITSELF = "ClearedItself"
    LADDER_EXHAUSTED = "LadderExhausted"
    ATTEMPTS_SPENT = "AttemptsSpent"
    RELAPSED = "Relapsed"
    LEMON = "Lemon"
    CASE_DELETED = "CaseDeleted"
    TAINT_REMOVED_BY_USER = "TaintRemovedByUser"
    ADMITTED_BY_USER = "AdmittedByUser"
    NODE_GONE = "NodeGone"
    OPERATION_DELETED = "OperationDeleted"
    GAVE_WAY = "GaveWay"
    RELEASED_BY_USER = "ReleasedByUser"
    RELEASED_HEALTHY = "ReleasedHealthy"

    # Why one operation ended as it did.
    DRAIN_FAILED = "DrainFailed"
    DRAIN_TIMEOUT = "DrainTimeout"
    PROGRAM_FAILED = "ProgramFailed"
    TIMED_OUT = "TimedOut"
    POD_NOT_STARTED = "PodNotStarted"
    POD_EVICTED = "PodEvicted"
    POD_DELETED = "PodDeleted"
    POD_LOST = "PodLost"
    KUBELET_SILENT = "KubeletSilent"
    WATCHDOG_SILENT = "WatchdogSilent"
    DONE = "Done"
    CLAIM_LOST = "ClaimLost"
    REBOOTED = "Rebooted"
    UNHEALTHY_AGAIN = "UnhealthyAgain"
    NOT_CURRENT_ATTEMPT = "NotCurrentAttempt"
    CASE_GONE = "CaseGone"


# What a user, another system, a policy, what the node runs, the second source of a policy, the lack of a node for our
# Pods, or of what such a Pod needs to start, stops a case with: what waits for its end has not failed.
STOPS = frozenset(
    {
        Reason.PAUSED,
        Reason.POLICY_UNREADABLE,
        Reason.POLICY_PAUSED,
        Reason.DRY_RUN,
        Reason.TICKET_ONLY,
        Reason.HELD_BY_USER,
        Reason.OPTED_OUT,
        Reason.CONTROL_PLANE,
        Reason.HOSTS_CONTROLLER,
        Reason.CORDONED_BY_USER,
        Reason.UNCORDONED_BY_USER,
        Reason.UNDER_MAINTENANCE,
        Reason.NO_NODE_FOR_API_PODS,
        Reason.NOT_CONFIRMED,
        Reason.CONFIRMATION_UNKNOWN,
        Reason.IMAGE_NOT_PULLED,
        Reason.CONTAINER_NOT_CREATED,
        Reason.POD_NOT_PLACED,
        Reason.POD_START_UNKNOWN,
        Reason.NEW_CRITERION,
        Reason.CRITERION_MUTED,
        Reason.NOT_SELECTED,
        Reason.APPROVAL_NEEDED,
        Reason.OUTSIDE_WINDOW,
        Reason.WINDOW_INVALID,
    }
)
# Why a Pod of an operation has never started, through no fault of the node: the case waits, and tries again.
NEVER_STARTED = frozenset(
    {Reason.IMAGE_NOT_PULLED, Reason.CONTAINER_NOT_CREATED, Reason.POD_NOT_PLACED, Reason.POD_START_UNKNOWN}
)


# By these a user, or another system, stops what goes on: no deadline of a case that waits runs meanwhile.
PAUSES = frozenset(
    {
        Reason.PAUSED,
        Reason.POLICY_PAUSED,
        Reason.DRY_RUN,
        Reason.TICKET_ONLY,
        Reason.HELD_BY_USER,
        Reason.OPTED_OUT,
        Reason.CORDONED_BY_USER,
        Reason.UNDER_MAINTENANCE,
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
        Reason.OUTSIDE_WINDOW,
    }
)
# Of these, what ends by itself at its time: it silences nothing else that holds the case, and may hold it for longer.
PASSING = frozenset({Reason.COOLDOWN, Reason.OUTSIDE_WINDOW})
# A budget that is full for so long stops the repair of many nodes; any other hold concerns one.
_FULL, _OTHERS = timedelta(minutes=30), timedelta(hours=1)
# What an operation was given up for has lasted for as long as its deadline already.
_GIVEN_UP = timedelta(minutes=5)
# Jobs may run for days, and a user has chosen to wait for them; but only a deadline ends the wait by itself.
_JOBS = timedelta(hours=24)


def reported_after(reason: Reason) -> timedelta | None:
    """After what time a user is told that this holds a case; None where a user has chosen it."""
    if reason in CHOSEN:
        return None
    if reason in NEVER_STARTED:
        return _GIVEN_UP
    if reason is Reason.WAITING_FOR_IDLE:
        return _JOBS
    return _FULL if reason in (Reason.BUDGET_SPENT, Reason.QUARANTINE_FULL) else _OTHERS


# Reasons that somebody should look at; their Events are warnings.
WARNINGS = frozenset(
    {
        Reason.DIAGNOSIS_FAILED,
        Reason.FAILED,
        Reason.REFUSED,
        Reason.HEALTH_UNKNOWN,
        Reason.CONFIRMATION_UNKNOWN,
        Reason.UNKNOWN_OPERATION,
        Reason.NO_NODE_FOR_API_PODS,
        Reason.POLICY_MISSING,
        Reason.POLICY_UNREADABLE,
        Reason.UNCORDONED_BY_USER,
        Reason.BREAKER_OPEN,
        Reason.BUDGET_REFUSED,
        Reason.GROUP_UNKNOWN,
        Reason.QUARANTINE_FULL,
        Reason.POLICY_FAILING,
        Reason.BUDGET_FAILING,
        Reason.HELD_LONG,
        Reason.SHARED_CAUSE,
        Reason.CRITERION_MUTED,
        Reason.ZONE_UNREACHABLE,
        Reason.NEEDS_KUBELET,
        Reason.IMAGE_NOT_PULLED,
        Reason.CONTAINER_NOT_CREATED,
        Reason.POD_NOT_PLACED,
        Reason.POD_START_UNKNOWN,
        Reason.APPROVAL_NEEDED,
        Reason.BLAST_RADIUS,
        Reason.BLAST_RADIUS_UNKNOWN,
        Reason.WINDOW_INVALID,
        Reason.VERIFY_TIMEOUT,
        Reason.LADDER_EXHAUSTED,
        Reason.ATTEMPTS_SPENT,
        Reason.RELAPSED,
        Reason.LEMON,
        Reason.TAKE_OUT_OVERDUE,
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
    Reason.UNDER_MAINTENANCE: "wait: the case goes on by itself once that system is done and its sign is gone; where "
    "the sign was left behind, take it off the node",
    Reason.NODE_BUSY: "wait for the other case of the node to end; one that is Escalated ends only when a person has "
    "repaired the node and set spec.release of that case to true",
    Reason.UNKNOWN_OPERATION: "create the NodeOperationTemplate that the policy names, or correct the policy",
    Reason.NO_NODE_FOR_API_PODS: "add such a node, tolerate its taint in the templates "
    "(podTemplate.spec.tolerations), or give the controller another --api-pods-node-selector",
    Reason.NOT_ENOUGH_SPARE_GPUS: "wait until GPUs are free, add nodes, or set spec.requireSpareGPUs of the policy to "
    "false",
    Reason.POLICY_MISSING: "create the policy again, or delete the case; it ends by itself in half an hour",
    Reason.POLICY_UNREADABLE: "run the version of Remediator that wrote it, or write it again for this version",
    Reason.NOT_SELECTED: "give the node the labels that spec.nodeSelector of the policy asks for, or delete the case",
    Reason.COOLDOWN: "wait, or shorten spec.cooldown of the policy",
    Reason.TICKET_ONLY: "repair it by hand; the case ends by itself once the condition clears",
    Reason.SHARED_CAUSE: "repair what the nodes have in common; each case goes on by itself once fewer nodes show it",
    Reason.NEW_CRITERION: "look at what it shows on your nodes; the case goes on by itself once the period is over",
    Reason.CRITERION_MUTED: "look whether these nodes are unhealthy; each case goes on by itself once few nodes have "
    "shown it for an hour and its period is over",
    Reason.ZONE_UNREACHABLE: "look at the network between these nodes and the API server; each case goes on by itself "
    "once enough of them report again",
    Reason.NEEDS_KUBELET: "in the ladder of a policy on Ready Unknown, name only operations whose template has "
    "runOn: Elsewhere or Watchdog",
    Reason.LEASE_RENEWED: "wait: the case goes on by itself once the Lease stands still for its duration; where it "
    "does not, look why the kubelet renews its Lease and reports no status",
    Reason.IMAGE_NOT_PULLED: "correct the image of the template, or the registry and its pull secret; the case "
    "tries again by itself",
    Reason.CONTAINER_NOT_CREATED: "create what the template mounts or reads (Secret, ConfigMap), or correct the "
    "template; the case tries again by itself",
    Reason.POD_NOT_PLACED: "look why kube-scheduler finds no node for it (requests, affinity and tolerations of the "
    "template); the case tries again by itself",
    Reason.POD_START_UNKNOWN: "wait: the case tries again by itself, and then says what keeps the Pod from starting; "
    "meanwhile look for Events of that Pod, and whether a replica of the controller was there when it ended",
    Reason.BUDGET_SPENT: "wait for the other nodes, or raise the budget",
    Reason.BUDGET_UNREADY: "wait a moment: the budget is taking over the claims that stand",
    Reason.BUDGET_REFUSED: "let the controller write the budget's status: look for a webhook or a rule that refuses it",
    Reason.GROUP_UNKNOWN: "give the node the label that spec.groupBy of the budget names, or correct spec.groupBy",
    Reason.QUARANTINE_FULL: "repair the quarantined nodes, release their cases and uncordon what stays cordoned, or "
    "raise maxQuarantined",
    Reason.POLICY_FAILING: "look why, then close the breaker with remediator close-breaker policy/NAME (or "
    "template/NAME if a template opened it)",
    Reason.BUDGET_FAILING: "look why, then close the breaker with remediator close-breaker budget/NAME",
    Reason.BREAKER_OPEN: "look at what fails in many places at once; starts go on when the window is over",
    Reason.HEALTH_UNKNOWN: "look at node-problem-detector and the kubelet of the node",
    Reason.NOT_CONFIRMED: "compare the condition with what Prometheus shows: one of the two is wrong; correct it, or "
    "spec.confirm of the policy",
    Reason.CONFIRMATION_UNKNOWN: "look at Prometheus and at the query of spec.confirm; or take spec.confirm off the "
    "policy",
    Reason.APPROVAL_NEEDED: "set spec.approved of the case to true to let it start, or delete the case",
    Reason.OUTSIDE_WINDOW: "wait for the window, or edit spec.windows of the policy",
    Reason.WINDOW_INVALID: "correct spec.windows of the policy; until then nothing starts under it",
    Reason.WAITING_FOR_IDLE: "wait for the Pods to end, end them, or give spec.urgency of the policy mode Now or "
    "a shorter deadline",
    Reason.BLAST_RADIUS: "set spec.approved of the case to true to let it start all the same, wait for jobs to end, or "
    "raise spec.maxBlastRadius of the policy",
    Reason.BLAST_RADIUS_UNKNOWN: "set spec.approved of the case to true to let it start all the same, or take "
    "spec.maxBlastRadius off the policy",
    Reason.LADDER_EXHAUSTED: "repair the node by hand, then set spec.release of the case to true",
    Reason.ATTEMPTS_SPENT: "repair the node by hand, then set spec.release of the case to true",
    Reason.RELAPSED: "find out why the fault comes back (status.history), then set spec.release of the case to true",
    Reason.TAKEN_OUT: "its user gives the node back: remediator put-back NODE",
    Reason.TAKE_OUT_OVERDUE: "ask who took it out, then give it back (remediator put-back NODE) or more time "
    "(remediator take-out NODE --for LENGTH)",
    Reason.LEMON: "replace the board or the node (status.history), then set spec.release of the case to true",
}
