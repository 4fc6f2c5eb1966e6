"""IdlePolicy: which Pods the janitor looks for (idle, restarting, waiting), and what becomes of them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.idle_policy import Finding, IdleAction, IdleTicket, JanitorMode, NvmlSource
from remediator.kube.api.common import (
    API_VERSION,
    Base,
    LabelKey,
    LabelSelector,
    LabelValue,
    ObjectMeta,
    Rule,
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
    """One thing that a GPU or a container in use shows."""

    series: Annotated[
        _Series,
        doc(
            "Series with the labels namespace and pod, or exported_namespace and exported_pod. For IdleGPUs: one value "
            "for each GPU. For IdleCPU: seconds of CPU as a counter, for each container. Required."
        ),
    ]
    at_most: Annotated[
        Annotated[int, Meta(ge=0, le=100)],
        doc("The highest value that counts as idle. For IdleCPU in hundredths of a core. Default 0."),
    ] = 0


ALERTS = Rule(
    "(has(self.finds) && self.finds == 'Alert') == (has(self.alert) && self.alert != '')",
    "alert must be given for finds Alert, and only for it",
    ".alert",
)
SIGNALS = Rule(
    "!has(self.signals) || size(self.signals) == 0 || !has(self.finds) || self.finds in ['IdleGPUs', 'IdleCPU']",
    "signals go with finds IdleGPUs and IdleCPU only; remove them",
    ".signals",
)

NVML = Rule(
    "!has(self.nvml) || self.nvml != 'Required' || !has(self.finds) || self.finds == 'IdleGPUs'",
    "nvml Required goes with finds IdleGPUs only; remove it",
    ".nvml",
)


class IdlePolicySpec(Base, frozen=True, kw_only=True):
    """Which Pods the janitor looks for, and what becomes of them."""

    mode: Annotated[
        JanitorMode,
        doc("DryRun: only report. Enforce: tell, and act. Only with --mode Enforce of the janitor. Default DryRun."),
    ] = JanitorMode.DRY_RUN
    finds: Annotated[
        Finding,
        doc(
            "What it looks for. IdleGPUs: Pods that do not use their GPUs. IdleCPU: Pods without GPUs that do not use "
            "the CPU. Restarts: Pods whose containers restart again and again. Pending: Pods that do not begin. "
            "Alert: Pods that an alert of Alertmanager names. Default IdleGPUs."
        ),
    ] = Finding.IDLE_GPUS
    alert: Annotated[
        Annotated[str, Meta(max_length=253)],
        doc("The name of the alert, for Alert; its labels namespace and pod name the Pod."),
    ] = ""
    namespaces: Annotated[
        tuple[_Space, ...],
        Meta(min_length=1, max_length=256),
        doc(
            'Whose Pods are looked at; "*" is every namespace that the janitor looks at. Required.',
            x_kubernetes_list_type="atomic",
        ),
    ]
    pod_selector: Annotated[PodLabels, doc("Only Pods with these labels. Left out: every Pod.")] = PodLabels()
    owner_label: Annotated[
        LabelKey, doc("The label of a Pod that names its owner, for Events and reports. Default owner.")
    ] = "owner"
    signals: Annotated[
        tuple[IdleSignal, ...],
        Meta(max_length=4),
        doc(
            "What must all be idle, on every GPU or in every container of the Pod. Left out: DCGM_FI_DEV_GPU_UTIL "
            "at 0, or container_cpu_usage_seconds_total at 1.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    nvml: Annotated[
        NvmlSource,
        doc(
            "What the Condition GpuUse of the Pod's node counts, for IdleGPUs. Required: a Pod is idle only where it "
            "proves that, too. IfReported: a Pod that it says has used a GPU is not idle; where it cannot tell, "
            "signals alone decide. Off: it is not looked at. Default IfReported."
        ),
    ] = NvmlSource.IF_REPORTED
    idle_for: Annotated[
        _IdleFor,
        doc(
            "Over which time every sample must be idle, and samples must be there; or how old a Pod is that restarts, "
            "how long it is Pending without a change, and how long the alert has fired. Default 2h."
        ),
    ] = "2h"
    windows: Annotated[
        tuple[Window, ...],
        Meta(max_length=16),
        doc(
            "The working hours: only in them somebody is told, and anything is taken. Left out: always.",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    grace: Annotated[_Grace, doc("How long after its notice something may stay. Default 4h.")] = "4h"
    actions: Annotated[
        tuple[IdleAction, ...],
        Meta(max_length=3),
        doc(
            "What may be done: Suspend a Job, Scale a Deployment or StatefulSet to 0, Delete a Pod of its own. "
            "Left out: owners are told, and nothing is taken.",
            x_kubernetes_list_type="set",
        ),
    ] = ()
    max_per_run: Annotated[
        Annotated[int, Meta(ge=1, le=1000)],
        doc("How many are acted on in one pass, and as many are told. Default 5."),
    ] = 5
    ticket: Annotated[
        IdleTicket,
        doc("EachOwner: one issue for each owner has all of their notices; it needs Enforce. Default Never."),
    ] = IdleTicket.NEVER


class IdlePolicy(Base, frozen=True, kw_only=True):
    """Owners of Pods that are idle, restart again and again, or wait for ever are told, and then acted on."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "IdlePolicy")
    metadata: ObjectMeta
    spec: Annotated[IdlePolicySpec, rules(ALERTS, SIGNALS, NVML)]
