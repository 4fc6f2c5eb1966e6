"""Points in time as the API writes and reads them."""

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    """A Time: whole seconds, UTC."""
    return _utc(moment).isoformat(timespec="seconds") + "Z"


def micro_stamp(moment: datetime) -> str:
    """A MicroTime, as Leases hold it: always six decimals."""
    return _utc(moment).isoformat(timespec="microseconds") + "Z"


def _utc(moment: datetime) -> datetime:
    """The same moment in UTC, of which the text says no zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def parse(text: str) -> datetime:
    """The moment that a Time or MicroTime names. Raises ValueError where it is none."""
    return datetime.fromisoformat(text)
