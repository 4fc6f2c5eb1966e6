"""Whether a node runs with other versions or settings than nearly all nodes of its group. Pure.

Nobody is told of while the group moves: a roll-out that goes on node by node looks the same at first. What has stood
still for GRACE is told. After a change of leader that time begins anew; what was told stays so where it is still so.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator.core.clocks import AHEAD
from remediator.core.maintenance import DRIVER_UPGRADE, UPGRADING
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.node_versions import NODE_DRIFT, NODE_VERSIONS, Versions
from remediator.core.own_condition import OwnCondition
from remediator.core.trust import STALE_AFTER
from remediator.core.version_groups import LEAST, NEARLY_ALL, Group, GroupsSeen, Standing, VersionReport, steady

GRACE = timedelta(hours=6)  # that a kind has stood still in its group
ALIKE, UNSURE = "NoDrift", "DriftUnknown"
# The kinds that an upgrade of the driver by the GPU operator changes. A node
# that waits for its turn (upgrade-required) moves nothing: it may wait for weeks, and those that are upgraded say so.
UPGRADED = frozenset({"driver", "gsp"})
NONE = frozenset[str]()


class Drift(NamedTuple):
    """By kind: how the node differs from nearly all others; why nobody can tell whether it does."""

    differences: Mapping[str, str]
    doubts: Mapping[str, str]


def report_of(node: Node, labels: Iterable[str], now: datetime) -> VersionReport:
    """What the node says now. `labels`: those that make groups."""
    versions, drift = node.conditions.get(NODE_VERSIONS), node.conditions.get(NODE_DRIFT)
    heard = versions is not None and versions.status is Status.TRUE and -AHEAD <= now - versions.heartbeat < STALE_AFTER
    step = node.labels.get(DRIVER_UPGRADE, "")
    return VersionReport(
        node.name,
        tuple([node.labels.get(label, "") for label in labels]),
        node.versions if heard else (),
        UPGRADED if step in UPGRADING else NONE,
        drift is not None and drift.status is not Status.FALSE,
        step,
    )


def concerned(seen: GroupsSeen, reports: Iterable[VersionReport], now: datetime) -> list[str]:
    """The nodes of which something is to be said, by name: nodes that say the same are judged once."""
    differs: dict[tuple[Group, Versions], bool] = {}
    names = []
    for report in reports:
        key = (seen.samples[report.node].group, steady(seen, report))
        if key not in differs:
            differs[key] = bool(drift(seen, *key, NONE, now).differences)
        if differs[key] or report.stands:
            names.append(report.node)
    return names


def drift(seen: GroupsSeen, group: Group, versions: Versions, stood: frozenset[str], now: datetime) -> Drift:
    """How a node of this group that says this differs; `stood`: the kinds that its Condition has told of."""
    differences, doubts, values = {}, {}, dict(versions)
    for kind in sorted(values.keys() | stood):
        standing, value = seen.standings.get((group, kind)), values.get(kind)
        if standing is None and kind in stood and not _heard(seen, group):
            doubts[kind] = f"{kind} cannot be compared: no node of its group is heard"
        if standing is None or value == standing.value:  # nobody tells this kind any more, or the node is as others
            continue
        why = _doubt(seen, standing, value, kind in stood, now)
        if why:
            doubts[kind] = f"{kind} cannot be compared: {why}"
        else:
            others = f"{standing.having} of {standing.nodes} nodes of {_name(group)}"
            differences[kind] = f"{kind} {value} where {others} have {standing.value}"
    return Drift(differences, doubts)


def _heard(seen: GroupsSeen, group: Group) -> bool:
    return any(each == group for each, _ in seen.standings)


def _doubt(seen: GroupsSeen, standing: Standing, value: str | None, stood: bool, now: datetime) -> str:
    if standing.nodes < LEAST:
        return f"fewer than {LEAST} nodes of its group tell it"
    if not standing.value:
        return f"no value is that of {NEARLY_ALL} percent of its group"
    if value is None:
        return "the node does not tell it now"
    still = now - (standing.moved or seen.began) >= GRACE or (stood and standing.moved is None)
    return "" if still else "it changes on nodes of its group"


def own_condition(
    node: Node, seen: GroupsSeen, report: VersionReport, now: datetime, *, asked: bool = False
) -> OwnCondition | None:
    """What the Condition should say; None where it says no fault already, or never said anything and there is none.

    `asked`: a case waits for proof that the node is well, so that this is said again while it can be told.
    """
    before, sample = node.conditions.get(NODE_DRIFT), seen.samples.get(node.name)
    if sample is None:
        return None
    stood = told_of(before)
    differences, doubts = drift(seen, sample.group, steady(seen, report), stood, now)
    if differences:
        return OwnCondition(
            NODE_DRIFT, Status.TRUE, reason_of(next(iter(differences))), "; ".join(differences.values())
        )
    provable = asked and not doubts and bool(report.versions)
    if before is None or (before.status is Status.FALSE and not provable):
        return None
    if texts := [text for kind, text in doubts.items() if kind in stood]:
        return OwnCondition(NODE_DRIFT, Status.UNKNOWN, UNSURE, "; ".join(texts))
    return OwnCondition(NODE_DRIFT, Status.FALSE, ALIKE, "the node runs as nearly all nodes of its group")


def told_of(before: NodeCondition | None) -> frozenset[str]:
    """The kinds that a Condition which stands tells of: the first word of each part of its message."""
    if before is None or before.status is Status.FALSE:
        return NONE
    return frozenset(part.split(" ", 1)[0] for part in before.message.split("; "))


def reason_of(kind: str) -> str:
    """The reason for a kind.

    >>> reason_of("power-limit")
    'PowerLimitDrift'
    """
    return "".join(word.capitalize() for word in kind.split("-")) + "Drift"


def _name(group: Group) -> str:
    """The words for a group in a sentence: each value once."""
    return ", ".join(dict.fromkeys(filter(None, group)))
