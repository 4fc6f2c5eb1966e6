"""Ticket: the GitHub issue for one node, one shared cause, one alert or one owner of idle work."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from remediator.core.policy import Severity
from remediator.core.ticket import About, CauseState, ClosedBy, TicketPhase
from remediator.kube.api.common import API_VERSION, Base, Conditions, Message, ObjectMeta, Rule, Time, doc, rules

Word = Annotated[str, Meta(max_length=253)]
Line = Annotated[str, Meta(max_length=1024)]


class TicketSubject(Base, frozen=True, kw_only=True):
    """What the issue is about."""

    kind: Annotated[
        About,
        doc(
            "Node: one node. SharedCause: one thing that many nodes suffer from. Alert: an alert that names no node, "
            "or that many nodes have. Owner: the work of one owner, of which the janitor has given notice. "
            "Overflow: the issues that are not opened yet, since so many were within an hour."
        ),
    ]
    node_name: Annotated[Word, doc("Name of the node, for Node.")] = ""
    policy_name: Annotated[Word, doc("Name of the RemediationPolicy, for SharedCause.")] = ""
    condition: Annotated[Word, doc("Type of the Condition, for SharedCause.")] = ""
    message: Annotated[Message, doc("What the Condition says on all those nodes, for SharedCause.")] = ""
    alert_name: Annotated[Word, doc("Name of the alert, for Alert.")] = ""
    cluster: Annotated[Word, doc("Label `cluster` of the alert, for Alert.")] = ""
    owner_name: Annotated[
        Word, doc("What the owner label of the Pods says, for Owner; of Pods without it namespace/NAME.")
    ] = ""


class IssueDestination(Base, frozen=True, kw_only=True):
    """Where the parameters in the URL of a post ask its issue to go."""

    repository: Annotated[str, Meta(max_length=140), doc("owner/name, from owner and repo.")]
    labels: Annotated[
        tuple[Annotated[str, Meta(max_length=50)], ...],
        Meta(max_length=32),
        doc("From labels.", x_kubernetes_list_type="atomic"),
    ] = ()
    assignees: Annotated[
        tuple[Annotated[str, Meta(max_length=64)], ...],
        Meta(max_length=10),
        doc("From assignees.", x_kubernetes_list_type="atomic"),
    ] = ()
    milestone: Annotated[str, Meta(max_length=255), doc("From milestone.")] = ""
    board: Annotated[str, Meta(max_length=64), doc("From board: owner/number.")] = ""


class TicketAlert(Base, frozen=True, kw_only=True):
    """One alert of Alertmanager, as last received."""

    fingerprint: Annotated[str, Meta(min_length=1, max_length=64), doc("Alertmanager's name of the alert.")]
    name: Annotated[Word, doc("Label alertname.")]
    starts_at: Annotated[Time, doc("Since when it fires, or fired.")]
    ends_at: Annotated[Time | None, doc("When it ended; absent while it fires.")] = None
    received_at: Annotated[Time | None, doc("When Remediator first received this state.")] = None
    severity: Annotated[Severity, doc("Made from label severity. Default Warning.")] = Severity.WARNING
    summary: Annotated[Line, doc("Annotation summary, else description.")] = ""
    runbook: Annotated[Line, doc("Annotation runbook_url.")] = ""
    route: Annotated[
        Word, doc("Label remediator_route: a route of the routes file; or labels atg_owner and atg_repo: OWNER/NAME.")
    ] = ""
    labels: Annotated[
        dict[Annotated[str, Meta(max_length=256)], Annotated[str, Meta(max_length=256)]],
        Meta(max_length=16),
        doc("The labels that help a person: cluster, GPU, device, Pod."),
    ] = msgspec.field(default_factory=dict)
    destination: Annotated[
        IssueDestination | None, doc("Where the parameters in the URL of its post ask the issue to go.")
    ] = None
    keep_open: Annotated[
        bool, doc("Annotation atg_skip_auto_close is true: the issue stays open when the alert has ended.")
    ] = False


_FIXED = Rule("self == oldSelf", "subject is immutable")
_NAMED = (
    Rule(
        "(self.kind == 'Node') == has(self.nodeName)", "nodeName must be given for Node, and only for it", ".nodeName"
    ),
    Rule(
        "(self.kind == 'SharedCause') == has(self.policyName)",
        "policyName must be given for SharedCause, and only for it",
        ".policyName",
    ),
    Rule(
        "(self.kind == 'Alert') == has(self.alertName)",
        "alertName must be given for Alert, and only for it",
        ".alertName",
    ),
    Rule(
        "(self.kind == 'Owner') == has(self.ownerName)",
        "ownerName must be given for Owner, and only for it",
        ".ownerName",
    ),
)


class TicketKeep(Base, frozen=True, kw_only=True):
    """What a comment asks the janitor to keep."""

    target: Annotated[str, Meta(max_length=512), doc("The object: plural of its kind, namespace and name.")]
    until: Annotated[Time, doc("Until when.")]
    set_by: Annotated[Word, doc("Who asked for it: github:LOGIN.")]


class TicketSpec(Base, frozen=True, kw_only=True):
    """What the issue is about, and what Alertmanager says of it. Cases are not copied: they are found by their node."""

    subject: Annotated[TicketSubject, rules(_FIXED, *_NAMED), doc("What the issue is about. Immutable.")]
    alerts: Annotated[
        tuple[TicketAlert, ...],
        Meta(max_length=64),
        doc(
            "The newest state of each alert, by fingerprint, as the webhook or a list of Alertmanager has it; "
            "for Owner the notices of the janitor.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    keeps: Annotated[
        tuple[TicketKeep, ...],
        Meta(max_length=64),
        doc(
            "For Owner: what comments ask to keep. The janitor writes it on the objects, and takes it away here.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()


class TicketAlerts(Base, frozen=True, kw_only=True):
    """The parts of the spec that are written again and again."""

    alerts: tuple[TicketAlert, ...] | UnsetType = UNSET
    keeps: tuple[TicketKeep, ...] | UnsetType = UNSET


class IssueReference(Base, frozen=True, kw_only=True):
    """The issue on GitHub."""

    repository: Annotated[str, Meta(max_length=140), doc("owner/name.")]
    number: Annotated[int, doc("Its number.")]
    url: Annotated[str, Meta(max_length=512), doc("Its address.")] = ""


class ReportedCause(Base, frozen=True, kw_only=True):
    """What the issue says of one cause: a case, an alert, or what many nodes share."""

    key: Annotated[str, Meta(max_length=280), doc("case:NAME, alert:NAME or cause.")]
    state: Annotated[
        CauseState,
        doc("Active: it needs the issue. Escalated: a person must repair the node. Over: it has ended."),
    ]
    since: Annotated[Time, doc("When its youngest part began.")]


class ChatThread(Base, frozen=True, kw_only=True):
    """The thread of the issue in one room of a chat."""

    room: Annotated[str, Meta(max_length=63), doc("Name of the room in the file of --chat.")]
    opened_at: Annotated[Time, doc("When it was first wanted; part of its hidden marker.")]
    began_at: Annotated[
        Time, doc("When posting was begun last. While there is no id, nobody knows whether it arrived.")
    ]
    tries: Annotated[int, doc("How often posting was begun. Default 1.")] = 1
    id: Annotated[str, Meta(max_length=128), doc("The chat's own name of the thread.")] = ""
    crowd: Annotated[bool, doc("Issues that come at the same time join it. Default false.")] = False
    place: Annotated[
        str,
        Meta(max_length=16),
        doc("Where the issue stood when that was last told: waiting, repairing, person or done."),
    ] = ""
    last_write_hash: Annotated[str, Meta(max_length=64), doc("Hash of its first message as last written.")] = ""
    last_write_at: Annotated[Time | None, doc("When that was written; absent where the issue joined.")] = None
    given_up: Annotated[bool, doc("Posting it has failed for good, or a user deleted it. Default false.")] = False


class TicketStatus(Base, frozen=True, kw_only=True):
    """The state of the issue, and what was reported in it; written by the leader."""

    phase: Annotated[
        TicketPhase,
        doc("Pending: it is being created, or cannot be. Empty: no alert or case ever called for one."),
    ] = TicketPhase.NEW
    issue: Annotated[IssueReference | None, doc("The issue on GitHub.")] = None
    previous_url: Annotated[str, Meta(max_length=512), doc("The issue that the subject had before.")] = ""
    opened_at: Annotated[Time | None, doc("When this issue was first wanted; part of its hidden marker.")] = None
    creating_since: Annotated[
        Time | None, doc("When the creation of an issue with unknown result was begun: the issue is looked for first.")
    ] = None
    creating_in: Annotated[str, Meta(max_length=140), doc("In which repository.")] = ""
    closed_at: Annotated[Time | None, doc("When it was closed, or was seen closed.")] = None
    closed_by: Annotated[ClosedBy, doc("Who closed it. What a user closed is not reopened.")] = ClosedBy.NOBODY
    closing_commented: Annotated[bool, doc("The closing comment was sent.")] = False
    last_write_hash: Annotated[str, Meta(max_length=64), doc("Hash of the text that was last written.")] = ""
    last_write_at: Annotated[Time | None, doc("When it was written.")] = None
    severity: Annotated[Severity | None, doc("The severity that the issue's label says.")] = None
    causes: Annotated[
        tuple[ReportedCause, ...],
        Meta(max_length=96),
        doc("What was last reported of each cause: nothing is reported twice.", x_kubernetes_list_type="atomic"),
    ] = ()
    conditions: Conditions = ()
    chat: Annotated[
        tuple[ChatThread, ...],
        Meta(max_length=32),
        doc("Where rooms of a chat hear of the issue (docs/chat.md).", x_kubernetes_list_type="atomic"),
    ] = ()


class TicketChat(Base, frozen=True, kw_only=True):
    """The part of the status that whoever posts in rooms writes."""

    chat: tuple[ChatThread, ...]


class Ticket(Base, frozen=True, kw_only=True):
    """The GitHub issue that one node, shared cause, alert or owner of work should have. Deleting it forgets that."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "Ticket")
    metadata: ObjectMeta
    spec: TicketSpec
    status: TicketStatus = TicketStatus()
