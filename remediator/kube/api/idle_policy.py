"""IdlePolicy: which Pods must use their GPUs, and what the janitor does about those that do not."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.idle_policy import IdleAction, Mode
from remediator.kube.api.common import (
    API_VERSION,
    Base,
    LabelKey,
    LabelSelector,
    LabelValue,
    ObjectMeta,
    doc,
    rules,
    shaped,
)
from remediator.kube.api.durations import TEXT, at_least, at_most
from remediator.kube.api.gates import Window

_MATCHER = '[a-zA-Z_][a-zA-Z0-9_]*(=|!=|=~|!~)"[^"{}\\\\\\\\]*"'
_Series = Annotated[
    str,
    shaped(
        "^[a-zA-Z_:][a-zA-Z0-9_:]*([{]" + _MATCHER + "(," + _MATCHER + ")*[}])?$",
        'must be the name of a metric, also with labels, such as DCGM_FI_DEV_GPU_UTIL{cluster="a"}',
        512,
    ),
]
_IdleFor = Annotated[
    str,
    TEXT,
    rules(
        at_least("10m", "a program that loads its data uses no GPU for minutes"),
        at_most("168h", "Prometheus would have to look at more samples than it may"),
    ),
]
_Grace = Annotated[str, TEXT, rules(at_least("10m", "whoever is told needs time to keep the Pod"), at_most("336h"))]
_Space = Annotated[
    str,
    shaped("^([*]|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$", "must be the name of a namespace, or *", 63),
]


class PodLabels(LabelSelector, frozen=True, kw_only=True):
    """Chooses Pods by their labels; every entry must hold."""

    match_labels: Annotated[
        dict[LabelKey, LabelValue], Meta(max_length=32), doc("Labels that the Pod must have, with these values.")
    ] = msgspec.field(default_factory=dict)


class IdleSignal(Base, frozen=True, kw_only=True):
    """One thing that a GPU in use shows."""

    series: Annotated[
        _Series,
        doc(
            "Series with one value for each GPU and the labels namespace and pod, or exported_namespace and "
            "exported_pod. Required."
        ),
    ]
    at_most: Annotated[Annotated[int, Meta(ge=0, le=100)], doc("The highest value that counts as idle. Default 0.")] = 0


class IdlePolicySpec(Base, frozen=True, kw_only=True):
    """Which Pods must use their GPUs, and what becomes of those that do not."""

    mode: Annotated[
        Mode,
        doc("DryRun: only report. Enforce: tell, and act. Only with --mode Enforce of the janitor. Default DryRun."),
    ] = Mode.DRY_RUN
    namespaces: Annotated[
        tuple[_Space, ...],
        Meta(min_length=1, max_length=256),
        doc(
            'Whose Pods are looked at; "*" is every namespace that the janitor looks at. Required.',
            x_kubernetes_list_type="atomic",
        ),
    ]
    pod_selector: Annotated[PodLabels, doc("Only Pods with these labels. Left out: every Pod that asks for GPUs.")] = (
        PodLabels()
    )
    owner_label: Annotated[
        LabelKey, doc("The label of a Pod that names its owner, for Events and reports. Default owner.")
    ] = "owner"
    signals: Annotated[
        tuple[IdleSignal, ...],
        Meta(max_length=4),
        doc(
            "What must all be idle, on every GPU of the Pod. Left out: DCGM_FI_DEV_GPU_UTIL at 0.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    idle_for: Annotated[
        _IdleFor, doc("Over which time every sample must be idle, and samples must be there. Default 2h.")
    ] = "2h"
    windows: Annotated[
        tuple[Window, ...],
        Meta(max_length=16),
        doc(
            "The working hours: only in them somebody is told, and GPUs are taken. Left out: always.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    grace: Annotated[_Grace, doc("How long after its notice something may stay. Default 4h.")] = "4h"
    actions: Annotated[
        tuple[IdleAction, ...],
        Meta(max_length=3),
        doc(
            "How GPUs may be taken: Suspend a Job, Scale a Deployment or StatefulSet to 0, Delete a Pod of its own. "
            "Left out: owners are told, and nothing is taken.",
            x_kubernetes_list_type="set",
        ),
    ] = ()
    max_per_run: Annotated[
        Annotated[int, Meta(ge=1, le=1000)],
        doc("How many are acted on in one pass, and as many are told. Default 5."),
    ] = 5


class IdlePolicy(Base, frozen=True, kw_only=True):
    """GPUs that Pods hold without using them are given back, with notice. The janitor reads it."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "IdlePolicy")
    metadata: ObjectMeta
    spec: IdlePolicySpec
