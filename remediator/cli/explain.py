"""`remediator explain`: why a node is, or is not, being repaired."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from remediator.cli.common import (
    ApiPodsNodeSelector,
    Kubeconfig,
    Namespace,
    OperationsNamespace,
    Starts,
    Window,
    app,
    asking,
    err,
    out,
    refusal,
)
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.settings import Settings


@app.command()
def explain(
    node: Annotated[str, typer.Argument(help="Name of the node.")],
    api_pods_node_selector: ApiPodsNodeSelector,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    operations_namespace: OperationsNamespace = names.OPERATIONS_NAMESPACE,
    starts: Starts = 10,
    window: Window = 600,
) -> None:
    """Say why a node is, or is not, being repaired. Reads the cluster, changes nothing."""
    try:
        settings = Settings(
            namespace=namespace,
            operations_namespace=operations_namespace,
            api_pods_node_selector=api_pods_node_selector,
            breaker=Breaker(starts, timedelta(seconds=window)),
        )
    except ValueError as wrong:
        raise refusal(wrong) from None
    raise typer.Exit(asyncio.run(_explain(node, kubeconfig, settings)))


async def _explain(name: str, kubeconfig: Path | None, settings: Settings) -> int:
    from remediator.controller.explain import explain as explained
    from remediator.controller.explain import look_at, snapshot
    from remediator.scheduler.explain import explain as placed

    async with asking(kubeconfig) as client:
        cache = await snapshot(client, settings.namespaces, SYSTEM, settings.api_nodes)
        now = SYSTEM.now()
        await look_at(cache, client, name, now)
    node = cache.nodes.get(name)
    if node is None:
        err.print(f"remediator: no node {name} in the cluster")
        return 1
    for line in explained(cache, node, settings.breaker, now):
        out.print(line, markup=False)
    out.print("  " + placed(node, cache.nodes, cache.cases, cache.policies, cache.paused, now), markup=False)
    return 0
