"""Events about nodes, as far as policies ask for them: which node, how often, first and last."""

from datetime import UTC, datetime

import msgspec

from remediator.core import node_events
from remediator.kube.api.common import Base
from remediator.kube.wire.client import Kind

NAMESPACE = "default"  # where API servers want Events about objects that are in no namespace
MOST = 1_000_000  # occurrences that one Event may claim
LONGEST = 253  # characters that the name of a node may have
NEVER = datetime.min.replace(tzinfo=UTC)


class _EventMeta(Base, frozen=True, kw_only=True):
    uid: str = ""
    resource_version: str = ""


class _AboutNode(Base, frozen=True, kw_only=True):
    """Kubelets write no apiVersion here, and the name of the node in the place of its uid."""

    name: str = ""


class _EventSeries(Base, frozen=True, kw_only=True):
    count: int = 0
    last_observed_time: datetime | None = None


class NodeEvent(Base, frozen=True, kw_only=True):
    """An Event. Old writers count in `count`, those of events.k8s.io in `series`, from the second occurrence on."""

    metadata: _EventMeta = _EventMeta()
    involved_object: _AboutNode = _AboutNode()
    count: int = 0
    series: _EventSeries | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None


class _EventHead(Base, frozen=True, kw_only=True):
    metadata: _EventMeta = _EventMeta()


EVENT: Kind[NodeEvent] = Kind("", "v1", "events", "Event", NodeEvent, namespaced=True)


def about_nodes(reason: str) -> str:
    """The field selector of the Events about nodes that have this reason."""
    return f"involvedObject.kind=Node,reason={reason}"


def node_event(wire: NodeEvent) -> node_events.NodeEvent:
    """An Event about a node, "" where none can have that name. One without a time has happened at none that counts."""
    name = wire.involved_object.name
    times = [wire.first_timestamp, wire.event_time, wire.last_timestamp]
    times += [wire.series.last_observed_time] if wire.series else []
    known = [time for time in times if time is not None] or [NEVER]
    count = max(1, wire.count, wire.series.count if wire.series else 0)
    node = name if len(name) <= LONGEST else ""
    meta = wire.metadata
    return node_events.NodeEvent(node, min(count, MOST), min(known), max(known), meta.uid, meta.resource_version)


def unreadable(raw: msgspec.Raw) -> node_events.NodeEvent:
    """One that cannot be read is evidence of nothing."""
    meta = msgspec.json.decode(raw, type=_EventHead).metadata
    return node_events.NodeEvent("", 0, NEVER, NEVER, meta.uid, meta.resource_version)
