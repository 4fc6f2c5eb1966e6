"""`remediator gpus`: who has which GPUs, whole ones and those that Pods share by memory, and what is used of them."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from remediator.cli.common import (
    Kubeconfig,
    PrometheusCaFile,
    PrometheusTokenFile,
    app,
    asking,
    err,
    incomplete,
    out,
    refusal,
)
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.settings import Settings

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client
    from remediator.scheduler.usage import Usage


class By(StrEnum):
    """What each line is about."""

    NODE = "node"
    NAMESPACE = "namespace"
    POD = "pod"


class _Wanted(NamedTuple):
    """What is to be shown. `of`: only what Pods of this namespace hold."""

    node: str
    of: str
    by: By


@app.command()
def gpus(
    node: Annotated[str, typer.Argument(help="Name of a node. Left out: all with GPUs.")] = "",
    kubeconfig: Kubeconfig = None,
    pods_of: Annotated[str, typer.Option("--of", help="Only GPUs that Pods of this namespace hold.")] = "",
    by: Annotated[By, typer.Option(help="What each line is about.")] = By.NODE,
    prometheus_url: Annotated[
        str,
        typer.Option(
            help="Prometheus that has the metrics of dcgm-exporter. Left out: what is used is shown as unknown."
        ),
    ] = "",
    prometheus_token_file: PrometheusTokenFile = None,
    prometheus_ca_file: PrometheusCaFile = None,
) -> None:
    """Show all GPUs: how many, which Pod was given what, what is used, what is idle, and why a node is not free.

    GPUs are used where their utilization was above 0 in the last ten minutes; of a shared one, as much memory as is
    in use. Exit 1 where the node has no GPUs.
    """
    if node and by is not By.NODE:
        raise refusal(f"--by {by} is of the whole cluster; leave the node {node} out")
    try:
        settings = Settings(
            prometheus_url=prometheus_url,
            prometheus_token_file=prometheus_token_file,
            prometheus_ca_file=prometheus_ca_file,
        )
    except ValueError as wrong:
        raise refusal(wrong) from None
    raise typer.Exit(asyncio.run(_gpus(_Wanted(node, pods_of, by), kubeconfig, settings)))


async def _gpus(wanted: "_Wanted", kubeconfig: Path | None, settings: Settings) -> int:
    from remediator.scheduler.shown import HEAD, HELD

    async with asking(kubeconfig) as client:
        lines = await _lines(client, wanted, settings)
    if wanted.node and not lines:
        err.print(f"remediator: no GPUs on a node {wanted.node}")
        return 1
    for line in _table([HEAD if wanted.by is By.NODE else (wanted.by.upper(), *HELD), *lines]):
        out.print(line)
    return 0


async def _lines(client: "Client", wanted: "_Wanted", settings: Settings) -> list[tuple[str, ...]]:
    """Raises ApiError. What only clusters that share GPUs have is left out elsewhere."""
    from remediator.kube.informers import SHARED_GPUS, Informers
    from remediator.scheduler.health import node_health
    from remediator.scheduler.health.case_summary import summary
    from remediator.scheduler.health.policy_index import PolicyIndex
    from remediator.scheduler.shown import holders, rows

    seen = Informers(client, SYSTEM, names.Namespaces())
    nodes, pods, cases, policies = seen.nodes, seen.gpu_pods, seen.cases, seen.policies
    ledgers, unhealthy = seen.gpu_ledgers, seen.unhealthy_cards
    left_out = await seen.read(SHARED_GPUS)
    shared = any(node.cards.shared for node in nodes)
    if shared:
        incomplete(left_out)
    used = await _usage(settings, shared)
    now, summaries, index = SYSTEM.now(), [summary(case) for case in cases], PolicyIndex(policies)
    health = {
        node.name: node_health.health(node, (case for case in summaries if case.node == node.name), index, now)
        for node in nodes
    }
    held = {key: holding for key in pods.keys() if (holding := pods.get(key)) is not None}  # noqa: SIM118
    reserved = {ledger.node: ledger for ledger in ledgers}
    if wanted.by is not By.NODE:
        given = holders(nodes, held, reserved, used, wanted.by is By.POD)
        return [each.texts() for each in given if wanted.of in ("", each.holder.partition("/")[0])]
    lists = {each.node: each.cards for each in unhealthy}
    listed = rows(nodes, held, reserved, lists, health, wanted.of, used)
    return [row.texts() for row in listed if wanted.node in ("", row.node)]


async def _usage(settings: Settings, shared: bool) -> "Usage":
    """What Prometheus knows of it, and on stderr why it does not."""
    from remediator.scheduler.usage import UNKNOWN, usage

    if not settings.prometheus_url:
        return UNKNOWN
    from remediator.prometheus.failure_log import NoLog
    from remediator.prometheus.prometheus import Prometheus

    token, authority = settings.prometheus_token_file, settings.prometheus_ca_file
    asked = Prometheus(settings.prometheus_url, SYSTEM, token=token, authority=authority, failures=NoLog())
    async with aclosing(asked) as prometheus:
        used = await usage(prometheus, shared)
    for doubt in used.doubts:
        err.print(f"remediator: what is used is not known: {doubt}")
    return used


def _table(lines: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
