"""`remediator retire`: the machine of a node must go, so Cluster API is to delete it before all others."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remediator.cli.common import Ended, ExitCode, Form, Kubeconfig, app, asking, confirm, err, out, print_json
from remediator.cli.nearest import missing_node
from remediator.cli.orders import Yes
from remediator.core.machine import GOES_FIRST, GROUP, PLURAL, MachineName, another, before, machine_of, nothing_to_do

if TYPE_CHECKING:
    from remediator.kube.api.outside import WireMachine
    from remediator.kube.wire.client import Client, Kind

MAY = f"it takes the verbs get and patch on {PLURAL}.{GROUP}, which roles of Cluster API have"


@app.command()
def retire(
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node whose machine must go.")],
    off: Annotated[bool, typer.Option("--off", help="Take the mark off again.")] = False,
    yes: Yes = False,
    output: Form = "text",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Mark the machine of a node, so that Cluster API deletes it before others once it needs fewer."""
    asyncio.run(_retire(node, kubeconfig, output, off=off, yes=yes))


async def _retire(node: str, kubeconfig: Path | None, output: str, *, off: bool, yes: bool) -> None:
    from remediator.kube.api import encode

    async with asking(kubeconfig, forbidden=MAY) as client:
        machine = await _machine(client, node)
        kind, known = await _known(client, node, machine)
        if why := another(node, machine, known.status.node_ref.name):
            raise Ended(ExitCode.REFUSED, why)
        if why := nothing_to_do(machine, marked=GOES_FIRST in known.metadata.annotations, off=off):
            raise Ended(ExitCode.NOTHING, why)
        owner = next((f"{each.kind} {each.name}" for each in known.metadata.owner_references if each.controller), "")
        for line in before(node, machine, owner, off=off):
            (err if output == "json" else out).print(line)
        confirm(f"Take the mark off {machine}?" if off else f"Mark {machine}?", yes=yes)
        body = encode.annotations({GOES_FIRST: None if off else "true"})
        await client.patch(kind, machine.name, body, namespace=machine.namespace)
    _show(node, machine, output, marked=not off)


def _show(node: str, machine: MachineName, output: str, *, marked: bool) -> None:
    if output == "json":
        data: dict[str, Any] = {"node": node, "namespace": machine.namespace, "machine": machine.name, "marked": marked}
        print_json(data)
    else:
        out.print(f"{machine} is marked: {GOES_FIRST}=true" if marked else f"{machine} is no longer marked")


async def _machine(client: "Client", node: str) -> MachineName:
    """Raises Ended where there is no such node, or nothing says that Cluster API has made it."""
    from remediator.kube.api.builtin import NODE
    from remediator.kube.wire import errors

    try:
        annotations = (await client.get(NODE, node)).metadata.annotations
    except errors.NotFound:
        raise Ended(ExitCode.NO_SUCH, await missing_node(client, node)) from None
    machine = machine_of(annotations)
    if machine is None:
        why = f"no annotation {GROUP}/machine names its machine"
        raise Ended(ExitCode.NOTHING, f"Cluster API has not made {node}: {why}")
    return machine


async def _known(client: "Client", node: str, machine: MachineName) -> "tuple[Kind[WireMachine], WireMachine]":
    """The Machine, in the version that the server prefers. Raises Ended where it is not in this cluster."""
    from remediator.kube.api.outside import WireMachine
    from remediator.kube.wire import errors
    from remediator.kube.wire.client import Kind
    from remediator.kube.wire.discovery import served

    version = next((row.version for row in await served(client) if (row.group, row.plural) == (GROUP, PLURAL)), "")
    kind = Kind(GROUP, version, PLURAL, "Machine", WireMachine, namespaced=True)
    try:
        if version:
            return kind, await client.get(kind, machine.name, namespace=machine.namespace)
    except errors.NotFound:
        pass
    elsewhere = "give --kubeconfig of the cluster that manages it, where its node has the same name"
    raise Ended(ExitCode.NO_SUCH, f"{machine} of {node} is not in this cluster; {elsewhere}")
