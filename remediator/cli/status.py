"""`remediator status`: the fleet on one screen."""

import asyncio
from pathlib import Path

from remediator.cli.common import OUR_NAMESPACE, Form, Kubeconfig, Namespace, app, asking, out, print_json, refusal
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.places import DEFAULT
from remediator.core.running import Running
from remediator.settings import Settings


@app.command()
def status(kubeconfig: Kubeconfig = None, namespace: Namespace = OUR_NAMESPACE, output: Form = "text") -> None:
    """Show the fleet: open cases by what each waits for and who must act, budgets, breakers, who leads."""
    try:
        Settings(namespace=namespace)
    except ValueError as wrong:
        raise refusal(wrong) from None
    asyncio.run(_status(kubeconfig, namespace, output))


async def _status(kubeconfig: Path | None, namespace: str, output: str) -> None:
    """No node is listed, and no case that is over."""
    from remediator.controller.leading import leading
    from remediator.controller.status import data, told
    from remediator.kube.overview import overview

    async with asking(kubeconfig, forbidden="the role remediator-viewer may read this") as client:
        now = SYSTEM.now()
        leader = await leading(client, namespace, now)
        running = leader.running or Running(Breaker(), DEFAULT)
        fleet = await overview(client, SYSTEM, names.Namespaces(namespace))
    if output == "json":
        print_json(data(fleet, leader, running, now))
        return
    for line in told(fleet, leader, running, namespace, now):
        out.print(line, markup=False)
