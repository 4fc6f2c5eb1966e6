"""Nodes, Pods and namespaces as we read them."""

import re
from collections.abc import Sequence
from functools import lru_cache
from sys import intern

from remediator.core import names, pod
from remediator.core.device_count import DEVICE_INVENTORY, counted
from remediator.core.hosts import HostKind, kinds
from remediator.core.node import MOST_HANDLED, Gpus, Node, Status, Taint
from remediator.core.node_versions import NODE_VERSIONS, versions
from remediator.core.packed_conditions import MOST_SHARED, ConditionWords, PackedConditions, shareable
from remediator.core.user_pod import UserPod
from remediator.kube.api import builtin, gpu_pods, shared_gpus
from remediator.kube.api.common import controller_kind
from remediator.kube.api.decode.times import EPOCH, moment, moment_of_node

KINDS_OF_NODES = 256  # by the GPUs that they offer, or by what all their Conditions say
WORDS, LONGEST_SHARED = 4096, 512  # Conditions without their times of which one object serves all nodes; characters
MOST_ADMITTED = 8  # gates of new nodes that a node has come through


def node(wire: builtin.Node) -> Node:
    """A Node. A status that is none of the three words reads as Unknown; a missing time as long ago, an odd one as
    LATEST.

    Nodes have a hundred labels and dozens of conditions, nearly all of them in common: words and times are shared.
    """
    annotations = wire.metadata.annotations
    conditions = _conditions(wire.status.conditions)
    return Node(
        name=wire.metadata.name,
        uid=wire.metadata.uid,
        labels={intern(key): intern(value) for key, value in wire.metadata.labels.items()},
        conditions=conditions,
        taints=tuple(Taint(taint.key, taint.value, taint.effect, taint.time_added) for taint in wire.spec.taints),
        unschedulable=wire.spec.unschedulable,
        boot_id=wire.status.node_info.boot_id,
        machine=_machine(wire.status.node_info),
        board=names.machine(wire.status.node_info.system_uuid, "")[:8] if wire.status.node_info.system_uuid else "",
        kernel=intern(wire.status.node_info.kernel_version[:128]),
        hosts=_hosts(wire.status.node_info),
        handled=_handled(annotations.get(names.HANDLED, "")),
        cordoned_by=annotations.get(names.CORDONED_BY, ""),
        kept_cordoned=annotations.get(names.KEPT_CORDONED, ""),
        in_service=annotations.get(names.IN_SERVICE, ""),
        cordon_reason=annotations.get(names.CORDON_REASON, ""),
        out_of_service_boot=annotations.get(names.OUT_OF_SERVICE_BOOT, ""),
        scale_down_disabled=annotations.get(names.SCALE_DOWN_DISABLED, ""),
        scale_down_disabled_by=annotations.get(names.SCALE_DOWN_DISABLED_BY, ""),
        gpus=_gpus(gpu_pods.readable(wire)),
        devices=_shared(gpu_pods.devices(wire)),
        cards=shared_gpus.sizes(wire),
        counted=counted(conditions[DEVICE_INVENTORY].message) if DEVICE_INVENTORY in conditions else None,
        versions=versions(conditions[NODE_VERSIONS].message) if NODE_VERSIONS in conditions else (),
        cpu=gpu_pods.milli_cores((wire.status.allocatable or {}).get(gpu_pods.CPU, 0)),
        admitted=_admitted(annotations.get(names.ADMITTED, "")),
        drain_requested=moment_of_node(annotations.get(names.DRAIN_REQUESTED)),
        created=moment(wire.metadata.creation_timestamp),
        version=wire.metadata.resource_version,
    )


def _gpus(gpus: Gpus) -> Gpus:
    return _shared(gpus) if len(gpus) <= MOST_SHARED else gpus


@lru_cache(KINDS_OF_NODES)
def _shared(gpus: Gpus) -> Gpus:
    return gpus


def _hosts(info: builtin.NodeInfo) -> tuple[HostKind, ...]:
    return _kinds(info.os_image[:128], info.container_runtime_version[:128], info.kubelet_version[:128])


_kinds = lru_cache(KINDS_OF_NODES)(kinds)


def _machine(info: builtin.NodeInfo) -> str:
    return names.machine(info.system_uuid, info.machine_id) if info.system_uuid or info.machine_id else ""


