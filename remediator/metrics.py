"""Logs and metrics: one log line per changed decision and per effect, and the metrics of the controller."""

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from structlog.typing import EventDict, Processor

from remediator.clock import Clock
from remediator.core.text import printable
from remediator.log_rate import LogRate
from remediator.settings import Level

log = structlog.get_logger(__name__)
REGISTRY = CollectorRegistry()
LONGEST_EXEMPLAR = 128  # characters of its names and values, by OpenMetrics
disable_created_metrics()  # type: ignore[no-untyped-call]  # series of OpenMetrics that nobody asks for


def of_case(name: str) -> dict[str, str] | None:
    """The exemplar that names a case; none where its name is too long for one."""
    return {"case": name} if len("case" + name) <= LONGEST_EXEMPLAR else None


class SampleTable(Collector):
    """A gauge of thousands of samples, of which only the numbers are kept: a child of `Gauge` takes a kilobyte.

    `rows` are numbers by the value of the first of two labels; `columns` are the values of the second.
    """

    def __init__(self, name: str, documentation: str, labels: Sequence[str], columns: Sequence[str]) -> None:
        self.rows: Mapping[str, Sequence[float]] = {}
        self._name, self._documentation, self._labels, self._columns = name, documentation, labels, columns
        REGISTRY.register(self)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The gauge without its samples."""
        yield GaugeMetricFamily(self._name, self._documentation, labels=self._labels)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The gauge as it was set last."""
        (gauge,) = self.describe()
        for row, numbers in self.rows.items():
            for column, number in zip(self._columns, numbers, strict=True):
                gauge.add_metric((row, column), number)
        yield gauge


