"""`remediator crds`: the CustomResourceDefinitions."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from remediator.cli.common import Kubeconfig, app, asking, out, refusal


@app.command()
def crds(
    output: Annotated[Path | None, typer.Option(help="Folder to write one file per kind into; else to stdout.")] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write them into the cluster instead. Newer ones there stay.")
    ] = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Write the CustomResourceDefinitions of Remediator's kinds."""
    from remediator.kube.manifests import crd

    if apply and output is not None:
        raise refusal("--apply writes into the cluster and --output into a folder; give one of them")
    if apply:
        asyncio.run(_apply(kubeconfig))
        return
    for filename, text in crd.render().items():
        if output is None:
            typer.echo(f"---\n{text}", nl=False)
        else:
            _write(output, filename, text)


async def _apply(kubeconfig: Path | None) -> None:
    from remediator.kube.manifests import definitions

    async with asking(kubeconfig, forbidden="an administrator of the cluster may write them") as client:
        for line in await definitions.apply(client):
            out.print(line)


def _write(folder: Path, filename: str, text: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / filename).write_text(text)
    except OSError as failed:
        why = f"--output {folder}: {failed.strerror or failed}"
        raise refusal(f"{why}; name a folder that may be written, or none for stdout") from None
