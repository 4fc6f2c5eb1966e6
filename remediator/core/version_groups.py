"""What the nodes of a group have in common: of each kind of version the value of nearly all, and since when. Pure.

A roll-out changes a group node by node, and nobody can tell then which value is right. So it is kept when a kind last
moved in a group: a node changed its value, or one with another value than nearly all came or went. Nodes with the value
of nearly all may come and go: a group that grows and shrinks is no roll-out. What a node does not say now it has as it
said last.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from remediator.core.node_versions import LINES_KEPT, Versions, merged

LEAST, NEARLY_ALL = 5, 80  # nodes that tell a kind, and percent of them that have one value
MODEL = "gpu"  # the kind that is part of the group
ROLL_OUT = ""  # in place of a value: another system rolls out a kind

Group = tuple[str, ...]  # what its nodes have in common: the values of labels, and the model of the GPUs
GroupKind = tuple[Group, str]


class VersionReport(NamedTuple):
    """What one node says now. `labels`: the values of those that make groups; `versions`: () where nobody can tell;
    `rolling`: kinds that another system rolls out; `stands`: whether its Condition NodeDrift is True or Unknown.
    """

    node: str
    labels: tuple[str, ...]
    versions: Versions
    rolling: frozenset[str] = frozenset()
    stands: bool = False


class VersionSample(NamedTuple):
    """What counts of a node: its group, and what it last said of each kind."""

    group: Group
    versions: Versions


NOTHING = VersionSample((), ())


class Standing(NamedTuple):
    """How a kind stands in a group: `value` is what nearly all have, "" where there is none; `having` of `nodes`.

    `moved`: when it last did; None: not since the first look.
    """

    value: str
    having: int
    nodes: int
    moved: datetime | None


class GroupsSeen(NamedTuple):
    """All that is known of groups. `began`: the first look; `samples` by node."""

    began: datetime
    samples: Mapping[str, VersionSample]
    standings: Mapping[GroupKind, Standing]


def look(before: GroupsSeen | None, reports: Iterable[VersionReport], now: datetime) -> GroupsSeen:
    """What is known after one more look at all nodes; `before`: None for the first one."""
    known = before.samples if before else {}
    samples, rolling = {}, set[GroupKind]()
    for report in reports:
        sample = samples[report.node] = _sample_of(known.get(report.node), report)
        rolling.update((sample.group, kind) for kind in report.rolling)
    touched = _touched(known, samples)
    for key in rolling:
        touched[key].add(ROLL_OUT)
    standings = {}
    for key, counts in _counted(samples.values()).items():
        value, having = _of_nearly_all(counts)
        stood = before.standings.get(key) if before else None
        moves = before is not None and (stood is None or stood.value != value or bool(touched[key] - {value}))
        standings[key] = Standing(value, having, counts.total(), now if moves else stood.moved if stood else None)
    return GroupsSeen(before.began if before else now, samples, standings)


def _sample_of(known: VersionSample | None, report: VersionReport) -> VersionSample:
    """One object for all nodes that say the same."""
    versions = report.versions
    if known is not None and known.versions is not versions:
        versions = merged(known.versions, versions)
    return _sample(report.labels, versions)


@lru_cache(LINES_KEPT)
def _sample(labels: tuple[str, ...], versions: Versions) -> VersionSample:
    return VersionSample((*labels, dict(versions).get(MODEL, "")), versions)


def _touched(
    before: Mapping[str, VersionSample], after: Mapping[str, VersionSample]
) -> defaultdict[GroupKind, set[str]]:
    """The values that a node has got or lost since, by group and kind."""
    touched: defaultdict[GroupKind, set[str]] = defaultdict(set)
    for name in before.keys() | after.keys():
        old, new = before.get(name, NOTHING), after.get(name, NOTHING)
        if old != new:
            for group, kind, value in _facts(old) ^ _facts(new):
                touched[group, kind].add(value)
    return touched


def _facts(sample: VersionSample) -> set[tuple[Group, str, str]]:
    return {(sample.group, kind, value) for kind, value in sample.versions}


def _counted(samples: Iterable[VersionSample]) -> Mapping[GroupKind, Counter[str]]:
    """How many nodes have each value. A group of which nothing is known is none."""
    counts: defaultdict[GroupKind, Counter[str]] = defaultdict(Counter)
    for sample, nodes in Counter(samples).items():
        if any(sample.group):
            for kind, value in sample.versions:
                counts[sample.group, kind][value] += nodes
    return counts


def _of_nearly_all(counts: Counter[str]) -> tuple[str, int]:
    [(value, having)] = counts.most_common(1)
    enough = counts.total() >= LEAST and having * 100 >= NEARLY_ALL * counts.total()
    return (value, having) if enough else ("", 0)
