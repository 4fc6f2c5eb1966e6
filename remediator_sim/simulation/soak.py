"""Many seeds, on several cores: what is known of them so far, kept in a file where that is asked for."""

import json
import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from remediator_sim.simulation.seed import Verdict, verdict_of


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

    def seconds(self) -> float:
        """The median of the core-seconds of a seed."""
        return median(verdict.seconds for verdict in self.verdicts.values()) if self.verdicts else 0.0


def load(path: Path | None) -> Results:
    """What an earlier run has found out."""
    results = Results()
    for line in path.read_text().splitlines() if path and path.exists() else ():
        line_verdict = json.loads(line)
        checks = tuple((name, count) for name, count in line_verdict["checks"])
        results.verdicts[line_verdict["seed"]] = Verdict(
            line_verdict["seed"], tuple(line_verdict["broken"]), checks, line_verdict["seconds"]
        )
    return results


def keep(path: Path | None, verdict: Verdict) -> None:
    """Add one verdict to the file."""
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(asdict(verdict)) + "\n")


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
