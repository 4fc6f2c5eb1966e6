"""`remediator convert`: manifests of another controller, as manifests of ours."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import amount, app, err, refusal

if TYPE_CHECKING:
    from remediator.kube.manifests import lint

convert = typer.Typer(help="Turn manifests of another controller into ours.", no_args_is_help=True)
app.add_typer(convert, name="convert")


@convert.callback()
def _commands() -> None:
    """Turn manifests of another controller into ours."""


@convert.command()
def noc(
    files: Annotated[list[Path], typer.Argument(help="Files of YAML or JSON, as kubectl gets them; - is stdin.")],
    known: Annotated[
        list[str] | None,
        typer.Option("--template", help="A NodeOperationTemplate of ours that is in the cluster already."),
    ] = None,
) -> None:
    """Print what manifests of PFN's node-operation-controller become; stderr says what is different, and what to do.

    Exit 1 where an object was refused: the others are printed all the same.
    """
    import yaml

    from remediator.kube.manifests import noc

    documents = [document for file in files for document in _documents(file)]
    conversion = noc.convert(documents, frozenset(known or ()))
    for each in conversion.objects:
        typer.echo("---\n" + yaml.safe_dump(each, sort_keys=False, allow_unicode=True), nl=False)
    for note in conversion.notes:
        err.print(str(note))
    counts = amount(len(documents), "object"), f"{amount(len(conversion.objects), 'object')} of ours"
    err.print(f"{counts[0]} read, {counts[1]} made, {conversion.refused} refused")
    raise typer.Exit(1 if conversion.refused else 0)


def _documents(file: Path) -> "list[lint.Document]":
    """Raises typer.Exit with 2 for what cannot be read."""
    from remediator.kube.manifests import lint

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
    except OSError as failed:
        raise refusal(f"{file}: {failed.strerror}; name files that can be read") from None
    except UnicodeDecodeError:
        raise refusal(f"{file}: is not text in UTF-8; name files of YAML or JSON") from None
    documents, unreadable = lint.read("stdin" if str(file) == "-" else str(file), text)
    if unreadable:
        raise refusal(f"{unreadable[0]}; correct it, and convert again")
    if not documents:
        raise refusal(f"nothing to convert in {file}; write it with `kubectl get nodeoperationtemplates -o yaml`")
    return documents
