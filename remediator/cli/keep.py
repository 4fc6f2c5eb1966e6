"""`remediator keep`: tell the janitor that an object is still needed."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import Kubeconfig, app, connect, out, refusal
from remediator.clock import SYSTEM
from remediator.core import names

if TYPE_CHECKING:
    from remediator.kube.api.builtin import Head
    from remediator.kube.api.common import OwnerReference
    from remediator.kube.wire.client import Client, Kind
    from remediator.kube.wire.discovery import Served


MOST_OWNERS = 8  # of which each owns the next: whoever writes references may write a circle


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
    from remediator.janitor.ttl import FOREVER, UnreadableTime, parse_ttl
    from remediator.kube.wire.times import stamp

    try:
        length = parse_ttl(long)
    except UnreadableTime as wrong:
        raise refusal(wrong) from None
    until = FOREVER if length is None else stamp(SYSTEM.now() + length)
    plural, _, name = what.rpartition("/")
    asyncio.run(_keep(plural or "pods", name, namespace, until, kubeconfig))


async def _keep(plural: str, name: str, namespace: str, until: str, kubeconfig: Path | None) -> None:
    from remediator.kube.wire import errors
    from remediator.kube.wire.client import Client
    from remediator.kube.wire.discovery import served

    transport = await connect(kubeconfig)
    try:
        client = Client(transport)
        rows = await served(client)
        await _keep_all(client, rows, _row(rows, plural), name, namespace, until)
    except errors.ApiError as failed:
        raise refusal(failed.message) from None
    finally:
        await transport.close()


async def _keep_all(
    client: "Client", rows: "list[Served]", row: "Served", name: str, namespace: str, until: str
) -> None:
    """The object, and what owns it, step by step: with its owner it would be deleted."""
    from remediator.janitor.selection import SHIPPED
    from remediator.kube.api import encode
    from remediator.kube.api.common import controller

    body, because = encode.annotations({names.KEEP_UNTIL: until}), ""
    for _ in range(MOST_OWNERS):
        where = namespace if row.namespaced else ""
        head = await client.patch(_kind(row), name, body, namespace=where)
        what = f"{row.plural}/{name}"
        out.print(f"{what}{f' in {where}' if where else ''} is kept{because}: {names.KEEP_UNTIL}={until}")
        if where and not because and row.plural not in SHIPPED:
            unseen = f"the janitor of deploy/janitor does not look at {row.plural}"
            typer.echo(f"warning: {unseen}: {what} goes with namespace {where}; keep that, too", err=True)
        owner = controller(head.metadata.owner_references)
        above = next((each for each in rows if owner is not None and _is(each, owner)), None)
        if owner is None or above is None or not above.namespaced:
            return
        row, name, because = above, owner.name, f", too, since {what} would go with it"


def _row(rows: "list[Served]", plural: str) -> "Served":
    """The kind that a user means; with its group, such as jobs.batch.volcano.sh, where several have one name."""
    for row in rows:
        if plural.lower() in (row.plural, row.name.lower(), f"{row.plural}.{row.group}"):
            return row
    raise refusal(f"the cluster has no kind {plural}; write its plural, such as deployments/web")


def _is(row: "Served", owner: "OwnerReference") -> bool:
    return row.name == owner.kind and row.group == owner.api_version.rpartition("/")[0]


def _kind(row: "Served") -> "Kind[Head]":
    from remediator.kube.api.builtin import Head
    from remediator.kube.wire.client import Kind

    return Kind(row.group, row.version, row.plural, row.name, Head, row.namespaced)
