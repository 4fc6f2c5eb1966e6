"""What the nodes of a group have in common: of each kind of version the value of nearly all, and since when. Pure.

A roll-out changes a group node by node, and nobody can tell then which value is right. So it is kept when a kind last
moved in a group: a node changed its value, or one with another value than nearly all came or went. Nodes with the value
of nearly all may come and go: a group that grows and shrinks is no roll-out. What a node does not say now it has as it
said last. What it says anew counts once it has said it for SETTLED: a node that boots and is as before soon is no step
of a roll-out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from remediator.core.node_versions import LINES_KEPT, Versions, merged

LEAST, NEARLY_ALL = 5, 80  # nodes that tell a kind, and percent of them that have one value
SETTLED = timedelta(minutes=20)  # that a node says a value before it counts: two reports of the detector
LONGEST_STEP = timedelta(hours=6)  # of an upgrade on one node: what stays longer in one is stuck, and no roll-out
MODEL = "gpu"  # the kind that is part of the group
ROLL_OUT = ""  # in place of a value: another system rolls out a kind

Group = tuple[str, ...]  # what its nodes have in common: the values of labels, and the model of the GPUs
GroupKind = tuple[Group, str]


class VersionReport(NamedTuple):
    """What one node says now. `labels`: the values of those that make groups; `versions`: () where nobody can tell;
    `rolling`: kinds that another system rolls out, and `step`: how far it is; `stands`: whether its Condition NodeDrift
    is True or Unknown.
    """

    node: str
    labels: tuple[str, ...]
    versions: Versions
    rolling: frozenset[str] = frozenset()
    stands: bool = False
    step: str = ""


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
    """All that is known of groups. `began`: the first look; `samples` by node.

    `fresh`: what nodes say that does not count yet; `steps`: of upgrades; both since when, by node.
    """

    began: datetime
    samples: Mapping[str, VersionSample]
    standings: Mapping[GroupKind, Standing]
    fresh: Mapping[str, tuple[Versions, datetime]] = MappingProxyType({})
    steps: Mapping[str, tuple[str, datetime]] = MappingProxyType({})


def look(before: GroupsSeen | None, reports: Iterable[VersionReport], now: datetime) -> GroupsSeen:
    """What is known after one more look at all nodes; `before`: None for the first one."""
    known = before.samples if before else {}
    samples, fresh, steps, rolling = {}, {}, {}, set[GroupKind]()
    for report in reports:
        versions, settled = _said(known.get(report.node), report), True
        if before and report.node in known and versions != known[report.node].versions:
            since = _since(before.fresh.get(report.node), versions, now)
            if not (settled := now - since >= SETTLED):
                fresh[report.node] = (versions, since)
        sample = samples[report.node] = _sample(report.labels, versions if settled else known[report.node].versions)
        if report.rolling:
            since = _since(before.steps.get(report.node) if before else None, report.step, now)
            steps[report.node] = (report.step, since)
            if now - since < LONGEST_STEP:
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
    return GroupsSeen(before.began if before else now, samples, standings, fresh, steps)


def steady(seen: GroupsSeen, report: VersionReport) -> Versions:
    """What a node says now without what does not count yet, and is not as nearly all have it."""
    sample = seen.samples[report.node]
    if report.versions == sample.versions:
        return report.versions
    counts, standings = frozenset(sample.versions), seen.standings
    return tuple(
        (kind, value)
        for kind, value in report.versions
        if (kind, value) in counts or ((key := (sample.group, kind)) in standings and standings[key].value == value)
    )


def _said(known: VersionSample | None, report: VersionReport) -> Versions:
    if known is None or known.versions is report.versions:
        return report.versions
    return merged(known.versions, report.versions)


def _since(before: tuple[Versions | str, datetime] | None, words: Versions | str, now: datetime) -> datetime:
    return before[1] if before and before[0] == words else now


@lru_cache(LINES_KEPT)
def _sample(labels: tuple[str, ...], versions: Versions) -> VersionSample:
    """One object for all nodes that say the same."""
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
