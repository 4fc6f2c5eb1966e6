"""NodeInventory: what a node, or every node of a group, is known to have."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.device_count import MOST_KINDS, MOST_OF_A_KIND
from remediator.core.idle_result import MOST_TESTED
from remediator.core.reboot_loop import MOST_BOOTS
from remediator.kube.api.common import (
    API_VERSION,
    Base,
    LabelSelector,
    Name,
    ObjectMeta,
    Rule,
    Time,
    doc,
    rules,
    shaped,
)

_Kind = Annotated[
    str,
    shaped("^[a-z][a-z0-9-]{0,31}$", "must be a kind that the Condition DeviceInventory counts, such as gpus", 32),
]
Counts = Annotated[dict[_Kind, Annotated[int, Meta(ge=0, le=MOST_OF_A_KIND)]], Meta(max_length=MOST_KINDS)]
ONE_SUBJECT = Rule(
    "has(self.nodeName) != has(self.nodeSelector)",
    "give nodeName for one node, or nodeSelector for a group of nodes",
)
OF_A_GROUP = Rule(
    "has(self.nodeName) || has(self.expected)",
    "is required with nodeSelector: nothing is learnt for a group",
    ".expected",
)
# On the whole object: the name of the metadata is known there alone.
SAME_NAME = Rule(
    "!has(self.spec.nodeName) || self.spec.nodeName == self.metadata.name",
    "must be the name of the object: a node has one inventory",
    ".spec.nodeName",
)


class NodeInventorySpec(Base, frozen=True, kw_only=True):
    """Whose inventory it is, and what a user knows better than what was learnt."""

    node_name: Annotated[Name | None, doc("The node; the object has the same name.")] = None
    node_selector: Annotated[LabelSelector | None, doc("The nodes of a group, for which `expected` holds.")] = None
    expected: Annotated[
        Counts,
        doc(
            "How many of a kind there must be, whatever was learnt: {gpus: 8}. 0: none is missed. What is said of a "
            "node outranks what is said of its group."
        ),
    ] = msgspec.field(default_factory=dict)
    forget_before: Annotated[
        Time | None, doc("Forget what was learnt before this time, and learn anew: a device was taken out for good.")
    ] = None


class GpuResult(Base, frozen=True, kw_only=True):
    """The newest result of one GPU."""

    serial: Annotated[str, Meta(max_length=96), doc("Serial number of its board.")] = ""
    uuid: Annotated[str, Meta(max_length=96), doc("Its UUID.")] = ""
    passed: Annotated[bool, doc("Whether it has passed.")] = False
    at: Annotated[Time, doc("When.")]


class IdleTestResult(Base, frozen=True, kw_only=True):
    """What the newest test of the idle node said that said anything."""

    policy: Annotated[Name, doc("The policy whose spec.idleTest asked for it.")]
    probe: Annotated[Name, doc("The NodeOperationTemplate that was run.")]
    passed: Annotated[bool, doc("Whether the program ended with 0; else it ended with 1.")] = False
    at: Annotated[Time, doc("When its result was read.")]
    boot_id: Annotated[str, Meta(max_length=64), doc("The boot of the node.")] = msgspec.field(
        name="bootID", default=""
    )
    message: Annotated[str, Meta(max_length=1024), doc("What the program said, cut.")] = ""


class Boots(Base, frozen=True, kw_only=True):
    """The newest boot of a node, and when it booted though nobody had asked for it."""

    boot_id: Annotated[str, Meta(max_length=64), doc("The newest boot that its kubelet told.")] = msgspec.field(
        name="bootID", default=""
    )
    node_uid: Annotated[str, Meta(max_length=64), doc("The uid of its Node: one that is made again begins anew.")] = (
        msgspec.field(name="nodeUID", default="")
    )
    unasked: Annotated[
        tuple[Time, ...],
        Meta(max_length=MOST_BOOTS),
        doc("When it booted though nobody had asked for it, oldest first.", x_kubernetes_list_type="atomic"),
    ] = ()


class NodeInventoryStatus(Base, frozen=True, kw_only=True):
    """What was learnt; written by the controller alone."""

    counts: Annotated[Counts, doc("The most of each kind that the node was ever seen with.")] = msgspec.field(
        default_factory=dict
    )
    digest: Annotated[str, Meta(max_length=64), doc("Which devices these are: it changes when one is replaced.")] = ""
    since: Annotated[Time | None, doc("When more was learnt last, or which devices these are changed.")] = None
    board: Annotated[
        str,
        Meta(max_length=64),
        doc("One word for systemUUID of the node: another machine that registers under its name begins anew."),
    ] = ""
    node_uid: Annotated[str, Meta(max_length=64), doc("The uid of the Node that counted last.")] = msgspec.field(
        name="nodeUID", default=""
    )
    idle_test: Annotated[IdleTestResult | None, doc("The newest test of the node while it was idle.")] = None
    tested_gpus: Annotated[
        tuple[GpuResult, ...],
        Meta(max_length=MOST_TESTED),
        doc("The newest result of each GPU that a test has named here.", x_kubernetes_list_type="atomic"),
    ] = ()
    boots: Annotated[Boots | None, doc("What the Condition RebootLoop rests on.")] = None
    node_gone_since: Annotated[
        Time | None,
        doc("Since when there is no such node; 30 days later this is deleted, unless a user has said more."),
    ] = None


class NodeInventory(Base, frozen=True, kw_only=True):
    """The devices, mounts and addresses that a node is known to have: only ever more, until a user resets it."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "NodeInventory")
    metadata: ObjectMeta
    spec: Annotated[NodeInventorySpec, rules(ONE_SUBJECT, OF_A_GROUP)]
    status: NodeInventoryStatus = NodeInventoryStatus()
