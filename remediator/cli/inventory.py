"""`remediator inventory`: what a node is known to have, what it counts now, and how to have it learnt anew."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remediator.cli.common import ExitCode, Form, Kubeconfig, app, asking, err, out, print_json
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.device_count import DeviceCount
from remediator.core.inventory_name import taken
from remediator.core.kinds_expected import why_not, wrong_kinds
from remediator.core.node_inventory import Counts, Inventory, fresh, lacking, phrase, should_have, unread

if TYPE_CHECKING:
    from remediator.core.node import Node
    from remediator.kube.wire.client import Client


@app.command()
def inventory(
    node: Annotated[str, typer.Argument(help="The name of the node.")],
    reset: Annotated[
        bool, typer.Option("--reset", help="Forget what was learnt: a device was taken out for good.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    output: Form = "text",
) -> None:
    """Show what a node is known to have, and what it has now."""
    raise typer.Exit(asyncio.run(_inventory(node, kubeconfig, output, reset=reset)))


async def _inventory(name: str, kubeconfig: Path | None, output: str, *, reset: bool) -> ExitCode:
    from remediator.cli.nearest import missing_node

    now = SYSTEM.now()
    async with asking(kubeconfig, forbidden="the role remediator-viewer shows, remediator-operator resets") as client:
        node, inventories = await _read(client, name)
        own = next((each for each in inventories if each.node == name), None)
        why = taken(name, next((each for each in inventories if each.name == name), None))
        none = own is None or own.since is None
        why = why or (_nothing_learnt(name) if reset and node is not None and none else "")
        if reset and why:
            err.print(f"remediator: {why}")
            return ExitCode.REFUSED
        if node is None and own is None:
            why = await missing_node(client, name)
            err.print(f"remediator: nothing is known of a node {name}: {why}")
            return ExitCode.NO_SUCH
        if reset and own is not None:
            await _forget(client, name, now)
            out.print(f"what was learnt of {name} before {now:%Y-%m-%d %H:%M:%S} UTC is forgotten; it is learnt anew")
            return ExitCode.DONE
    if output == "json":
        print_json(_data(name, node, own, inventories, now))
        return ExitCode.DONE
    for line in (*_wrong(why, node, own, inventories), *_told(name, node, own, inventories, now)):
        out.print(line)
    return ExitCode.DONE


def _wrong(why: str, node: "Node | None", own: Inventory | None, inventories: list[Inventory]) -> Iterator[str]:
    """What is wrong with the inventories themselves: the lines before all others."""
    counted = node.counted.kinds if node is not None and node.counted is not None else frozenset[str]()
    groups = [each for each in inventories if node is not None and each.selector is not None and each.selects(node)]
    yield from filter(None, (why,))
    for inventory in (*filter(None, (own,)), *groups):
        yield from wrong_kinds(inventory, counted)


def _data(
    name: str, node: "Node | None", own: Inventory | None, inventories: list[Inventory], now: datetime
) -> dict[str, Any]:
    """`has` is null where the node is gone, or has not counted lately: then only what was learnt is known."""
    seen = fresh(node, now) if node is not None else None
    if node is None or seen is None:
        known = dict(should_have(node, own, inventories, None, now))
        none = {"has": None, "expected": known, "lacking": None, "notCounted": None, "unread": None}
        return {"node": name, "exists": node is not None} | none
    wanted = should_have(node, own, inventories, seen, now)
    lacks = {kind: {"has": has, "expected": expected} for kind, (has, expected) in lacking(seen, wanted).items()}
    uncounted = {kind: why_not(kind).value for kind in sorted(wanted.keys() - dict(seen.has).keys())}
    facts = {"has": dict(seen.has), "expected": dict(wanted), "lacking": lacks, "notCounted": uncounted}
    return {"node": name, "exists": True} | facts | {"unread": sorted({*seen.unread, *unread(seen, wanted)})}


async def _read(client: "Client", name: str) -> "tuple[Node | None, list[Inventory]]":
    """The node, None where it is gone, and all inventories: those of groups speak of it, too."""
    from remediator.kube.api import builtin, decode
    from remediator.kube.informers import Informers
    from remediator.kube.wire import errors

    informers = Informers(client, SYSTEM, names.Namespaces())
    kept = informers.inventories
    await informers.read()
    try:
        return decode.node(await client.get(builtin.NODE, name)), list(kept)
    except errors.NotFound:
        return None, list(kept)


def _nothing_learnt(name: str) -> str:
    return f"nothing is known of {name} that could be forgotten: its detector device_inventory has not counted yet"


async def _forget(client: "Client", name: str, now: datetime) -> None:
    from remediator.kube import api
    from remediator.kube.api import encode

    await client.patch(api.INVENTORY, name, encode.forgotten_inventory(now))


def _told(
    name: str, node: "Node | None", own: Inventory | None, inventories: list[Inventory], now: datetime
) -> Iterator[str]:
    seen = fresh(node, now) if node is not None else None
    if node is None or seen is None:
        why = "there is no such node now" if node is None else "the node has not counted within 15 minutes"
        expected = should_have(node, own, inventories, None, now)
        yield f"{name}: {why}"
        yield from (f"  {kind:<12} {count:>9} expected" for kind, count in sorted(expected.items()))
        return
    wanted = should_have(node, own, inventories, seen, now)
    unsure = ", ".join(unread(seen, wanted))
    wrong = filter(None, (phrase(lacking(seen, wanted)), unsure and f"could not count its {unsure}"))
    yield f"{name}: {', and '.join(wrong) or 'has what it is known to have'}"
    yield from _rows(seen, wanted)


def _rows(seen: DeviceCount, wanted: Counts) -> Iterator[str]:
    """A line for each kind: what there is, and what there should be."""
    has = dict(seen.has)
    for kind in sorted(has.keys() | wanted.keys() | set(seen.unread)):
        expected = wanted.get(kind, "unknown")
        count = f"{has[kind]:>11} of {expected}" if kind in has else _uncounted(kind, expected)
        yield f"  {kind:<10} {count}"


def _uncounted(kind: str, expected: int | str) -> str:
    return f"{expected} expected, but {why_not(kind)}"
