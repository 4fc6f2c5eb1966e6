"""`remediator explain`: why a node is, or is not, being repaired."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from remediator.cli.common import (
    Kubeconfig,
    Namespace,
    OperationsNamespace,
    Starts,
    Window,
    app,
    connect,
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
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    operations_namespace: OperationsNamespace = names.OPERATIONS_NAMESPACE,
    starts: Starts = 10,
    window: Window = 600,
) -> None:
    """Say why a node is, or is not, being repaired. Reads the cluster, changes nothing."""
    try:
        namespaces = Settings(namespace=namespace, operations_namespace=operations_namespace).namespaces
    except ValueError as wrong:
        raise refusal(wrong) from None
    raise typer.Exit(asyncio.run(_explain(node, kubeconfig, namespaces, Breaker(starts, timedelta(seconds=window)))))


async def _explain(name: str, kubeconfig: Path | None, namespaces: names.Namespaces, breaker: Breaker) -> int:
    from remediator.controller.explain import explain as explained
    from remediator.controller.explain import snapshot
    from remediator.kube.wire import errors
    from remediator.kube.wire.client import Client
    from remediator.scheduler.explain import explain as placed

    transport = await connect(kubeconfig)
    try:
        cache = await snapshot(Client(transport), namespaces, SYSTEM)
    except errors.NotFound as failed:
        remedy = "is it an API server, and are Remediator's kinds in it (`remediator crds`)?"
        raise refusal(f"the server of the kubeconfig says {failed.message!r}; {remedy}") from None
    except errors.ApiError as failed:
        raise refusal(failed.message) from None
    finally:
        await transport.close()
    node = cache.nodes.get(name)
    if node is None:
        err.print(f"remediator: no node {name} in the cluster")
        return 1
    now = SYSTEM.now()
    for line in explained(cache, node, breaker, now):
        out.print(line, markup=False)
    out.print("  " + placed(node, cache.nodes, cache.cases, cache.policies, cache.paused, now), markup=False)
    return 0
