"""`remediator status`: the fleet on one screen."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import (
    OUR_NAMESPACE,
    Ended,
    ExitCode,
    Form,
    Kubeconfig,
    Namespace,
    app,
    asking,
    out,
    print_json,
    refusal,
)
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.places import DEFAULT
from remediator.core.running import Running
from remediator.settings import Settings

if TYPE_CHECKING:
    from remediator.core.missing_fields import Missing
    from remediator.kube.wire.client import Client


@app.command()
def status(
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = OUR_NAMESPACE,
    output: Form = "text",
    check: Annotated[bool, typer.Option("--check", help="End with 4 where no replica leads.")] = False,
) -> None:
    """Show the fleet: open cases by what each waits for and who must act, budgets, breakers, who leads."""
    try:
        Settings(namespace=namespace)
    except ValueError as wrong:
        raise refusal(wrong) from None
    asyncio.run(_status(kubeconfig, namespace, output, check=check))


async def _status(kubeconfig: Path | None, namespace: str, output: str, *, check: bool) -> None:
    """No node is listed, and no case that is over."""
    from remediator.controller.leading import leading
    from remediator.controller.status import data, told
    from remediator.kube.overview import overview

    async with asking(kubeconfig, forbidden="the role remediator-viewer may read this") as client:
        now = SYSTEM.now()
        leader = await leading(client, namespace, now)
        running = leader.running or Running(Breaker(), DEFAULT)
        fleet = await overview(client, SYSTEM, names.Namespaces(namespace))
        fleet = replace(fleet, missing=await _missing(client))
    if output == "json":
        print_json(data(fleet, leader, running, now))
    for line in told(fleet, leader, running, namespace, now) if output == "text" else ():
        out.print(line)
    if check and not leader.leads(now):
        raise Ended(ExitCode.FAILED, leader.described(now))


async def _missing(client: "Client") -> "Missing":
    """What the definitions lack; nothing where the server tells nobody."""
    from remediator.kube.manifests.missing_fields import missing_fields
    from remediator.kube.wire.errors import ApiError

    try:
        return await missing_fields(client)
    except ApiError:
        return {}
