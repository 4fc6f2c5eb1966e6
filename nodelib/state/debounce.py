"""Since when, and in how many runs in a row, each thing that a detector watches has been bad in this boot. Pure."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.npd import read_json


class Standing(NamedTuple):
    """`since`: when it was first seen bad, in seconds since boot; `runs`: in how many runs in a row by now."""

    since: float
    runs: int


def stand(bad: Iterable[str], before: Mapping[str, Standing], now: float) -> dict[str, Standing]:
    """Return how long each thing of `bad` has been so; what is not among them has its end, and begins anew one day."""
    found = {}
    for key in bad:
        last = before.get(key)
        found[key] = Standing(last.since, last.runs + 1) if last and last.since <= now else Standing(now, 1)
    return found


def lasts(standing: Standing | None, now: float, seconds: float, runs: int) -> bool:
    """Tell whether it has been so for `seconds`, and in so many runs."""
    return standing is not None and now - standing.since >= seconds and standing.runs >= runs


def memory(path: Path, boot: str) -> dict[str, Any]:
    """Return what a detector wrote to `path` in this boot; {} for none."""
    content = read_json(path)
    return content if content.get("boot_id") == boot else {}


def standings(value: Any) -> dict[str, Standing]:
    """Return standings from a memory; what makes no sense is left out."""
    known = {}
    for key, pair in value.items() if isinstance(value, dict) else ():
        match pair:
            case [int(since) | float(since), int(runs)] if runs > 0:
                known[key] = Standing(float(since), runs)
    return known


def names(value: Any) -> set[str]:
    """Return a list of names from a memory; what makes no sense is left out."""
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()
