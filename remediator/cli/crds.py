"""`remediator crds`: the CustomResourceDefinitions."""

from pathlib import Path
from typing import Annotated

import typer

from remediator.cli.common import app, refusal


@app.command()
def crds(
    output: Annotated[Path | None, typer.Option(help="Folder to write one file per kind into; else to stdout.")] = None,
) -> None:
    """Write the CustomResourceDefinitions of Remediator's kinds."""
    from remediator.kube.manifests import crd

    for filename, text in crd.render().items():
        if output is None:
            typer.echo(f"---\n{text}", nl=False)
        else:
            _write(output, filename, text)


def _write(folder: Path, filename: str, text: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / filename).write_text(text)
    except OSError as failed:
        why = f"--output {folder}: {failed.strerror or failed}"
        raise refusal(f"{why}; name a folder that may be written, or none for stdout") from None
