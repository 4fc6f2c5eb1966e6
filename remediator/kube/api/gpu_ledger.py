"""GpuLedger: which Pod was given how much memory of which GPU of one node."""

from typing import Annotated

import msgspec
from msgspec import Meta

from remediator.core.shared_gpus import MOST_CARDS, MOST_MEMORY, MOST_RESERVATIONS
from remediator.kube.api.common import API_VERSION, Base, Name, ObjectMeta, Time, Uid, doc

Memory = Annotated[int, Meta(ge=0, le=MOST_MEMORY)]
Index = Annotated[int, Meta(ge=0, le=MOST_CARDS - 1)]


class CardMemory(Base, frozen=True, kw_only=True, omit_defaults=False):
    """Memory of one card."""

    index: Annotated[Index, doc("The index of the card on its node.")]
    memory: Annotated[Memory, doc("Its memory, in the units of aliyun.com/gpu-mem.")]


Cards = Annotated[tuple[CardMemory, ...], Meta(max_length=MOST_CARDS)]


class GpuReservation(Base, frozen=True, kw_only=True):
    """What one Pod was given, before it is bound and for as long as it runs."""

    pod_uid: Annotated[Uid, doc("The uid of the Pod.")] = msgspec.field(name="podUID")
    namespace: Annotated[Name, doc("Its namespace.")]
    name: Annotated[Name, doc("Its name.")]
    cards: Annotated[Cards, doc("The cards, and its memory on each.", x_kubernetes_list_type="atomic")]
    reserved_at: Annotated[Time, doc("When it was reserved, or last bound again.")]
    token: Annotated[
        str, Meta(max_length=64), doc("The bind that wrote it; absent for a Pod that was bound without a reservation.")
    ] = ""


class GpuLedgerSpec(Base, frozen=True, kw_only=True):
    """The reservations of one node; written by the scheduler extender alone."""

    node_uid: Annotated[str, Meta(max_length=64), doc("The uid of the Node when a Pod was last given a card.")] = (
        msgspec.field(name="nodeUID", default="")
    )
    cards: Annotated[
        Cards, doc("The cards and their sizes when it was last written.", x_kubernetes_list_type="atomic")
    ] = ()
    reservations: Annotated[
        tuple[GpuReservation, ...],
        Meta(max_length=MOST_RESERVATIONS),
        doc("What Pods were given, oldest first.", x_kubernetes_list_type="atomic"),
    ] = ()


class GpuLedger(Base, frozen=True, kw_only=True):
    """The memory of the GPUs of one node that Pods share, by Pod. Its name is that of the node. Never edit it."""

    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: "GpuLedger")
    metadata: ObjectMeta
    spec: GpuLedgerSpec
