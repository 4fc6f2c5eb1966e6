"""Which Conditions of a node make it unhealthy, for a policy."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.node import Status
from remediator.kube.api.common import Base, Rule, doc, rules, shaped
from remediator.kube.api.durations import Duration

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


class When(Base, frozen=True, kw_only=True):
    """One way in which a node counts as unhealthy: a Condition, several that hold together (`all`), or an alert."""

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


WHEN = rules(
    _UNKNOWN,
    Rule(
        "(has(self.alert) ? 1 : 0) + (has(self.condition) ? 1 : 0)"
        " + (has(self.all) && size(self.all) > 0 ? 1 : 0) == 1",
        "exactly one of condition, all and alert is required; write one of them",
        ".condition",
    ),
    Rule(
        "!has(self.all) || (self.status == 'True' && !has(self.reasons))",
        "status and reasons belong inside the entries of all",
        ".all",
    ),
    Rule(
        "!has(self.alert) || (self.status == 'True' && !has(self.reasons))",
        "status and reasons do not go with alert; leave them out",
        ".alert",
    ),
)
