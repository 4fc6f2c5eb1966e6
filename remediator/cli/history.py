"""`remediator history`: all kept cases of a node."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from remediator.cli.common import ExitCode, Form, Kubeconfig, app, asking, err, out, print_json
from remediator.clock import SYSTEM
from remediator.core.case_data import case_data
from remediator.core.past_cases import told


@app.command()
def history(
    node: Annotated[str, typer.Argument(help="Name of the node. It may be gone.")],
    kubeconfig: Kubeconfig = None,
    output: Form = "text",
) -> None:
    """Show all cases of a node that are kept: what each was for, what was done, how long it took, how it ended."""
    raise typer.Exit(asyncio.run(_history(node, kubeconfig, output)))


async def _history(node: str, kubeconfig: Path | None, output: str) -> ExitCode:
    from remediator.cli.nearest import missing_node
    from remediator.kube.api.builtin import NODE
    from remediator.kube.cases_of import cases_of
    from remediator.kube.wire import errors

    async with asking(kubeconfig, forbidden="the role remediator-viewer may read this") as client:
        now = SYSTEM.now()
        cases = await cases_of(client, SYSTEM, node)
        if not cases:
            try:
                await client.get(NODE, node)
            except errors.NotFound:
                why = await missing_node(client, node)
                err.print(f"remediator: no case of a node {node} is kept: {why}")
                return ExitCode.NO_SUCH
    if output == "json":
        print_json({"node": node, "cases": [case_data(case, now) for case in cases]})
        return ExitCode.DONE
    for line in told(cases, now) if cases else [f"{node}: no case is kept"]:
        out.print(line)
    return ExitCode.DONE
