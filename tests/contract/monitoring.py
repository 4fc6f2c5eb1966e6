"""What expressions of Prometheus ask for, and which metrics and labels Remediator has."""

import re
from collections.abc import Mapping
from functools import cache

import remediator.app
import remediator.janitor.metrics
from remediator.metrics import REGISTRY

SELECTOR = re.compile(r"(remediator_\w+)(?:\{(.*?)\})?")
MATCHER = re.compile(r'(\w+)[=!]~?"(.*?)"')
GROUPED = re.compile(r"by \((.*?)\)")
SUFFIXES: Mapping[str, tuple[str, ...]] = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
PARTS = (remediator.app, remediator.janitor.metrics)  # what registers metrics when it is imported


@cache
def labels() -> Mapping[str, frozenset[str]]:
    """The labels of each series by its name; that of a bucket has le."""
    known: dict[str, frozenset[str]] = {}
    for collector in list(REGISTRY._collector_to_names):
        own = frozenset(getattr(collector, "_labelnames", None) or getattr(collector, "_labels", ()))
        for family in collector.describe():
            for suffix in SUFFIXES.get(family.type, ("",)):
                known[family.name + suffix] = own | ({"le"} if suffix == "_bucket" else set())
    return known


def strangers(expr: str) -> dict[str, set[str]]:
    """The metrics of the expression that there are not, and those whose labels in braces there are not."""
    known, wrong = labels(), {}
    for metric, matchers in SELECTOR.findall(expr):
        asked = {key for key, _ in MATCHER.findall(matchers)}
        if metric not in known or asked - known[metric]:
            wrong[metric] = asked - known.get(metric, frozenset())
    return wrong


def grouped(expr: str) -> set[str]:
    """The labels that the expression keeps."""
    return {label for group in GROUPED.findall(expr) for label in group.split(", ")}


def known_labels(expr: str) -> set[str]:
    """The labels of all metrics in it."""
    return set().union(*(labels()[metric] for metric, _ in SELECTOR.findall(expr)))
