"""How Pods are moved off a node: the field `drain` of a NodeOperationTemplate."""

from typing import Annotated

from msgspec import Meta

from remediator.core.template import Strategy
from remediator.kube.api.common import Base, LabelKey, LabelValue, Rule, doc, rules, shaped
from remediator.kube.api.durations import Timeout
from remediator.kube.api.when import ConditionType

Namespace = Annotated[
    str,
    shaped("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "must be the name of a namespace, such as training", 63),
]
OwnerKind = Annotated[
    str,
    shaped("^[A-Z][A-Za-z0-9]*$", "must be the kind of an owner, such as Job or StatefulSet", 63),
]


class PodSelector(Base, frozen=True, kw_only=True):
    """Chooses Pods by their labels."""

    match_labels: Annotated[
        dict[LabelKey, LabelValue],
        Meta(min_length=1, max_length=32),
        doc("Labels that the Pod must have, with these values. Required."),
    ]


class DrainRule(Base, frozen=True, kw_only=True):
    """Another strategy for some Pods; what is not given chooses any Pod."""

    namespaces: Annotated[
        tuple[Namespace, ...],
        Meta(min_length=1, max_length=64),
        doc("Pods of these namespaces.", x_kubernetes_list_type="atomic"),
    ] = ()
    selector: Annotated[PodSelector | None, doc("Pods with these labels.")] = None
    owners: Annotated[
        tuple[OwnerKind, ...],
        Meta(min_length=1, max_length=16),
        doc(
            "Pods whose controller is of one of these kinds: Job, StatefulSet, ReplicaSet (of a Deployment), ...",
            x_kubernetes_list_type="atomic",
        ),
    ] = ()
    strategy: Annotated[Strategy, doc("How these Pods leave the node. Required.")]


_CHOOSES = Rule(
    "has(self.namespaces) || has(self.selector) || has(self.owners)",
    "names no Pods: name namespaces, selector or owners, or set drain.strategy",
    ".namespaces",
)
_NAMESPACES = Rule(
    "!has(self.namespaces) || !self.namespaces.exists(name, name == 'kube-system')",
    "no drain touches Pods of kube-system; remove that name",
    ".namespaces",
)
_DAEMONS = Rule(
    "!has(self.owners) || !self.owners.exists(kind, kind in ['DaemonSet', 'Node'])",
    "no drain touches Pods of a DaemonSet and static Pods; remove that kind",
    ".owners",
)
_INDIRECT = Rule(
    "!has(self.owners) || !self.owners.exists(kind, kind in ['Deployment', 'CronJob'])",
    "no Pod belongs to a Deployment or a CronJob itself; write ReplicaSet or Job",
    ".owners",
)
_OURS = Rule(
    "self.strategy != 'External'",
    "External is for a whole node: set drain.strategy",
    ".strategy",
)
_CheckedRule = Annotated[DrainRule, rules(_CHOOSES, _NAMESPACES, _DAEMONS, _INDIRECT, _OURS)]


class Drain(Base, frozen=True, kw_only=True):
    """How Pods are moved off the node before the operation."""

    strategy: Annotated[
        Strategy,
        doc(
            "Evict: ask, and respect every PodDisruptionBudget. Delete: delete with the Pod's own grace. "
            "EvictThenDelete: evict for `evictFor`, then delete. ForceDelete: forget the Pods of a node whose kubelet "
            "is silent; their processes may still run. WaitForCompletion: ask no Pod, wait until all have ended. "
            "None: leave Pods alone. External: another system drains the node, and says so by a Condition. Required."
        ),
    ]
    timeout: Annotated[
        Timeout, doc("How long the drain may take before the attempt counts as failed. Default 30m.")
    ] = "30m"
    condition: Annotated[
        ConditionType | None,
        doc(
            "The node Condition by which another system says that the node is drained; only with strategy External. "
            "True counts, with a transition or a heartbeat that is not older than the annotation "
            "remediator.dev/drain-requested of the node."
        ),
    ] = None
    evict_for: Annotated[
        Timeout | None,
        doc("How long EvictThenDelete evicts before it deletes. Default: half of the timeout."),
    ] = None
    delete_bare_pods: Annotated[
        bool,
        doc("Pods without a controller may go, though nothing makes them again. Default false: they block the drain."),
    ] = False
    delete_empty_dir_data: Annotated[
        bool,
        doc("What Pods have in emptyDir volumes, also in memory, may be lost. Default false: they block the drain."),
    ] = False
    override_annotations_after: Annotated[
        Timeout | None,
        doc(
            "How long after its start the drain ignores annotations by which owners keep their Pods "
            "(remediator.dev/evict, safe-to-evict, do-not-disrupt). Data and bare Pods need their own field. "
            "Default: never; the Pod keeps the node."
        ),
    ] = None
    rules: Annotated[
        tuple[_CheckedRule, ...],
        Meta(max_length=16),
        doc("Other strategies for some Pods; the first that chooses a Pod holds.", x_kubernetes_list_type="atomic"),
    ] = ()
    skip_wait_for_delete: Annotated[
        Timeout | None,
        doc(
            "The drain does not wait for a Pod that should have ended this long ago, its own grace included: only "
            "a reboot ends its process. Only with success.bootIDChanged. Default: every Pod is waited for."
        ),
    ] = None


def _uses(strategy: Strategy) -> str:
    """CEL: the drain, or one of its rules, has this strategy."""
    return (
        f"(self.drain.strategy == '{strategy}' || "
        f"(has(self.drain.rules) && self.drain.rules.exists(rule, rule.strategy == '{strategy}')))"
    )


DRAIN_RULES = (
    Rule(
        "!has(self.drain.skipWaitForDelete) || (has(self.success) && has(self.success.bootIDChanged) && "
        "self.success.bootIDChanged)",
        "drain.skipWaitForDelete needs success.bootIDChanged: true; only a reboot ends what cannot end",
        ".drain",
    ),
    Rule(
        f"!has(self.drain.evictFor) || {_uses(Strategy.EVICT_THEN_DELETE)}",
        "drain.evictFor needs strategy EvictThenDelete; remove it or choose that strategy",
        ".drain",
    ),
    Rule(
        "(self.drain.strategy == 'External') == has(self.drain.condition)",
        "drain.condition belongs to drain.strategy External; name the Condition that it waits for, or remove it",
        ".drain",
    ),
    Rule(
        "self.drain.strategy != 'External' || !has(self.drain.rules)",
        "drain.rules choose what a drain of ours does; remove them, or another drain.strategy than External",
        ".drain",
    ),
    Rule(
        f"!{_uses(Strategy.FORCE_DELETE)} || (has(self.runOn) && self.runOn == 'Elsewhere')",
        "drain.strategy ForceDelete is for a silent node, on which no operation can run; set runOn: Elsewhere",
        ".drain",
    ),
)
