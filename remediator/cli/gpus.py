"""`remediator gpus`: who has which GPUs, whole ones and those that Pods share by memory."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import Kubeconfig, app, asking, err, incomplete, out
from remediator.clock import SYSTEM
from remediator.core import names

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client
    from remediator.scheduler.shown import Row


@app.command()
def gpus(
    node: Annotated[str, typer.Argument(help="Name of a node. Left out: all with GPUs.")] = "",
    kubeconfig: Kubeconfig = None,
    pods_of: Annotated[str, typer.Option("--of", help="Only GPUs that Pods of this namespace hold.")] = "",
) -> None:
    """Show all GPUs by node: how many there are, which Pod was given what, what is idle, and why a node is not free."""
    raise typer.Exit(asyncio.run(_gpus(node, kubeconfig, pods_of)))


async def _gpus(node: str, kubeconfig: Path | None, pods_of: str) -> int:
    async with asking(kubeconfig) as client:
        listed = await _read(client, pods_of)
    listed = [row for row in listed if node in ("", row.node)]
    if node and not listed:
        err.print(f"remediator: no GPUs on a node {node}", markup=False)
        return 1
    for line in _table(listed):
        out.print(line, markup=False)
    return 0


async def _read(client: "Client", pods_of: str) -> "list[Row]":
    """Raises ApiError. What only clusters that share GPUs have is left out elsewhere."""
    from remediator.kube.informers import SHARED_GPUS, Informers
    from remediator.scheduler import verdict
    from remediator.scheduler.shown import rows

    seen = Informers(client, SYSTEM, names.Namespaces())
    nodes, pods, cases, policies = seen.nodes, seen.gpu_pods, seen.cases, seen.policies
    ledgers, unhealthy = seen.gpu_ledgers, seen.unhealthy_cards
    left_out = await seen.read(SHARED_GPUS)
    if any(node.cards.shared for node in nodes):
        incomplete(left_out)
    now, summaries = SYSTEM.now(), [verdict.summary(case) for case in cases]
    health = {
        node.name: verdict.health(node, (case for case in summaries if case.node == node.name), policies, now)
        for node in nodes
    }
    held = {key: holding for key in pods.keys() if (holding := pods.get(key)) is not None}  # noqa: SIM118
    reserved = {ledger.node: ledger for ledger in ledgers}
    return list(rows(nodes, held, reserved, {each.node: each.cards for each in unhealthy}, health, pods_of))


def _table(listed: "list[Row]") -> list[str]:
    from remediator.scheduler.shown import HEAD

    lines = [HEAD, *(row.texts() for row in listed)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
