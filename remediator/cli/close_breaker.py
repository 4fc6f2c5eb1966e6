"""`remediator close-breaker`: let attempts start again once it is known why so many were in vain."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import Kubeconfig, app, asking, err, out, refusal
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.closing import Breakers, Closing

if TYPE_CHECKING:
    from remediator.kube.wire.client import Client


@app.command(name="close-breaker")
def close_breaker(
    what: Annotated[
        str,
        typer.Argument(
            metavar="POLICY|TEMPLATE|BUDGET",
            help="Whose breaker on failures: a name, or policy/NAME, template/NAME, budget/NAME.",
        ),
    ],
    kubeconfig: Kubeconfig = None,
) -> None:
    """Close a breaker on failures, and say why it was open. One that is closed already stays as it is."""
    raise typer.Exit(asyncio.run(_close_breaker(what, kubeconfig)))


async def _close_breaker(what: str, kubeconfig: Path | None) -> int:
    now = SYSTEM.now()
    async with asking(kubeconfig, forbidden="the role remediator-operator may close breakers") as client:
        breakers = await _breakers(client)
        named = breakers.named(what, now)
        if not named:
            err.print(f"remediator: {_unknown(what, breakers)}")
            return 1
        opened = [closing for closing in named if closing.open]
        if len(opened) > 1:
            forms = " or ".join(str(closing) for closing in opened)
            raise refusal(f"{what} names several breakers that are open; say which: {forms}")
        for closing in opened:
            await _close(client, closing, now)
        for line in _told(opened or named):
            out.print(line)
    return 0


async def _breakers(client: "Client") -> Breakers:
    """All that may have one."""
    from remediator.kube.informers import Informers

    informers = Informers(client, SYSTEM, names.Namespaces())
    policies, budgets, templates = informers.policies, informers.budgets, informers.templates
    await informers.read()
    return Breakers(tuple(policies), tuple(budgets), [template.name for template in templates])


async def _close(client: "Client", closing: Closing, now: datetime) -> None:
    """Tell each object. A clock of ours that is behind does not make it a time before the breaker opened."""
    from remediator.kube import api
    from remediator.kube.api import encode

    at = max(now.replace(microsecond=0), closing.at_least or now)
    body = encode.annotations({names.BREAKER_CLOSED_AT: at.isoformat().replace("+00:00", "Z")})
    for name in closing.policies:
        await client.patch(api.POLICY, name, body)
    for name in closing.budgets:
        await client.patch(api.BUDGET, name, body)


def _unknown(what: str, breakers: Breakers) -> str:
    near = breakers.near(what)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"no policy or template, and no budget with a breaker, is named {what}{hint}"


def _told(closings: list[Closing]) -> Iterator[str]:
    for closing in closings:
        if not closing.open:
            yield f"the breaker on failures of {closing} is closed: nothing to do"
            continue
        since = f"{closing.breaker.opened:%Y-%m-%d %H:%M:%S} UTC" if closing.breaker.opened else "some time"
        yield f"closed the breaker on failures of {closing}, which was open since {since}: {closing.breaker.message}"
        for record in closing.breaker.records:
            worked = "in vain" if record.in_vain else "worked"
            yield f"  {record.ended:%H:%M:%S} {record.template} on {record.node}: {worked} ({record.operation})"
        if len(closing.policies) > 1:
            yield f"  told: policies {', '.join(closing.policies)}"
        yield "attempts that ended before do not count any more; new ones start as budgets allow"
