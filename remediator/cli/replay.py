"""`remediator extender replay`: how well each way to score packs the Pods of a trace, without a cluster."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from remediator.cli.common import amount, err, refusal

if TYPE_CHECKING:
    from remediator.scheduler.packing.replay.report import Summary
    from remediator.scheduler.packing.replay.trace import Trace


def replay(
    trace_dir: Annotated[
        Path | None,
        typer.Option(help="Folder with the CSV files of Alibaba's cluster-trace-gpu-v2023. Left out: a made-up list."),
    ] = None,
    pods: Annotated[
        list[str] | None, typer.Option("--list", help="Which of its lists of Pods. May be given again.")
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="Only this way to score. May be given again. Left out: all.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="How many orders of nodes and Pods are played.")] = 3,
    http: Annotated[
        int, typer.Option(min=0, max=100_000, help="Ask the extender over HTTP about so many Pods, and compare.")
    ] = 0,
    summary: Annotated[Literal["table", "json"], typer.Option(help="What is printed.")] = "table",
) -> None:
    """Place the Pods of a trace by each way to score, ties broken at random. Asks no cluster.

    Exit 1 where the extender answers otherwise over HTTP.
    """
    rows, agreed = [], True
    for trace in _traces(trace_dir, pods):
        rows += _played(trace, policy or [], seeds)
        if http:
            agreed &= _agrees(trace, http)
    if summary == "json":
        typer.echo(json.dumps([asdict(row) for row in rows]))
    else:
        for name in dict.fromkeys(row.list for row in rows):
            _print_table(name, [row for row in rows if row.list == name])
    raise typer.Exit(0 if agreed else 1)


def _traces(folder: Path | None, pods: list[str] | None) -> "list[Trace]":
    from remediator.scheduler.packing.replay import synthetic, trace

    if folder is None:
        if pods:
            raise refusal("--list is given without --trace-dir; name the folder of the trace, too")
        return [synthetic.synthetic()]
    try:
        return [trace.read(folder, name) for name in dict.fromkeys(pods or ["default"])]
    except OSError as failed:
        raise refusal(f"{failed.filename}: {failed.strerror}; name the folder of the trace, and a list in it") from None
    except ValueError as wrong:
        raise refusal(wrong) from None


def _played(trace: "Trace", wanted: list[str], seeds: int) -> "list[Summary]":
    from remediator.scheduler.packing.replay import report
    from remediator.scheduler.packing.replay.policies import policies

    known = policies(report.workload_of(trace))
    strange = next((name for name in wanted if name not in known), None)
    if strange is not None:
        raise refusal(f"--policy: {strange!r} is none; write one of {'; '.join(known)}")
    rows = []
    for name in wanted or known:
        err.print(f"{trace.name}: {name}")
        runs = [report.play(trace, known[name], report.FIRST_SEED + seed) for seed in range(seeds)]
        rows.append(report.summary(trace.name, name, runs))
    return rows


def _agrees(trace: "Trace", most: int) -> bool:
    from remediator.scheduler.packing.replay.report import FIRST_SEED
    from remediator.web.replay import agreement

    answers = asyncio.run(agreement(trace, FIRST_SEED, most))
    words = f"{answers.differing} answered otherwise" if answers.differing else "all answered alike"
    times = f"filter and prioritize together {answers.median:.1f} ms at p50, {answers.slowest:.1f} at most"
    err.print(f"{trace.name}: {answers.pods} Pods over HTTP, {words}; {times}")
    return not answers.differing


def _print_table(name: str, rows: "list[Summary]") -> None:
    from rich.console import Console
    from rich.table import Column, Table

    from remediator.scheduler.packing.replay.report import MARKS

    heads = [*(f"{mark} %" for mark in MARKS), "±", "fragments", "largest refused"]
    orders = amount(rows[0].seeds, "order")
    title = f"{name}, {orders}: % of all GPUs in use when so much has arrived; fragments at 100 %"
    table = Table(Column("policy", overflow="fold"), *heads, title=title)
    for row in rows:
        use = [f"{row.allocated[mark]:.2f}" for mark in MARKS]
        refused = f"{row.largest_refused:.1f} of {row.largest:.1f}"
        table.add_row(row.policy, *use, f"{row.deviation:.2f}", f"{row.fragmented[100]:.2f}", refused)
    Console(soft_wrap=True, highlight=False, markup=False, emoji=False).print(table)
