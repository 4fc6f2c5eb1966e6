"""Ledgers of shared GPUs, and what binds a Pod to its cards, as we write them."""

from collections.abc import Iterable, Mapping

from remediator.core import names
from remediator.core.shared_gpus import CardPod, Ledger, Shares
from remediator.kube import api
from remediator.kube.api.encode.objects import body, second
from remediator.kube.api.patch import Body, MergePatch, MetaPatch


def new_gpu_ledger(ledger: Ledger, sizes: tuple[int, ...]) -> Body:
    """A ledger that is not there yet."""
    return body(api.GpuLedger(metadata=api.ObjectMeta(name=ledger.node), spec=_spec(ledger, sizes)))


def gpu_ledger(ledger: Ledger, sizes: tuple[int, ...]) -> Body:
    """A merge patch of the whole ledger, refused if it has moved since we read it."""
    spec: Body = {"cards": [], "reservations": []} | body(_spec(ledger, sizes))
    return body(MergePatch(metadata=MetaPatch(resource_version=ledger.version), spec=spec))


def _spec(ledger: Ledger, sizes: tuple[int, ...]) -> api.GpuLedgerSpec:
    return api.GpuLedgerSpec(
        node_uid=ledger.node_uid,
        cards=_cards(enumerate(sizes)),
        reservations=tuple(
            api.GpuReservation(
                pod_uid=entry.pod_uid,
                namespace=entry.namespace,
                name=entry.name,
                cards=_cards(entry.shares),
                reserved_at=second(entry.at),
                token=entry.token,
            )
            for entry in ledger.reservations
        ),
    )


def _cards(shares: Iterable[tuple[int, int]] | Shares) -> tuple[api.CardMemory, ...]:
    return tuple(api.CardMemory(index=index, memory=memory) for index, memory in shares)


def binding(pod: CardPod, node: str, annotations: Mapping[str, str] | None = None) -> Body:
    """What puts this Pod, in this version, on a node, and gives it these annotations in the same write."""
    meta: Body = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "resourceVersion": pod.version}
    meta = meta | ({"annotations": dict(annotations)} if annotations else {})
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}


def fence(pod: CardPod, token: str) -> Body:
    """A merge patch of a Pod that nobody has bound, after which no bind of a version before counts."""
    marked = {names.BIND_FENCE: token}
    return body(MergePatch(metadata=MetaPatch(resource_version=pod.version, annotations=marked)))
