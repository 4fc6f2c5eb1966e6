"""Metrics of the extender: how fast and how often it answers, and the verdicts on the fleet."""

from functools import cache

from prometheus_client import Counter, Gauge, Histogram

from remediator.metrics import REGISTRY

SECONDS = Histogram(
    "remediator_extender_seconds",
    "From the whole request to the whole answer, by call.",
    ["call"],
    buckets=(0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1),
    registry=REGISTRY,
)
ANSWERS = Counter(
    "remediator_extender_answers_total", "Answers, by call and result.", ["call", "result"], registry=REGISTRY
)
REFUSED = Counter(
    "remediator_extender_refused_nodes_total",
    "Nodes refused to Pods: for good (unresolvable), for want of free GPUs (failed), or to evict there (preemption).",
    ["list"],
    registry=REGISTRY,
)
GANGS = Counter(
    "remediator_extender_gang_answers_total",
    "Scores for Pods of gangs, by which domain was preferred: NearSiblings, RoomForAll, MostRoom, or Anywhere.",
    ["preferred"],
    registry=REGISTRY,
)
REQUEUED = Counter(
    "remediator_extender_requeues_total",
    "Nodes marked because they had been refused and may be let through now, which makes kube-scheduler try again.",
    registry=REGISTRY,
)
OPEN = Gauge(
    "remediator_extender_only_scores",
    "1 where health refuses no node and only scores, by reason: Paused, TooManyUnhealthy.",
    ["reason"],
    registry=REGISTRY,
)
NODES = Gauge("remediator_extender_nodes", "Nodes by what is so of their health.", ["reason"], registry=REGISTRY)
WORKLOADS = Counter(
    "remediator_extender_workloads_total",
    "Times that the Pods of the cluster had become another workload, and all nodes were scored anew.",
    registry=REGISTRY,
)


def count_node(before: str | None, after: str | None) -> None:
    """What is so of a node has changed, or not; None where there was no node, or is none any more."""
    if before == after:
        return
    if before is not None:
        _nodes(before).dec()
    if after is not None:
        _nodes(after).inc()


@cache
def _nodes(reason: str) -> Gauge:
    """To look one up by its label takes longer than to count."""
    return NODES.labels(reason)
