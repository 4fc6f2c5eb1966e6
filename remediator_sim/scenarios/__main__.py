"""`make demo`. Exit 0 only if every fault ended as expected and no invariant broke."""

import argparse
import asyncio
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from remediator.web.endpoints import KUBE_SCHEDULER
from remediator_sim.scenarios import browser
from remediator_sim.scenarios.environment import REPOSITORY, Environment
from remediator_sim.scenarios.fleet import ALL
from remediator_sim.scenarios.runner import DemoRunner
from remediator_sim.scenarios.scenarios import FEWEST
from remediator_sim.scenarios.summary import Summary
from remediator_sim.scenarios.tui import Tui
from remediator_sim.scenarios.view import ViewLine
from remediator_sim.scratch import scratch

INTERRUPTED = 130
READER = "reader"  # the simulated API server takes a word for the token of whoever has that name
PAPER = 120  # columns where there is no terminal
ROOM = 512  # MiB of files


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line; ends the program with a message where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="remediator demo", description="Break nodes of a simulated fleet and repair them."
    )
    parser.add_argument("--summary", choices=("text", "json"), default="text", help="json: one object, the last line")
    parser.add_argument("--keep", action="store_true", help="leave everything running afterwards, until Ctrl-C")
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="do not open the page; it opens on a terminal with a display, not in CI",
    )
    parser.add_argument("--nodes", type=int, default=ALL, help=f"GPU nodes ({ALL})")
    parser.add_argument("--only", action="append", choices=FEWEST, default=[], help="this fault; may be repeated (all)")
    parser.add_argument(
        "--patience",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="for its start, and for its repairs: then it has failed (120)",
    )
    options = parser.parse_args(arguments)
    fewest = max((FEWEST[name] for name in options.only), default=ALL)
    if options.nodes < fewest:
        parser.error(
            f"--nodes: {', '.join(options.only) or 'the demo'} needs {fewest} GPU nodes or more, not {options.nodes}"
        )
    return options


async def perform(runner: DemoRunner, keep: bool, open_page: bool) -> Summary:
    """Start everything, run the scenarios, and report. The page is there from the first fault to the end."""
    clock, start = runner.clock, runner.clock.monotonic()
    tui = Tui(runner.console, runner.rows, clock)

    def report(line: ViewLine) -> None:
        runner.note(line)
        tui.print(line)

    runner.console.print(f"setting up an API server, {runner.nodes} GPU nodes, their users, GitHub and the controller")
    environment = Environment(
        runner.directory, runner.nodes, runner.command, report, runner.breaker, runner.patience, clock
    )
    async with environment:
        up = clock.monotonic() - start
        report(ViewLine("fleet", "Healthy", f"{len(environment.nodes)} GPU nodes in 3 racks, up after {up:.1f} s"))
        async with browser.shown(runner.console, environment.page_url, READER, open_it=open_page):
            with tui.live():
                summary = await runner.run(environment)
            summary.print_to(runner.console)
            if keep:
                await _stay(runner.console, environment)
    return summary


async def _stay(console: Console, environment: Environment) -> None:
    console.print(f"""
export KUBECONFIG={environment.kubeconfig}   # kubectl get nodes,nr,nop,ndb,tkt
API server   {environment.url}
controller   {environment.controller.url}/metrics, /readyz
extender     {environment.extender.url}/filter, with the certificates in {environment.directory / KUBE_SCHEDULER}
page         {environment.page_url}   # sign in with the token {READER}; its certificate is of an authority of its own
issues       {environment.github.web_url}/{REPOSITORY}/issues
Everything runs on until Ctrl-C.""", highlight=False, soft_wrap=True)  # fmt: skip
    await asyncio.Event().wait()


async def _until_done(runner: DemoRunner, keep: bool, open_page: bool) -> Summary | None:
    """Run to the end, or until Ctrl-C; either way nothing is left running."""
    task = asyncio.ensure_future(perform(runner, keep, open_page))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 as expected, 1 not, 130 interrupted."""
    options = parse(arguments)
    logging.basicConfig(level=logging.ERROR)
    console = Console(stderr=options.summary == "json", highlight=False)
    if not console.is_terminal:
        console = Console(stderr=console.stderr, highlight=False, width=PAPER)
    open_page = browser.wanted(options.no_browser, sys.stdout, os.environ)
    place = scratch(ROOM)
    with tempfile.TemporaryDirectory(prefix="remediator-demo-", dir=place, ignore_cleanup_errors=True) as folder:
        runner = DemoRunner(
            Path(folder),
            console,
            options.nodes,
            only=options.only,
            crashing=not options.only,
            patience=options.patience,
        )
        summary = asyncio.run(_until_done(runner, options.keep, open_page))
    if summary is None:
        console.print("interrupted; nothing is left running")
        return INTERRUPTED
    if options.summary == "json":
        print(summary.json())
    return 1 if summary.wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
