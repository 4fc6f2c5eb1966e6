"""Many seeds, on several cores: what is known of them so far, kept in a file where that is asked for."""

import hashlib
import json
import math
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from statistics import median

from remediator_sim.shipped import folder
from remediator_sim.simulation.seed import Verdict, verdict_of

PLAYED = ("remediator", "remediator_sim", "deploy", "operations")  # folders that a verdict depends on
ENOUGH = 40  # seeds, after which each promise should have been put to the test


@dataclass(slots=True)
class Results:
    """The verdicts so far, by seed."""

    verdicts: dict[int, Verdict] = field(default_factory=dict)

    @property
    def failed(self) -> list[Verdict]:
        """Those in which something was broken, by seed."""
        return [self.verdicts[seed] for seed in sorted(self.verdicts) if self.verdicts[seed].broken]

    def checks(self) -> dict[str, tuple[int, int]]:
        """By promise: how often it was put to the test, and in how many seeds."""
        total, seeds = Counter[str](), Counter[str]()
        for verdict in self.verdicts.values():
            for name, count in verdict.checks:
                total[name] += count
                seeds[name] += count > 0
        return {name: (total[name], seeds[name]) for name in total}

    def untested(self) -> list[str]:
        """The promises that no seed has put to the test, once there were enough seeds to expect it."""
        if len(self.verdicts) < ENOUGH:
            return []
        return [name for name, (count, _) in self.checks().items() if count == 0]

    def seconds(self) -> tuple[float, float, float]:
        """The core-seconds of a seed: the median, the 90th percentile and the most."""
        spent = sorted(verdict.seconds for verdict in self.verdicts.values()) or [0.0]
        return median(spent), spent[math.ceil(0.9 * len(spent)) - 1], spent[-1]


@cache
def code() -> str:
    """A hash of all files that a verdict depends on."""
    digest = hashlib.sha256()
    for path in sorted(path for part in PLAYED for path in (folder() / part).rglob("*")):
        if path.is_file() and path.suffix in (".py", ".yaml", ".json"):
            digest.update(f"{path.relative_to(folder())}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def load(path: Path | None, seeds: range) -> Results:
    """What an earlier run of the same code has found out of these seeds. A line that was cut off is left out."""
    results, current = Results(), code()
    for line in path.read_text().splitlines() if path and path.exists() else ():
        with suppress(ValueError):
            kept = json.loads(line)
            if kept.pop("code", "") == current and kept["seed"] in seeds:
                results.verdicts[kept["seed"]] = _verdict(**kept)
    return results


def _verdict(seed: int, broken: list[str], checks: list[tuple[str, int]], seconds: float) -> Verdict:
    return Verdict(seed, tuple(broken), tuple((name, count) for name, count in checks), seconds)


def keep(path: Path | None, verdict: Verdict) -> None:
    """Add one verdict to the file, on a line of its own whatever the line before it is."""
    if path is not None:
        torn = _is_torn(path)
        with path.open("a") as file:
            file.write("\n" * torn + json.dumps(asdict(verdict) | {"code": code()}) + "\n")


def _is_torn(path: Path) -> bool:
    """Whether the last line of a file has no end."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"


def verdicts(seeds: Iterable[int], jobs: int) -> Iterator[Verdict]:
    """The verdicts of seeds, each as soon as it is known."""
    if jobs == 1:
        yield from map(verdict_of, seeds)
        return
    left, running = iter(seeds), set[Future[Verdict]]()
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"))
    try:
        while True:
            while len(running) < 2 * jobs and (seed := next(left, None)) is not None:
                running.add(pool.submit(verdict_of, seed))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    finally:
        pool.shutdown(cancel_futures=True)
