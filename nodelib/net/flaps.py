"""How often things go wrong for a moment: links that go down and come back, or err; queues that stand still. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodelib.net.links import Port

MANY, WINDOW = 3, 12 * 3600.0
STICKY = 3600.0  # seconds that it is told of after the last one
SETTLE = 600.0  # seconds after boot in which drivers and bonds set up links, and take them down to do so


SYMBOLS = 10  # wrong symbols between two runs that are no chance: error correction leaves none


class PortPast(NamedTuple):
    """What the last run knew of a port, and when, in seconds since boot, it went down, and when it erred."""

    up: bool | None
    downs: int | None
    downs_at: tuple[float, ...] = ()
    errors: int | None = None
    errors_at: tuple[float, ...] = ()


def follow(before: Mapping[str, PortPast], ports: Mapping[str, Port], now: float) -> dict[str, PortPast]:
    """Return what is known of each port now; one that is not there for a while keeps its past."""
    pasts_by_port = {name: past for name, past in before.items() if name not in ports}
    for name, port in ports.items():
        past = before.get(name, PortPast(None, None))
        new = _downs(past, port) if now >= SETTLE else 0
        up = past.up if port.up is None else port.up
        downs = past.downs if port.downs is None else port.downs
        errors = past.errors if port.errors is None else port.errors
        wrong = (
            now >= SETTLE and not new and _grown(past.errors, port.errors) >= SYMBOLS
        )  # a link that goes down errs, too
        erred = recent([*past.errors_at, *([now] if wrong else [])], now)
        pasts_by_port[name] = PortPast(up, downs, recent([*past.downs_at, *[now] * min(new, MANY)], now), errors, erred)
    return pasts_by_port


def _grown(before: int | None, after: int | None) -> int:
    return 0 if before is None or after is None else after - before


def _downs(past: PortPast, port: Port) -> int:
    """Return how often the port went down since: by its own count, but at least what we saw; a reset count is none."""
    seen = int(bool(past.up) and port.up is False)
    counted = port.downs - past.downs if port.downs is not None and past.downs is not None else 0
    return max(seen, counted)


def recent(times: Iterable[float], now: float) -> tuple[float, ...]:
    """Return the last of `times`, no more of them than matter; those from the future are of another clock."""
    return tuple(sorted(time for time in times if now - WINDOW - STICKY < time <= now))[-MANY:]


def too_many(times: tuple[float, ...], now: float) -> bool:
    """Tell whether there were too many of `recent` within the window, the last of them not long ago."""
    return len(times) >= MANY and times[-1] - times[-MANY] < WINDOW and 0 <= now - times[-1] < STICKY
