"""What we know of one node: small frozen facts that are equal when nothing relevant has changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from remediator.core import names
from remediator.core.device_count import DeviceCount
from remediator.core.hosts import HostKind
from remediator.core.node_versions import Versions
from remediator.core.shared_gpus import NO_CARDS, CardSizes

MOST_HANDLED = 32  # names of cases that a node remembers


class Status(StrEnum):
    """What a Condition says. UNKNOWN is neither health nor fault."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """One node Condition. A newer heartbeat alone does not make it another condition."""

    type: str
    status: Status
    reason: str
    since: datetime
    heartbeat: datetime = field(compare=False)
    message: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Taint:
    """One taint; `added` is kept as the server wrote it, so that a rewrite loses nothing."""

    key: str
    value: str
    effect: str
    added: str = ""


Gpus = tuple[tuple[str, int], ...]  # (resource, count), sorted


@dataclass(frozen=True, slots=True)
class Node:
    """One node as last observed.

    Labels are the whole map: selectors of policies and budgets may name any of them. `version` is what a write must
    carry to be refused if the node moved; it changes with every heartbeat, so it is not compared. `gpus` are those that
    the node offers: 0 where it had some, nothing of a resource whose count cannot be read.
    `devices` are the GPUs that it is known to have, sick ones too.
    """

    name: str
    uid: str
    labels: Mapping[str, str]
    conditions: Mapping[str, NodeCondition]
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    boot_id: str = ""
    machine: str = ""  # one word for its board and its installed system; "" where the kubelet names neither
    board: str = ""  # one word for its board alone
    kernel: str = ""  # its version, as the kubelet says
    hosts: tuple[HostKind, ...] = ()  # what it runs on, where the kubelet says something that we know
    handled: tuple[str, ...] = ()  # the names of cases that are over and are not opened again, oldest first
    cordoned_by: str = ""
    kept_cordoned: str = ""  # the case whose operation took the node out for a person: that cordon outlives the case
    in_service: str = ""  # the case whose operation isolated a GPU alone: it holds the node without a cordon
    cordon_reason: str = ""  # why, as Slurm is told; ours or not
    out_of_service_boot: str = ""  # its taint out-of-service is ours: the boot whose power was taken away
    scale_down_disabled: str = ""
    scale_down_disabled_by: str = ""
    gpus: Gpus = ()
    devices: Gpus = ()
    cards: CardSizes = NO_CARDS  # those that Pods share by memory
    counted: DeviceCount | None = None  # what a program on the node counts there, as its Condition says
    versions: Versions = ()  # what a program on the node reads there, as its Condition says
    cpu: int = 0  # that Pods may have of it, in thousandths of a core
    admitted: tuple[str, ...] = ()  # TAINT=MACHINE of each gate of new nodes that a machine here has come through
    drain_requested: datetime | None = None  # since when another system is asked to drain it
    created: datetime | None = None  # when the Node was made: another machine may have had its name before
    version: str = field(default="", compare=False)

    @property
    def ready(self) -> Status:
        """What the Ready condition says; UNKNOWN where there is none."""
        condition = self.conditions.get("Ready")
        return condition.status if condition else Status.UNKNOWN

    @property
    def driver(self) -> str:
        """The version of the GPU driver, as the labels of GPU Feature Discovery or of AMD say; "" where none does."""
        full = next((self.labels[label] for label in _DRIVER if self.labels.get(label)), "")
        parts = [self.labels.get(label, "") for label in _DRIVER_PARTS]
        return full or (".".join(part for part in parts if part) if parts[0] else "")

    @property
    def case_uid(self) -> str:
        """The case that holds the node by its taint, "" for none."""
        return next((taint.value for taint in self.taints if taint.key == names.CASE_TAINT), "")

    @property
    def marks(self) -> frozenset[str]:
        """The uids of the cases that the node's taint, cordon and annotations of ours name."""
        return frozenset({self.case_uid, self.cordoned_by, self.in_service, self.scale_down_disabled_by} - {""})

    @property
    def degraded(self) -> bool:
        """Whether the node carries our mark of one that waits for repair."""
        return any(taint.key == names.DEGRADED_TAINT for taint in self.taints)

    @property
    def gates(self) -> tuple[str, ...]:
        """The keys of taints of ours that no case has put on: a new node may wait at these gates."""
        ours = (taint.key for taint in self.taints if taint.key.startswith(_OURS))
        return tuple(key for key in ours if key not in (names.CASE_TAINT, names.DEGRADED_TAINT))

    @property
    def opted_out(self) -> bool:
        """Whether a user excluded the node from all repairs: by any value of the label but "false"."""
        return self.labels.get(names.EXCLUDE, "false") != "false"

    @property
    def control_plane(self) -> bool:
        """Whether the node says of itself that it is part of the control plane."""
        return not _CONTROL_PLANE.isdisjoint(self.labels)

    @property
    def cordoned_by_user(self) -> bool:
        """Unschedulable, and not by us."""
        return self.unschedulable and not self.cordoned_by

    @property
    def back_in_service(self) -> bool:
        """Whether a node that an operation has declared out of service runs again, in another boot."""
        known = bool(self.out_of_service_boot and self.boot_id)
        return known and self.boot_id != self.out_of_service_boot and self.ready is Status.TRUE

    @property
    def kept_out(self) -> bool:
        """Whether an operation of a case took the node out for a person; the case may be over."""
        return self.unschedulable and bool(self.kept_cordoned) and not self.cordoned_by


_OURS = f"{names.GROUP}/"
_DRIVER = ("nvidia.com/cuda.driver-version.full", "amd.com/gpu.driver-version")
_DRIVER_PARTS = tuple(f"nvidia.com/cuda.driver.{part}" for part in ("major", "minor", "rev"))  # before release 0.15
# In this order: of today, of old clusters, of k3s and RKE2 for etcd alone, of RKE1.
_CONTROL_PLANE = frozenset(
    f"node-role.kubernetes.io/{role}" for role in ("control-plane", "master", "etcd", "controlplane")
)
