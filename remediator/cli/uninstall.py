"""`remediator uninstall`: every node is given back, before Remediator is taken away."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import OUR_NAMESPACE, Ended, ExitCode, Kubeconfig, Namespace, app, asking, confirm, out
from remediator.cli.orders import Yes
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.case import Case
from remediator.core.leaving import Leaving, named, still_marked

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client

EVERY = 1.0  # seconds between two looks


@app.command()
def uninstall(
    yes: Yes = False,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds to wait until the last node is given back.")] = 1800,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = OUR_NAMESPACE,
) -> None:
    """Pause everything new, cancel every open case, and wait until no node carries a mark of ours."""
    asyncio.run(_uninstall(kubeconfig, namespace, timedelta(seconds=timeout), yes=yes))


async def _uninstall(kubeconfig: Path | None, namespace: str, timeout: timedelta, *, yes: bool) -> None:
    from remediator.controller.leading import leading
    from remediator.kube.api import encode
    from remediator.kube.api.builtin import NAMESPACE

    async with asking(kubeconfig, forbidden="the role remediator-operator may do this") as client:
        now = SYSTEM.now()
        leader = await leading(client, namespace, now)
        before = await _leaving(client, namespace)
        if before.cases:
            if not leader.leads(now):
                raise Ended(
                    ExitCode.FAILED, f"{leader.described(now)}: start the controller, for nobody else gives nodes back"
                )
            confirm(before.question, yes=yes)
        await client.patch(NAMESPACE, namespace, encode.annotations({names.PAUSED: "uninstall"}))
        out.print(f"everything new is paused: the namespace {namespace} has the annotation {names.PAUSED}")
        await _until_given_back(client, namespace, now + timeout)
        await _see_marks(client, namespace)
    out.print("no case is open, and no node carries a mark of ours: take Remediator away now (docs/uninstall.md)")


async def _leaving(client: "Client", namespace: str) -> Leaving:
    from remediator.kube.overview import overview

    return Leaving((await overview(client, SYSTEM, names.Namespaces(namespace))).cases)


async def _until_given_back(client: "Client", namespace: str, until: datetime) -> None:
    """Cancel what is open, again and again: a case may have begun before the pause was seen."""
    cancelled: set[str] = set()
    while cases := (await _leaving(client, namespace)).cases:
        if SYSTEM.now() > until:
            waits = named({case.node for case in cases})
            raise Ended(
                ExitCode.FAILED,
                f"not given back: {waits}; `remediator explain NODE` says why; then run this again",
            )
        for case in (case for case in cases if case.uid not in cancelled):
            await _cancel(client, case)
            cancelled.add(case.uid)
        await asyncio.sleep(EVERY)


async def _cancel(client: "Client", case: Case) -> None:
    """One that is gone, or another one of its name, is nothing to cancel."""
    from remediator.kube import api
    from remediator.kube.wire import errors

    with suppress(errors.NotFound, errors.Conflict):
        await client.delete(api.CASE, case.name, uid=case.uid)
        out.print(f"cancelled case {case.name} on {case.node}", markup=False)


async def _see_marks(client: "Client", namespace: str) -> None:
    """Raises Ended where something of ours still keeps work off a node."""
    from remediator.kube.informers import Informers

    informers = Informers(client, SYSTEM, names.Namespaces(namespace))
    nodes = informers.nodes
    await informers.read()
    marked = still_marked(nodes)
    for name, marks in sorted(marked.items()):
        out.print(f"{name} still has {marks}", markup=False)
    if marked:
        helps = "run this again in a minute, or take off by hand what stands above"
        raise Ended(ExitCode.FAILED, f"not given back: {named(marked)}; {helps}")
