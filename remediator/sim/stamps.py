"""Times and conditions as the API writes them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A Time: whole seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(moment: datetime) -> str:
    """A MicroTime, as Leases hold it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    """The moment that a Time or MicroTime names."""
    return datetime.fromisoformat(text)


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
