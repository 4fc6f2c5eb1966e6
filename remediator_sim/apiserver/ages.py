"""Ages as tables show them."""

from datetime import datetime

from remediator.kube.wire.times import parse


def age(since: str, now: datetime) -> str:
    """How long ago, in the short form of kubectl: 45s, 3m20s, 5h, 12d, 2y35d."""
    try:
        seconds = int((now - parse(since)).total_seconds())
    except ValueError:
        return "<unknown>"
    if seconds < -1:
        return "<invalid>"
    return _short(max(seconds, 0))


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}" + (f"{small}{small_unit}" if small else "")


def _short(seconds: int) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _pair(days // 365, "y", days % 365, "d")