def _admitted(text: str) -> tuple[str, ...]:
    """The entries of the annotation, a few at most: whoever may write the node may write anything there."""
    return tuple(entry for entry in text.split(",", MOST_ADMITTED)[:MOST_ADMITTED] if entry)


def _handled(text: str) -> tuple[str, ...]:
    """The newest names of cases in the annotation, as many as we write; what can be no name of an object is left out.

    Whoever may write the node may write anything there, and a release writes back what is read here.
    """
    newest = text.rsplit(",", MOST_HANDLED)[-MOST_HANDLED:]
    return tuple(name for name in newest if len(name) <= _LONGEST_NAME and _NAME.fullmatch(name))


_LONGEST_NAME = 253
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)


def _conditions(wire: Sequence[builtin.NodeCondition]) -> PackedConditions:
    """Of several of one type the last one counts."""
    conditions = {condition.type: condition for condition in wire}.values()
    since = [moment_of_node(condition.last_transition_time) or EPOCH for condition in conditions]
    beats = [moment_of_node(condition.last_heartbeat_time) for condition in conditions]
    heartbeats = [beat or began for beat, began in zip(beats, since, strict=True)]
    words = tuple([_without_times(condition) for condition in conditions])
    shared = shareable([wire.type + wire.status + wire.reason + wire.message for wire in conditions])
    return PackedConditions(_sentences(words) if shared else words, since, heartbeats)


def _letters(wire: builtin.NodeCondition) -> int:
    return len(wire.type) + len(wire.status) + len(wire.reason) + len(wire.message)


def _without_times(wire: builtin.NodeCondition) -> ConditionWords:
    words = _condition_words if _letters(wire) <= LONGEST_SHARED else _condition_words.__wrapped__
    return words(wire.type, wire.status, wire.reason, wire.message)


@lru_cache(WORDS)
def _condition_words(type: str, status: str, reason: str, message: str) -> ConditionWords:
    known = _STATUSES.get(status, Status.UNKNOWN)
    return ConditionWords(intern(type), known, intern(reason), intern(message))


@lru_cache(KINDS_OF_NODES)
def _sentences(words: tuple[ConditionWords, ...]) -> tuple[ConditionWords, ...]:
    """Nodes without a fault say the same: one object for all."""
    return words


_STATUSES = {status.value: status for status in Status}


def operation_pod(wire: builtin.Pod) -> pod.Pod:
    """A Pod, of ours or not. A mirror Pod never is: any kubelet may make one, with labels as it likes."""
    mirror = names.MIRROR in wire.metadata.annotations
    labels = {} if mirror else wire.metadata.labels
    test = (wire.metadata.annotations.get(names.IDLE_TEST, "") if names.IDLE_TEST in labels else "").split("/", 2)
    asked, tested, tested_boot = (*test, "", "")[:3]
    ended = _end(wire)
    known = ended if ended and ended.reason not in _NOT_KNOWN else None
    waiting = _waiting(wire.status)
    return pod.Pod(
        name=wire.metadata.name,
        namespace=wire.metadata.namespace,
        uid=wire.metadata.uid,
        node=wire.spec.node_name,
        phase=pod.PodPhase(wire.status.phase) if wire.status.phase in _POD_PHASES else pod.PodPhase.UNKNOWN,
        operation_uid=labels.get(names.OPERATION_UID_LABEL, ""),
        case_uid=labels.get(names.CASE_UID_LABEL, ""),
        template=labels.get(names.OPERATION_LABEL, ""),
        exit_code=known.exit_code if known else None,
        message=(known.message or _said(wire, waiting)) if known else _without_end(wire, waiting, ended),
        reason=wire.status.reason or (ended.reason if ended else ""),
        waiting=waiting.reason if waiting else "",
        container_end=_container_end(wire),
        disrupted=_disrupted(wire),
        deletion=moment(wire.metadata.deletion_timestamp),
        finalizers=wire.metadata.finalizers,
        mirror=mirror,
        created=moment(wire.metadata.creation_timestamp),
        idle_test=asked,
        tested=tested,
        tested_boot=tested_boot,
        neighbour_of=labels.get(names.NEIGHBOUR_OF, "") if asked else "",
        ready=any(entry.type == "Ready" and entry.status == "True" for entry in wire.status.conditions),
        version=wire.metadata.resource_version,
    )


