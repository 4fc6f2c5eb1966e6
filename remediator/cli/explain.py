"""`remediator explain`: why a node is, or is not, being repaired."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from remediator.cli.common import (
    ApiPodsNodeSelector,
    ExitCode,
    Form,
    Kubeconfig,
    Namespace,
    OperationsNamespace,
    Starts,
    Window,
    app,
    asking,
    err,
    out,
    print_json,
    refusal,
)
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.places import ApiNodes
from remediator.core.running import Leading, Running
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
    output: Form = "text",
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
    raise typer.Exit(asyncio.run(_explain(node, kubeconfig, settings, output)))


async def _explain(name: str, kubeconfig: Path | None, settings: Settings, output: str) -> ExitCode:
    """With the settings of the replica that leads, and in its words; where none leads, decided here as it would be."""
    from remediator.cli.nearest import missing_node
    from remediator.controller.explain import explain as explained
    from remediator.controller.explain import look_at, snapshot, snapshot_of
    from remediator.controller.explain_data import explain_data
    from remediator.controller.leading import leading
    from remediator.scheduler.explain import alone
    from remediator.scheduler.explain import explain as placed

    async with asking(kubeconfig) as client:
        now = SYSTEM.now()
        leader = await leading(client, settings.namespace, now)
        running = leader.running or Running(settings.breaker, settings.api_pods_node_selector)
        where = (client, settings.namespaces, SYSTEM, ApiNodes(running.api_pods_node_selector))
        cache = await (snapshot_of(name, *where) if leader.leads(now) else snapshot(*where))
        cache.absences = leader.absences
        node = cache.nodes.get(name)
        if node is None:
            err.print(f"remediator: {await missing_node(client, name)}", markup=False)
            return ExitCode.NO_SUCH
        await look_at(cache, client, name, now)
    cases = cache.cases.by("node", name)
    whole = (node, cache.nodes, cache.cases, cache.policies, cache.paused, now)
    scheduler = placed(*whole) if cache.whole else alone(node, cases, cache.policies, now)
    if output == "json":
        print_json(explain_data(cache, node, running.breaker, now) | _beside(scheduler, leader, now))
        return ExitCode.DONE
    for line in explained(cache, node, running.breaker, now):
        out.print(line, markup=False)
    out.print("  " + scheduler, markup=False)
    out.print(f"  controller: {leader.described(now)}", markup=False)
    return ExitCode.DONE


def _beside(scheduler: str, leader: Leading, now: datetime) -> dict[str, Any]:
    from remediator.controller.status import controller_data

    return {"scheduler": scheduler.removeprefix("scheduler: "), "controller": controller_data(leader, now)}