CASE_EVENTS = Counter(
    "remediator_case_events_total", "What happened in cases, by reason.", ["reason"], registry=REGISTRY
)
CASES = Gauge("remediator_cases", "Cases that have not ended, by phase.", ["phase"], registry=REGISTRY)
OLDEST_HOLD = Gauge(
    "remediator_oldest_hold_seconds",
    "For how long the oldest hold of each reason lasts, by `since` in `status.blockedBy`.",
    ["reason"],
    registry=REGISTRY,
)
HELD = Gauge("remediator_held_cases", "Cases that nothing is started for, by reason.", ["reason"], registry=REGISTRY)
FAILING = Gauge(
    "remediator_breaker_open", "1 where most attempts under a policy were in vain.", ["policy"], registry=REGISTRY
)
CRITERION_MUTED = Gauge(
    "remediator_criterion_muted",
    "1 where too many nodes of a policy show what is new in a release; 0 for other policies that ask for such.",
    ["policy"],
    registry=REGISTRY,
)
BUDGET_FAILING = Gauge(
    "remediator_budget_breaker_open",
    "1 where too many attempts on nodes of a budget were in vain.",
    ["budget"],
    registry=REGISTRY,
)
TAKEN_OUT = Gauge(
    "remediator_nodes_taken_out",
    "Nodes that users have taken out of service, by whether the time that they said is over.",
    ["overdue"],
    registry=REGISTRY,
)
REPORTED = Gauge(
    "remediator_reported_holds",
    "Cases that are held for so long that a user is told, by reason.",
    ["reason"],
    registry=REGISTRY,
)
UNKNOWN = Gauge(
    "remediator_unknown_nodes",
    "Nodes whose health is unknown, by the condition that is absent, Unknown or ignored; the leader counts.",
    ["condition"],
    registry=REGISTRY,
)
REJECTING = Gauge(
    "remediator_rejecting_nodes",
    "Nodes that reject the Pods placed on them: their Condition PodsRejected is True.",
    registry=REGISTRY,
)
IDLE_TESTS = Counter(
    "remediator_idle_tests_total",
    "Tests of idle nodes, by result: Passed and Failed prove something, all other words nothing.",
    ["result"],
    registry=REGISTRY,
)
IDLE_TESTS_RUNNING = Gauge(
    "remediator_idle_tests_running",
    "Tests of idle nodes that there are now, by policy.",
    ["policy"],
    registry=REGISTRY,
)
NODE_LEASES = Gauge(
    "remediator_node_leases_usable",
    "1 where --node-leases is given and the Leases there can be taken; 0: no other controller can know of our cases.",
    registry=REGISTRY,
)
MISSING_FIELDS = Gauge(
    "remediator_definition_missing_fields",
    "Fields of this version that the definition of a kind lacks: what is written there is dropped. The leader counts.",
    ["kind"],
    registry=REGISTRY,
)
EFFECTS = Counter("remediator_effects_total", "Writes, by effect and result.", ["effect", "result"], registry=REGISTRY)
GAVE_UP = Counter(
    "remediator_gave_up_total",
    "Writes that the API server refuses, by effect and kind of refusal: Forbidden, Invalid, Expired, ApiError.",
    ["effect", "reason"],
    registry=REGISTRY,
)
BUDGET = SampleTable(
    "remediator_budget_nodes",
    "Nodes of each budget, by count: total, most (that may be unavailable), unavailable, claimed, quarantined, "
    "most_quarantined; with groupBy also groups_full (groups in which nothing more may start) and ungrouped (nodes "
    "without the label).",
    ("budget", "count"),
    (
        "total",
        "most",
        "unavailable",
        "claimed",
        "quarantined",
        "most_quarantined",
        "groups_full",
        "ungrouped",
    ),
)
BREAKER_OPEN = Gauge(
    "remediator_fleet_breaker_open", "1 while the breaker of the whole fleet lets nothing start.", registry=REGISTRY
)
BREAKER_STARTS = Gauge(
    "remediator_fleet_breaker_starts", "Disruptive starts in the window of the breaker.", registry=REGISTRY
)
HOURS = (60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 86_400, 7 * 86_400)
PHASE_SECONDS = Histogram(
    "remediator_case_phase_seconds",
    "How long a case was in a phase, by the phase that ended.",
    ["phase"],
    buckets=(1, 10, *HOURS),
    registry=REGISTRY,
)
RECOVERY_SECONDS = Histogram(
    "remediator_recovery_seconds",
    "From the opening of a case that an operation cured to its end, by whether the time of drains is included or "
    "excluded.",
    ["drain"],
    buckets=HOURS,
    registry=REGISTRY,
)
BETWEEN_FAULTS_SECONDS = Histogram(
    "remediator_between_faults_seconds",
    "From the end of a node's last case to the opening of the next.",
    buckets=(900, 3600, 6 * 3600, 86_400, 3 * 86_400, 7 * 86_400, 30 * 86_400, 90 * 86_400),
    registry=REGISTRY,
)
BLAST_RADIUS = Histogram(
    "remediator_blast_radius_gpu_hours",
    "GPU-hours of the jobs of a node when an attempt on it began; those of which nobody could tell are left out.",
    buckets=(0, 1, 10, 50, 100, 500, 1000, 5000, 10_000, 50_000),
    registry=REGISTRY,
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
REQUEUES = Counter(
    "remediator_requeues_total",
    "Keys that a pass is asked for once more, by queue and reason: later (the pass asked for it), refused, failed.",
    ["queue", "reason"],
    registry=REGISTRY,
)
UNREADABLE = Gauge(
    "remediator_unreadable_objects",
    "Objects that cannot be read, by watch; each counts as the most careful thing that it can be.",
    ["kind"],
    registry=REGISTRY,
)
LOOP_LAG = Histogram(
    "remediator_loop_lag_seconds",
    "How late the event loop wakes a task: answers to schedulers and renewals of the Lease wait as long.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
    registry=REGISTRY,
)
LEADER_CHANGES = Counter(
    "remediator_leader_changes_total", "How often this replica gained or lost the Lease.", ["change"], registry=REGISTRY
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
CERTIFICATE_ENDS = Gauge(
    "remediator_certificate_expiry_timestamp_seconds",
    "When a certificate ends, in seconds since 1970: server (ours), kube-scheduler, alertmanager (shown last).",
    ["whose"],
    registry=REGISTRY,
)
CALLS_REFUSED = Counter(
    "remediator_refused_calls_total",
    "Calls and connections that an endpoint ended, by reason: unauthorized, no-tls, encoding, malformed, too-large, "
    "too-slow, full; of evictions also refused, later.",
    ["endpoint", "reason"],
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


def _readable(_: object, __: str, event: EventDict) -> EventDict:
    """Errors quote what others sent: each line of a traceback is shown without what a terminal obeys."""
    if "exception" in event:
        event["exception"] = "\n".join(map(printable, event["exception"].split("\n")))
    return event


def configure(level: Level, json: bool, clock: Clock) -> None:
    """Logs to stderr: key=value for people, JSON for machines; not without end."""
    console = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    render: list[Processor] = [structlog.processors.JSONRenderer()] if json else [_readable, console]
    structlog.configure(
        processors=[
            LogRate(clock.monotonic),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
