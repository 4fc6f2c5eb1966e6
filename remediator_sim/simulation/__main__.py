"""`python -m remediator_sim.simulation --seeds 40 --jobs 2`: plays seeds and says what they have broken."""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from remediator_sim.simulation import cluster, soak
from remediator_sim.simulation.minimise import shortest
from remediator_sim.simulation.schedule import plan_of
from remediator_sim.simulation.seed import Verdict, play

PROGRAM = "python -m remediator_sim.simulation"
COMMAND = f".venv/bin/{PROGRAM}"  # as it works in a checkout
SHOWN = 5  # sentences of one seed
LOGGED = 20  # seeds between two lines of a log


def main() -> int:
    """0 where every invariant held and was put to the test, 1 where one did not or was not, 130 after Ctrl-C."""
    asked, console = _arguments(), Console()
    cluster.shipped_server()
    if asked.minimise or asked.journal:
        return _tell_one(asked, console)
    results, code = soak.load(asked.state, _asked_for(asked)), 0
    try:
        _play_all(asked, results, console)
    except KeyboardInterrupt:
        console.print("stopped; so far:")
        code = 130
    _summarise(results, console)
    return code or bool(results.failed or results.untested())


def _asked_for(asked: argparse.Namespace) -> range:
    return range(asked.first, asked.first + asked.seeds)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    parser.add_argument("--journal", action="store_true", help="tell the story of the first seed")
    parser.add_argument("--minimise", action="store_true", help="the same, of the few steps that break something")
    parser.add_argument("--state", type=Path, help="a file that keeps what is known, so that a later run goes on")
    return parser.parse_args()


def _play_all(asked: argparse.Namespace, results: soak.Results, console: Console) -> None:
    seeds = [seed for seed in _asked_for(asked) if seed not in results.verdicts]
    columns = (TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("seeds", total=asked.seeds, completed=asked.seeds - len(seeds))
        for verdict in soak.verdicts(seeds, asked.jobs):
            results.verdicts[verdict.seed] = verdict
            soak.keep(asked.state, verdict)
            progress.advance(bar)
            _log(asked.seeds, results, console)
            if verdict.broken:
                console.print(f"[red]seed {verdict.seed}[/] is broken: the summary tells more")


def _log(total: int, results: soak.Results, console: Console) -> None:
    """How far it is, where nobody sees a bar."""
    done = len(results.verdicts)
    if not console.is_terminal and done % LOGGED == 0:
        console.print(f"{done} of {total} seeds, {len(results.failed)} broken", highlight=False)


def _tell_broken(verdict: Verdict, console: Console) -> None:
    console.print(f"[red]seed {verdict.seed}[/]: {COMMAND} --first {verdict.seed} --minimise")
    for sentence in verdict.broken[:SHOWN]:
        console.print(f"  {sentence}", highlight=False, markup=False)


def _summarise(results: soak.Results, console: Console) -> None:
    for verdict in results.failed:
        _tell_broken(verdict, console)
    for name, (checks, seeds) in results.checks().items():
        console.print(f"{name:<4} put to the test {checks} times, in {seeds} of {len(results.verdicts)} seeds")
    if untested := results.untested():
        console.print(f"[red]{', '.join(untested)} never put to the test[/]: no seed has reached it, so the run fails")
    middle, ninth, most = results.seconds()
    spent = f"core-seconds of a seed: median {middle:.2f}, 90th percentile {ninth:.2f}, most {most:.2f}"
    console.print(f"{len(results.verdicts)} seeds, {len(results.failed)} broken; {spent}", highlight=False)


def _tell_one(asked: argparse.Namespace, console: Console) -> int:
    """The story of one seed, shortened where asked."""
    plan = plan_of(asked.first)
    if asked.minimise:
        plan = shortest(plan)
    outcome = play(plan)
    sys.stdout.write(outcome.journal)
    for sentence in outcome.broken:
        console.print(sentence, highlight=False, markup=False)
    return bool(outcome.broken)


if __name__ == "__main__":
    sys.exit(main())
