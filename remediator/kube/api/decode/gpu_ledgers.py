"""Ledgers of shared GPUs as we read them."""

from remediator.core.shared_gpus import Ledger, Reservation
from remediator.kube import api
from remediator.kube.api.decode.times import moment


def gpu_ledger(wire: api.GpuLedger) -> Ledger:
    """A ledger."""
    entries = tuple(_reservation(entry) for entry in wire.spec.reservations)
    return Ledger(wire.metadata.name, wire.spec.node_uid, entries, wire.metadata.resource_version)


def _reservation(wire: api.GpuReservation) -> Reservation:
    return Reservation(
        pod_uid=wire.pod_uid,
        namespace=wire.namespace,
        name=wire.name,
        shares=tuple(sorted((card.index, card.memory) for card in wire.cards)),
        at=moment(wire.reserved_at),
        token=wire.token,
    )
