"""Metrics of the janitor."""

from prometheus_client import Counter, Gauge, Histogram

from remediator.core.idle_policy import Finding, JanitorMode
from remediator.janitor.directory import Directory
from remediator.janitor.pass_report import Report
from remediator.metrics import REGISTRY

OUTCOMES = Counter(
    "remediator_janitor_objects_total",
    "Objects by result of a pass of the janitor, reason and mode.",
    ["result", "reason", "mode"],
    registry=REGISTRY,
)
SEEN = Gauge("remediator_janitor_seen_objects", "Objects that the janitor's last pass looked at.", registry=REGISTRY)
PROBLEMS = Gauge(
    "remediator_janitor_problems",
    "Rules that cannot be used and kinds that could not be listed, in the janitor's last pass.",
    registry=REGISTRY,
)
IDLE_GPUS = Gauge(
    "remediator_janitor_idle_gpus",
    "GPUs that Pods hold without using them, and that nobody keeps, by IdlePolicy, in the janitor's last pass.",
    ["policy"],
    registry=REGISTRY,
)
HOLDERS = Gauge(
    "remediator_janitor_policy_objects",
    "Pods and owners of Pods that an IdlePolicy has found, and that nobody keeps, in the janitor's last pass.",
    ["policy", "finds"],
    registry=REGISTRY,
)
NOTICES = Gauge(
    "remediator_janitor_notice_until_timestamp_seconds",
    "Notices that owners have: until when something may stay, in seconds since 1970; 0 where nothing is taken.",
    ["policy", "finds", "object", "namespace", "owner", "team", "github", "mail", "chat"],
    registry=REGISTRY,
)
OWNERS_OUTDATED = Gauge(
    "remediator_janitor_owners_outdated",
    "1 while the file of --owners-file has a mistake and the owners from before count.",
    registry=REGISTRY,
)
SECONDS = Histogram(
    "remediator_janitor_pass_seconds",
    "How long a pass of the janitor took.",
    buckets=(0.1, 0.5, 1, 5, 10, 30, 60, 300),
    registry=REGISTRY,
)
FAILED = Counter(
    "remediator_janitor_failed_passes_total",
    "Passes of the janitor in which nothing was done: kinds or namespaces could not be read.",
    registry=REGISTRY,
)


def passed(report: Report, seconds: float, directory: Directory) -> None:
    """Count one pass."""
    for (outcome, reason), count in report.reasons.items():
        OUTCOMES.labels(outcome.value, reason.value, report.mode.value).inc(count)
    IDLE_GPUS.clear()
    HOLDERS.clear()
    NOTICES.clear()
    for idle in report.idle:
        if idle.policy.finds is Finding.IDLE_GPUS:
            IDLE_GPUS.labels(idle.policy.name).set(idle.gpus)
        for notice in idle.notices:
            who = directory.contact(notice.owner, notice.namespace)
            reached = (who.team, who.github, who.mail, who.chat)
            labels = (idle.policy.name, idle.policy.finds.value, notice.what, notice.namespace, notice.owner, *reached)
            NOTICES.labels(*labels).set(notice.until.timestamp() if notice.until else 0)
        HOLDERS.labels(idle.policy.name, idle.policy.finds.value).set(idle.owners)
        for (became, why), count in idle.reasons.items() if report.looked else ():
            OUTCOMES.labels(became.value, why.value, JanitorMode.ENFORCE if idle.enforces else JanitorMode.DRY_RUN).inc(
                count
            )
    SEEN.set(report.counts["resources-processed"])
    PROBLEMS.set(len(report.problems) + len(report.idle_problems))
    SECONDS.observe(max(0.0, seconds))
