"""What expressions of Prometheus ask for, and which metrics and labels Remediator has."""

import re
from collections.abc import Mapping
from functools import cache

import remediator.app
import remediator.janitor.metrics
import remediator.prometheus.metrics
from remediator.metrics import REGISTRY

SELECTOR = re.compile(r"((?:remediator|kube|DCGM)_\w+)(?:\{(.*?)\})?")
MATCHER = re.compile(r'(\w+)[=!]~?"(.*?)"')
GROUPED = re.compile(r"by \((.*?)\)")
SUFFIXES: Mapping[str, tuple[str, ...]] = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
_POD = frozenset({"namespace", "pod", "uid"})
# Metrics of others, as kube-state-metrics 2.13 and dcgm-exporter 4.5 name them, with our PodMonitor's node.
OTHERS: Mapping[str, frozenset[str]] = {
    "kube_node_status_capacity": frozenset({"node", "resource", "unit"}),
    "kube_node_status_allocatable": frozenset({"node", "resource", "unit"}),
    "kube_node_spec_unschedulable": frozenset({"node"}),
    "kube_pod_status_phase": _POD | {"phase"},
    "kube_pod_container_resource_requests": _POD | {"container", "node", "resource", "unit"},
    "DCGM_FI_DEV_GPU_UTIL": frozenset({"node", "gpu", "UUID", "modelName", "namespace", "pod", "container"}),
}
# What registers metrics when it is imported.
PARTS = (remediator.app, remediator.janitor.metrics, remediator.prometheus.metrics)


@cache
def labels() -> Mapping[str, frozenset[str]]:
    """The labels of each series by its name; that of a bucket has le."""
    known: dict[str, frozenset[str]] = dict(OTHERS)
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
