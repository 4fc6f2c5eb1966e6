"""Logs and metrics: one log line per changed decision and per effect, and the metrics of the controller."""

import logging
import sys
from typing import Literal

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

log = structlog.get_logger(__name__)
REGISTRY = CollectorRegistry()
Level = Literal["debug", "info", "warning", "error"]

CASE_EVENTS = Counter(
    "remediator_case_events_total", "What happened in cases, by reason.", ["reason"], registry=REGISTRY
)
CASES = Gauge("remediator_cases", "Cases that have not ended, by phase.", ["phase"], registry=REGISTRY)
HELD = Gauge("remediator_held_cases", "Cases that nothing is started for, by reason.", ["reason"], registry=REGISTRY)
FAILING = Gauge(
    "remediator_breaker_open", "1 where most attempts under a policy were in vain.", ["policy"], registry=REGISTRY
)
UNKNOWN = Gauge(
    "remediator_unknown_nodes",
    "Nodes whose health is unknown, by the condition that is absent, Unknown or ignored; the leader counts.",
    ["condition"],
    registry=REGISTRY,
)
EFFECTS = Counter(
    "remediator_effects_total", "Writes, by effect and outcome.", ["effect", "outcome"], registry=REGISTRY
)
CLAIM_SECONDS = Histogram(
    "remediator_onset_to_claim_seconds",
    "From a condition's transition, by the node's clock, to the claim.",
    buckets=(0.1, 0.5, 1, 5, 30, 60, 120, 300, 900, 3600, 14400),
    registry=REGISTRY,
)
PASS_SECONDS = Histogram(
    "remediator_pass_seconds",
    "How long passes took, by kind.",
    ["kind"],
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10),
    registry=REGISTRY,
)
QUEUE = Gauge("remediator_queue_depth", "Keys that wait for a pass.", registry=REGISTRY)
AGE = Gauge("remediator_watch_age_seconds", "Since the last sign of life of a watch.", ["kind"], registry=REGISTRY)
SKEW = Gauge(
    "remediator_clock_skew_seconds",
    "How far the API server's clock is ahead of ours; a replica that differs by more than 30 s does not lead.",
    registry=REGISTRY,
)
FAILURES = Counter(
    "remediator_contained_failures_total",
    "Failures that nobody foresaw and that harmed one object only, by what was done with it.",
    ["where"],
    registry=REGISTRY,
)
LEADER = Gauge("remediator_leader", "1 on the replica that writes.", registry=REGISTRY)


class Contained:
    """Let what fails in the block harm nothing but this object: log and count it, and go on after the block."""

    def __init__(self, where: str, key: str) -> None:
        self._where, self._key = where, key

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        FAILURES.labels(self._where).inc()
        log.error("one object failed; the others go on", where=self._where, key=self._key, exc_info=error)
        return True


def configure(level: Level, json: bool) -> None:
    """Logs to stderr: key=value for people, JSON for machines."""
    render = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
