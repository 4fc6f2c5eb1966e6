"""`remediator keep`: tell the janitor that an object is still needed."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remediator.cli.common import Kubeconfig, app, connect, out, refusal
from remediator.clock import SYSTEM
from remediator.core import names

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client, Kind


@app.command()
def keep(
    what: Annotated[
        str, typer.Argument(metavar="POD|KIND/NAME", help="A Pod, or such as deployments/web or namespaces/preview.")
    ],
    long: Annotated[str, typer.Argument(metavar="LENGTH", help="From now on: 8h, 7d, or forever.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Of the object.")] = "default",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Keep an object from the janitor for a while, whatever TTL, expiry time or rule says."""
    from remediator.janitor.ttl import FOREVER, Unreadable, parse_ttl
    from remediator.kube.wire.times import stamp

    try:
        length = parse_ttl(long)
    except Unreadable as wrong:
        raise refusal(wrong) from None
    until = FOREVER if length is None else stamp(SYSTEM.now() + length)
    plural, _, name = what.rpartition("/")
    asyncio.run(_keep(plural or "pods", name, namespace, until, kubeconfig))


async def _keep(plural: str, name: str, namespace: str, until: str, kubeconfig: Path | None) -> None:
    from remediator.kube.api import encode
    from remediator.kube.wire import errors
    from remediator.kube.wire.client import Client

    transport = await connect(kubeconfig)
    try:
        client = Client(transport)
        kind = await _kind(client, plural)
        where = namespace if kind.namespaced else ""
        await client.patch(kind, name, encode.annotations({names.KEEP_UNTIL: until}), namespace=where)
    except errors.ApiError as failed:
        raise refusal(failed.message) from None
    finally:
        await transport.close()
    place = f" in {where}" if where else ""
    out.print(f"{kind.plural}/{name}{place} is kept: {names.KEEP_UNTIL}={until}")


async def _kind(client: "Client", plural: str) -> "Kind[Any]":
    from remediator.kube.api.builtin import Head
    from remediator.kube.wire.client import Kind
    from remediator.kube.wire.discovery import served

    for row in await served(client):
        if plural.lower() in (row.plural, row.name.lower()):
            return Kind(row.group, row.version, row.plural, row.name, Head, row.namespaced)
    raise refusal(f"the cluster has no kind {plural}; write its plural, such as deployments/web")
