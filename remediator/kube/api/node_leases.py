"""Leases of nodes, as the controllers of medik8s write them (core/node_lease.py): to and from the API."""

from datetime import datetime, timedelta

from remediator.core.node import Node
from remediator.core.node_lease import LENGTH, NodeLease, name
from remediator.kube.api.builtin import NODE, Lease, LeaseSpec
from remediator.kube.wire.times import micro_stamp, parse

MOST_TRANSITIONS = 2**31 - 1  # of a Lease: it has 32 bits


def node_lease(lease: Lease) -> NodeLease:
    """What a Lease says."""
    spec = lease.spec
    try:
        renewed = parse(spec.renew_time) if spec.renew_time else None
    except ValueError:
        renewed = None
    return NodeLease(lease.metadata.get("name", ""), spec.holder_identity, renewed, _length(spec))


def _length(spec: LeaseSpec) -> timedelta:
    return timedelta(seconds=spec.lease_duration_seconds)


def new(node: Node, namespace: str, holder: str, now: datetime) -> Lease:
    """The Lease of a node that has none; it goes with its node."""
    lease = Lease.named(name(node.name), namespace, _spec(holder, now, micro_stamp(now), 0))
    lease.metadata["ownerReferences"] = [_owner(node)]
    return lease


def taken_over(lease: Lease, node: Node, holder: str, now: datetime) -> Lease:
    """The same Lease with another holder, under the version that was read."""
    spec = _spec(holder, now, micro_stamp(now), min(lease.spec.lease_transitions + 1, MOST_TRANSITIONS))
    return Lease({**lease.metadata, "ownerReferences": [_owner(node)]}, spec)


def renewed(lease: Lease, now: datetime) -> Lease:
    """The same Lease for another while, under the version that was read."""
    spec = lease.spec
    return Lease(lease.metadata, _spec(spec.holder_identity, now, spec.acquire_time, spec.lease_transitions))


def _spec(holder: str, now: datetime, acquired: str | None, transitions: int) -> LeaseSpec:
    return LeaseSpec(holder, int(LENGTH.total_seconds()), acquired, micro_stamp(now), transitions)


def _owner(node: Node) -> dict[str, str]:
    return {"apiVersion": NODE.version, "kind": NODE.name, "name": node.name, "uid": node.uid}
