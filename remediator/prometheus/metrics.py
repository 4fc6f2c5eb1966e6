"""Metrics of questions to Prometheus."""

from prometheus_client import Counter, Histogram

from remediator.metrics import REGISTRY

QUERIES = Counter(
    "remediator_prometheus_queries_total",
    "Questions to Prometheus, by result: Answered, or why the answer is no verdict.",
    ["result"],
    registry=REGISTRY,
)
SECONDS = Histogram(
    "remediator_prometheus_query_seconds",
    "How long Prometheus took to answer, or not to.",
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20),
    registry=REGISTRY,
)
LISTS = Counter(
    "remediator_alertmanager_lists_total",
    "Lists of alerts asked of an Alertmanager, by result: Answered, or why nobody can tell what fires.",
    ["result"],
    registry=REGISTRY,
)