_POD_PHASES = frozenset(pod.PodPhase)
# A kubelet's words for the end of a container that it has not seen: whether it ever began, nobody knows.
_NOT_KNOWN = frozenset({"ContainerStatusUnknown", "Unknown"})


def user_pod(wire: builtin.Pod) -> UserPod:
    """A Pod as it matters to a drain of its node."""
    meta = wire.metadata
    return UserPod(
        name=meta.name,
        namespace=meta.namespace,
        labels=meta.labels,
        owner=controller_kind(meta.owner_references),
        mirror=names.MIRROR in meta.annotations,
        ended=wire.status.phase in ("Succeeded", "Failed"),
        deletion=moment(meta.deletion_timestamp),
    )


def _first(wire: builtin.Pod) -> builtin.ContainerStatus:
    """The first container, which does the work. A kubelet lists them by name."""
    first = wire.spec.containers[0].name if wire.spec.containers else ""
    statuses = (each for each in wire.status.container_statuses if first in ("", each.name))
    return next(statuses, builtin.ContainerStatus())


def _end(wire: builtin.Pod) -> builtin.Terminated | None:
    """The end of the first container; None before that."""
    return _first(wire).state.terminated


def _container_end(wire: builtin.Pod) -> pod.ContainerEnd:
    """A kubelet keeps apart what it has lost: a container that ran is in lastState as well."""
    end, last = _end(wire), _first(wire).last_state.terminated
    if end is None:
        return pod.ContainerEnd.NONE
    begun = end.reason not in _NOT_KNOWN or end.started_at is not None or last is not None
    return pod.ContainerEnd.RAN if begun else pod.ContainerEnd.FORGOTTEN


def _waiting(status: builtin.PodStatus) -> builtin.Waiting | None:
    """Of the first container that waits for more than its turn: the first words of a kubelet say nothing yet.

    None where another one has begun: such a Pod is Pending, too.
    """
    if any(container.state.running or container.state.terminated for container in status.container_statuses):
        return None
    containers = (*status.init_container_statuses, *status.container_statuses)
    waits = (container.state.waiting for container in containers)
    return next((each for each in waits if each and each.reason not in _TURN), None)


_TURN = frozenset({"", "ContainerCreating", "PodInitializing"})


def _said(wire: builtin.Pod, waiting: builtin.Waiting | None) -> str:
    """What the kubelet says of a Pod. That its time is over says less than what it has waited for all the time."""
    status, words = wire.status.message, _words(waiting)
    return words or status if wire.status.reason == pod.EXPIRED else status or words


def _without_end(wire: builtin.Pod, waiting: builtin.Waiting | None, ended: builtin.Terminated | None) -> str:
    """What is said of a Pod of whose first container no end is known."""
    words = _said(wire, waiting) or _before(wire.status) or _unscheduled(wire)
    return words or (ended.message if ended else "")


def _before(status: builtin.PodStatus) -> str:
    """How the init container has failed without which no other one begins; "" where none has."""
    ends = ((each.name, each.state.terminated) for each in status.init_container_statuses)
    failed = ((name, end) for name, end in ends if end and end.exit_code and end.reason not in _NOT_KNOWN)
    return next((f"init container {name}: {end.message or f'exit code {end.exit_code}'}" for name, end in failed), "")


def _words(waiting: builtin.Waiting | None) -> str:
    """What the kubelet says of it, which begins with its one word for it."""
    return ": ".join(word for word in (waiting.reason, waiting.message) if word) if waiting else ""


def _disrupted(wire: builtin.Pod) -> str:
    """Why Kubernetes ends it, in one word; "" where it does not."""
    entries = (entry for entry in wire.status.conditions if entry.type == "DisruptionTarget" and entry.status == "True")
    return next((entry.reason or entry.type for entry in entries), "")


def _unscheduled(wire: builtin.Pod) -> str:
    """Why the scheduler could not place it: what a person must know of a Pod that never starts."""
    conditions = (entry for entry in wire.status.conditions if entry.type == "PodScheduled" and entry.status == "False")
    return next((entry.message for entry in conditions), "")


def paused(wire: builtin.Namespace) -> bool:
    """Whether somebody stopped everything new."""
    return names.PAUSED in wire.metadata.annotations


def leaving(wire: builtin.Namespace) -> bool:
    """Whether nodes are given back before Remediator is taken away."""
    return wire.metadata.annotations.get(names.PAUSED) == names.LEAVING
