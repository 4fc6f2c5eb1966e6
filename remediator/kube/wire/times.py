"""Points in time as the API writes and reads them."""

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    """A Time: whole seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(moment: datetime) -> str:
    """A MicroTime, as Leases hold it: always six decimals."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> datetime:
    """The moment that a Time or MicroTime names. Raises ValueError where it is none."""
    return datetime.fromisoformat(text)
