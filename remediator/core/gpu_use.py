"""Which Pods have used the GPUs of a node, as the Condition GpuUse tells, and what it proves of one. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from remediator.core.clocks import AHEAD
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.sharing import exclusive
from remediator.core.text import one_line
from remediator.core.trust import STALE_AFTER
from remediator.core.writers import DETECTOR_STALE

GPU_USE = "GpuUse"  # True: it is known, and the message tells it
MOST = 200  # characters of what a node says why it cannot tell
_TIME = "[0-9]{8}T[0-9]{4}Z"
_POD = "[0-9a-f]{8}"  # the uid up to its first -
_LINE = re.compile(
    rf"gpus=(?P<gpus>[0-9]{{1,4}})(?: used=(?P<used>{_POD}(?:,{_POD})*))?"
    rf"(?: used-until=(?P<until>{_POD}@{_TIME}(?:,{_POD}@{_TIME})*))? others-until=(?P<others>{_TIME}|[?])",
    re.ASCII,
)


class GpuUseReport(NamedTuple):
    """Who uses GPUs, who did and until when; until when anybody else may have, None where nobody can tell.

    `gpus`: how many NVML lists.
    """

    gpus: int = 0
    used: frozenset[str] = frozenset()
    until: Mapping[str, datetime] = {}
    others: datetime | None = None


class UseProof(StrEnum):
    """What is proven of a Pod."""

    USED = "it has used a GPU"
    UNUSED = "it has used none"
    UNKNOWN = "nobody can tell"


class UseFinding(NamedTuple):
    """The same, with a sentence that goes on after `NVML: `."""

    proof: UseProof
    why: str


def read(message: str) -> GpuUseReport | None:
    """What the message of the Condition says; None where it cannot be read.

    >>> read("gpus=8 used=3f2a1b0c others-until=?")
    GpuUseReport(gpus=8, used=frozenset({'3f2a1b0c'}), until={}, others=None)
    """
    match = _LINE.fullmatch(message)
    if match is None:
        return None
    try:
        pairs = (entry.split("@") for entry in (match["until"] or "").split(",") if entry)
        until = {pod: _time(at) for pod, at in pairs}
        others = None if match["others"] == "?" else _time(match["others"])
    except ValueError:  # the 31st of February
        return None
    return GpuUseReport(int(match["gpus"]), frozenset((match["used"] or "").split(",")) - {""}, until, others)


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%dT%H%MZ").replace(tzinfo=UTC)


def found(node: Node | None, uid: str, window: timedelta, now: datetime) -> UseFinding:
    """Whether a Pod has used a GPU of its node, None where that is unknown, within the window.

    The times of the message and of the heartbeat are of one clock, so that it may be wrong by as much as a heartbeat
    may be old.
    """
    if node is None:
        return UseFinding(UseProof.UNKNOWN, "its node is not known")
    believed = _believed(node.conditions, now)
    if isinstance(believed, str):
        return UseFinding(UseProof.UNKNOWN, believed)
    report, heartbeat = believed
    pod, begin = uid[:8], heartbeat - window
    if pod in report.used:
        return UseFinding(UseProof.USED, "it uses a GPU, or did within the last hour")
    if (until := report.until.get(pod)) and until > begin:
        return UseFinding(UseProof.USED, f"it has used a GPU until {until:%Y-%m-%d %H:%M} UTC")
    if report.others is None:
        return UseFinding(UseProof.UNKNOWN, "a GPU of its node does not tell whether it is used")
    if report.others > begin:
        return UseFinding(UseProof.UNKNOWN, f"it may have used a GPU until {report.others:%Y-%m-%d %H:%M} UTC")
    if not exclusive(node, report.gpus) and _used(report, begin):
        return UseFinding(UseProof.UNKNOWN, "a Pod that may share its GPU has used one")
    return UseFinding(UseProof.UNUSED, "")


def _used(report: GpuUseReport, begin: datetime) -> bool:
    """Whether any Pod is named that has used a GPU since then."""
    return bool(report.used) or any(until > begin for until in report.until.values())


def _believed(conditions: Mapping[str, NodeCondition], now: datetime) -> tuple[GpuUseReport, datetime] | str:
    """What is told, and when; or why it is not believed."""
    condition = conditions.get(GPU_USE)
    if condition is None:
        return f"its node has no Condition {GPU_USE}"
    stale = conditions.get(DETECTOR_STALE)
    if condition.status is not Status.TRUE:
        return f"{GPU_USE} of its node is {condition.status.value}: {one_line(condition.message, MOST)}"
    for name, each in ((GPU_USE, condition), (DETECTOR_STALE, stale)):
        if each is not None and not -AHEAD <= now - each.heartbeat <= STALE_AFTER:
            return f"{name} of its node has no heartbeat of the last {STALE_AFTER.total_seconds() / 60:g} minutes"
    if stale is not None and stale.status is not Status.FALSE:
        return f"{DETECTOR_STALE} of its node is {stale.status.value}"
    report = read(condition.message)
    return (report, condition.heartbeat) if report else f"the message of {GPU_USE} of its node cannot be read"
