"""`remediator explain`: why a node is, or is not, being repaired."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remediator.cli.common import (
    ApiPodsNodeSelector,
    Ended,
    ExitCode,
    Form,
    Kubeconfig,
    Namespace,
    OperationsNamespace,
    Starts,
    Window,
    app,
    asking,
    out,
    print_json,
    refusal,
)
from remediator.cli.meant import JobName, NodeName, PodName, Target, nodes_meant
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.places import ApiNodes
from remediator.core.running import Leading, Running
from remediator.settings import Settings

if TYPE_CHECKING:
    from remediator.controller.cache import ClusterCache
    from remediator.core.node import Node


@app.command()
def explain(
    api_pods_node_selector: ApiPodsNodeSelector,
    node: NodeName = "",
    pod: PodName = "",
    job: JobName = "",
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    operations_namespace: OperationsNamespace = names.OPERATIONS_NAMESPACE,
    starts: Starts = 10,
    window: Window = 600,
    output: Form = "text",
) -> None:
    """Say why a node is, or is not, being repaired. Reads the cluster, changes nothing.

    Of a job each node is explained; with -o json it is a list.
    """
    target = Target(node, pod, job)
    try:
        settings = Settings(
            namespace=namespace,
            operations_namespace=operations_namespace,
            api_pods_node_selector=api_pods_node_selector,
            breaker=Breaker(starts, timedelta(seconds=window)),
        )
    except ValueError as wrong:
        raise refusal(wrong) from None
    asyncio.run(_explain(target, kubeconfig, settings, output))


async def _explain(target: Target, kubeconfig: Path | None, settings: Settings, output: str) -> None:
    """With the settings of the replica that leads, and in its words; where none leads, decided here as it would be."""
    from remediator.cli.nearest import missing_node
    from remediator.controller.explain import look_at, snapshot, snapshot_of
    from remediator.controller.leading import leading

    explained = list[_Explained]()
    async with asking(kubeconfig) as client:
        names_meant = await nodes_meant(client, target)
        now = SYSTEM.now()
        leader = await leading(client, settings.namespace, now)
        running = leader.running or Running(settings.breaker, settings.api_pods_node_selector)
        where = (client, settings.namespaces, SYSTEM, ApiNodes(running.api_pods_node_selector))
        whole = None if leader.leads(now) else await snapshot(*where)
        for name in names_meant:
            cache = whole or await snapshot_of(name, *where)
            cache.absences = leader.absences
            node = cache.nodes.get(name)
            if node is None:
                raise Ended(ExitCode.NO_SUCH, await missing_node(client, name))
            await look_at(cache, client, name, now)
            explained.append(_Explained(cache, node, running, leader, now))
    if output == "json":
        data = [each.data() for each in explained]
        print_json(data if target.job else data[0])
        return
    for number, each in enumerate(explained):
        for line in ("",) * (number > 0) + (*each.lines(),):
            out.print(line)


@dataclass(frozen=True, slots=True)
class _Explained:
    """One node, and what was read of it."""

    cache: "ClusterCache"
    node: "Node"
    running: Running
    leader: Leading
    now: datetime

    def lines(self) -> Iterator[str]:
        """For people."""
        from remediator.controller.explain import explain as explained

        yield from explained(self.cache, self.node, self.running.breaker, self.now)
        yield f"  {self._placed()}"
        yield f"  controller: {self.leader.described(self.now)}"

    def data(self) -> dict[str, Any]:
        """For scripts."""
        from remediator.controller.explain_data import explain_data

        data = explain_data(self.cache, self.node, self.running.breaker, self.now)
        return data | _beside(self._placed(), self.leader, self.now)

    def _placed(self) -> str:
        from remediator.scheduler.explain import alone
        from remediator.scheduler.explain import explain as placed

        cache, node = self.cache, self.node
        if not cache.whole:
            return alone(node, cache.cases.by("node", node.name), cache.policies, self.now)
        return placed(node, cache.nodes, cache.cases, cache.policies, cache.paused, self.now)


def _beside(scheduler: str, leader: Leading, now: datetime) -> dict[str, Any]:
    from remediator.controller.status import controller_data

    return {"scheduler": scheduler.removeprefix("scheduler: "), "controller": controller_data(leader, now)}
