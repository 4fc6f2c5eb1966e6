"""Which Conditions of a node make it unhealthy, for a policy."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.node import Status
from remediator.kube.api.common import NAME_PATTERN, Base, LabelKey, LabelValue, Rule, doc, rules, shaped
from remediator.kube.api.durations import ZERO, Duration, EventWindow, StaleAfter

ConditionType = Annotated[
    str,
    shaped(
        "^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$",
        "must be the type of a node Condition, such as GpuLost or Ready",
        128,
    ),
]
AlertName = Annotated[
    str, shaped("^[A-Za-z_:][A-Za-z0-9_:]*$", "must be the name of an alert, such as NodeGpuXid", 128)
]
Wanted = Annotated[
    Status,
    doc(
        'Status that the Condition must have. "Unknown" only for Ready; then every operation of the ladder must have '
        'runOn: Elsewhere or Watchdog. Default "True".'
    ),
]
Reasons = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=128)], ...],
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


class ReportedBy(Base, frozen=True, kw_only=True):
    """The Pods of those who write a Condition. One that is Ready is the sign that they are alive."""

    namespace: Annotated[
        str,
        shaped(NAME_PATTERN, "must be the name of a namespace, such as nvsentinel", 63),
        doc("Namespace of these Pods."),
    ]
    match_labels: Annotated[
        dict[LabelKey, LabelValue],
        Meta(min_length=1, max_length=4),
        doc(
            "Labels that they have, at least one. Pods of a DaemonSet speak for their own node, and where there are "
            "any, only they count; any other Pod speaks for every node."
        ),
    ]


_FITS = Rule(
    "self.__namespace__.size() + self.matchLabels.map(key, key.size() + self.matchLabels[key].size() + 2).sum() <= 300",
    "namespace, keys and values must have 300 characters at most: they become the type of a Condition",
    ".matchLabels",
)


class EventMatch(Base, frozen=True, kw_only=True):
    """Events about the node that repeat."""

    reason: Annotated[
        str,
        shaped("^[A-Za-z][A-Za-z0-9_-]*$", "must be the reason of an Event, such as TaskHung", 128),
        doc("Reason of the Events, whoever writes them."),
    ]
    count: Annotated[int, Meta(ge=1, le=100), doc("How many of them are enough. Default 3.")] = 3
    within: Annotated[
        EventWindow,
        doc("In what time, 10m to 1h. As long without any, and the node is well. Default 10m."),
    ] = "10m"


class When(Base, frozen=True, kw_only=True):
    """One way in which a node counts as unhealthy: a Condition, several together (`all`), an alert, Events, no Ready
    Pod.
    """

    condition: Annotated[
        ConditionType | None, doc("Type of the node Condition, from node-problem-detector or the kubelet.")
    ] = None
    alert: Annotated[
        AlertName | None,
        doc(
            "Name of an alert that names the node, as Alertmanagers (--alertmanager-url of the controller) list it. It "
            "becomes the Condition Alert/NAME of the node."
        ),
    ] = None
    event: Annotated[
        EventMatch | None,
        doc(
            "Events about the node that repeat, where their writer has no Condition for it. They become the Condition "
            "Event/REASON/COUNT-in-SECONDS of the node."
        ),
    ] = None
    no_ready_pod: Annotated[
        ReportedBy | None,
        rules(_FITS),
        doc(
            "Pods that are themselves the sign: of which none is Ready on the node, nor anywhere where they are not of "
            "a DaemonSet. Select only nodes on which they run."
        ),
    ] = None
    status: Wanted = Status.TRUE
    reasons: Reasons = ()
    for_: Annotated[
        Duration,
        doc("How long it must have held without a break before anything is done. Default 2m; 0s acts at once."),
    ] = msgspec.field(name="for", default="2m")
    stale_after: Annotated[
        StaleAfter | None,
        doc(
            "After what time without a heartbeat the Condition is unknown. Default 15m. 0s: it is written only when it "
            "changes, and reportedBy tells whether it is kept."
        ),
    ] = None
    reported_by: Annotated[
        ReportedBy | None,
        rules(_FITS),
        doc(
            "Pods of which one must be Ready, or the Condition is unknown: on the node, or anywhere where they are not "
            "of a DaemonSet. Default: nobody is asked."
        ),
    ] = None
    all: Annotated[
        tuple[Annotated[ConditionMatch, rules(_NO_UNKNOWN)], ...],
        Meta(max_length=8),
        doc(
            "Conditions that must all hold at the same time, each for as long as `for`.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()


WHEN = rules(
    _UNKNOWN,
    Rule(
        "(has(self.alert) ? 1 : 0) + (has(self.condition) ? 1 : 0)"
        " + (has(self.all) && size(self.all) > 0 ? 1 : 0) + (has(self.noReadyPod) ? 1 : 0)"
        " + (has(self.event) ? 1 : 0) == 1",
        "exactly one of condition, all, alert, event and noReadyPod is required; write one of them",
        ".condition",
    ),
    Rule(
        "!has(self.all) || (self.status == 'True' && !has(self.reasons))",
        "status and reasons belong inside the entries of all",
        ".all",
    ),
    Rule(
        f"!has(self.staleAfter) || !self.staleAfter.matches('^{ZERO}$') || has(self.reportedBy)",
        "0s needs reportedBy: without heartbeats only their Pods tell that those who write the Condition are alive",
        ".staleAfter",
    ),
    Rule(
        "has(self.condition) || !has(self.staleAfter)",
        "staleAfter goes with condition only; leave it out",
        ".staleAfter",
    ),
    Rule(
        "has(self.condition) || has(self.event) || !has(self.reportedBy)",
        "reportedBy goes with condition and event only; leave it out",
        ".reportedBy",
    ),
    Rule(
        "!has(self.noReadyPod) || (self.status == 'True' && !has(self.reasons))",
        "status and reasons do not go with noReadyPod; leave them out",
        ".noReadyPod",
    ),
    Rule(
        "!has(self.alert) || (self.status == 'True' && !has(self.reasons))",
        "status and reasons do not go with alert; leave them out",
        ".alert",
    ),
    Rule(
        "!has(self.event) || (self.status == 'True' && !has(self.reasons))",
        "status and reasons do not go with event; its reason stands in event.reason",
        ".event",
    ),
)
