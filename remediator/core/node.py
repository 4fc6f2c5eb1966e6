"""What we know of one node: small frozen facts that are equal when nothing relevant has changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from remediator.core import names

MOST_HANDLED = 32  # names of cases that a node remembers


class Status(StrEnum):
    """What a Condition says. UNKNOWN is neither health nor fault."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
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
    """

    name: str
    uid: str
    labels: Mapping[str, str]
    conditions: Mapping[str, Condition]
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    boot_id: str = ""
    handled: tuple[str, ...] = ()  # the names of cases that are over and are not opened again, oldest first
    cordoned_by: str = ""
    kept_cordoned: str = ""  # the case whose operation took the node out for a person: that cordon outlives the case
    scale_down_disabled: str = ""
    scale_down_disabled_by: str = ""
    gpus: Gpus = ()
    version: str = field(default="", compare=False)

    @property
    def ready(self) -> Status:
        """What the Ready condition says; UNKNOWN where there is none."""
        condition = self.conditions.get("Ready")
        return condition.status if condition else Status.UNKNOWN

    @property
    def case_uid(self) -> str:
        """The case that holds the node by its taint, "" for none."""
        return next((taint.value for taint in self.taints if taint.key == names.CASE_TAINT), "")

    @property
    def marks(self) -> frozenset[str]:
        """The uids of the cases that the node's taint, cordon and annotations of ours name."""
        return frozenset({self.case_uid, self.cordoned_by, self.scale_down_disabled_by} - {""})

    @property
    def degraded(self) -> bool:
        """Whether the node carries our mark of one that waits for repair."""
        return any(taint.key == names.DEGRADED_TAINT for taint in self.taints)

    @property
    def opted_out(self) -> bool:
        """Whether a user excluded the node from all repairs: by any value of the label but "false"."""
        return self.labels.get(names.EXCLUDE, "false") != "false"

    @property
    def control_plane(self) -> bool:
        """Whether the node says of itself that it is part of the control plane."""
        return any(label in self.labels for label in _CONTROL_PLANE)

    @property
    def cordoned_by_user(self) -> bool:
        """Unschedulable, and not by us."""
        return self.unschedulable and not self.cordoned_by

    @property
    def kept_out(self) -> bool:
        """Whether an operation of a case took the node out for a person; the case may be over."""
        return self.unschedulable and bool(self.kept_cordoned) and not self.cordoned_by


# In this order: of today, of old clusters, of k3s and RKE2 for etcd alone, of RKE1.
_CONTROL_PLANE = tuple(
    f"node-role.kubernetes.io/{role}" for role in ("control-plane", "master", "etcd", "controlplane")
)
