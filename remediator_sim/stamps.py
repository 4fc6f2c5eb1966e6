"""Conditions that remember when they changed."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from remediator.kube.wire.times import stamp


def transitioned(
    before: Iterable[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]], now: datetime
) -> list[dict[str, Any]]:
    """`wanted` conditions, each with the lastTransitionTime it has in `before`, or `now` where its status changed."""
    known = {condition["type"]: condition for condition in before}
    return [
        {**condition, "lastTransitionTime": _since(known.get(condition["type"]), condition, now)}
        for condition in wanted
    ]


def _since(before: Mapping[str, Any] | None, wanted: Mapping[str, Any], now: datetime) -> str:
    if before and before.get("status") == wanted["status"] and before.get("lastTransitionTime"):
        return str(before["lastTransitionTime"])
    return stamp(now)
