"""`remediator lint`: check manifests before they are applied."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from remediator.cli.common import ApiPodsNodeSelector, amount, app, asking, refusal
from remediator.core.node import Node
from remediator.core.places import ApiNodes

if TYPE_CHECKING:
    from remediator.kube.manifests import lint

MANIFESTS = (".yaml", ".yml", ".json")  # what `kubectl apply -f FOLDER` takes


@app.command(name="lint")
def lint_files(
    files: Annotated[
        list[Path], typer.Argument(help="Files of YAML or JSON, or folders of .yaml, .yml and .json files.")
    ],
    api_pods_node_selector: ApiPodsNodeSelector,
    known: Annotated[
        list[str] | None, typer.Option("--template", help="A NodeOperationTemplate that is in the cluster already.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="A cluster whose nodes the selectors are tried on. Left out: none is asked.")
    ] = None,
) -> None:
    """Check policies, budgets and templates before they are applied. Exit 1 where anything is wrong."""
    from remediator.kube.manifests import lint

    read = _read_all(files)
    documents = [document for file in read for document in file.documents]
    findings = [finding for file in read for finding in file.unreadable]
    findings += lint.lint(documents, frozenset(known or ()))
    for finding in findings:
        typer.echo(str(finding))
    chosen = _chosen(api_pods_node_selector)
    nodes = asyncio.run(_nodes(kubeconfig)) if kubeconfig else None
    for line in _selected(documents, nodes):
        typer.echo(line, err=True)
    for warning in _warnings(documents, chosen, nodes, frozenset(known or ())):
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"{amount(len(documents), 'document')}, {amount(len(findings), 'finding')}", err=True)
    raise typer.Exit(1 if findings else 0)


def _chosen(selector: str) -> ApiNodes:
    try:
        return ApiNodes(selector)
    except ValueError as wrong:
        raise refusal(f"--api-pods-node-selector: {wrong}") from None


def _selected(documents: "list[lint.Document]", nodes: list[Node] | None) -> list[str]:
    """How many nodes each policy selects, where nodes are known."""
    from remediator.kube.manifests import api_pods, selected

    return list(selected.counts(api_pods.readable(documents), nodes)) if nodes is not None else []


def _warnings(
    documents: "list[lint.Document]", chosen: ApiNodes, nodes: list[Node] | None, known: frozenset[str]
) -> list[str]:
    """What may be meant so, and should be looked at: no reason to exit 1."""
    from remediator.kube.manifests import (
        always_open,
        api_pods,
        covers,
        dead_nodes,
        inventory_names,
        never_starts,
        new_nodes,
        probes,
        selected,
        times,
    )

    policies = api_pods.policies(documents)
    return [
        *(selected.warnings(api_pods.readable(documents), nodes) if nodes else ()),
        *inventory_names.warnings(documents, nodes or ()),
        *api_pods.warnings(policies, chosen, nodes),
        *probes.warnings(documents),
        *always_open.warnings(policies),
        *dead_nodes.warnings(policies),
        *covers.warnings(documents, known),
        *never_starts.warnings(documents),
        *new_nodes.warnings(policies),
        *times.warnings(documents),
    ]


async def _nodes(kubeconfig: Path) -> list[Node]:
    from remediator.kube.api import decode
    from remediator.kube.api.builtin import NODE

    async with asking(kubeconfig) as client:
        return [decode.node(node) for node in await client.list_all(NODE)]


class _File(NamedTuple):
    """What a file has: its documents, and what of it cannot be read."""

    documents: "list[lint.Document]"
    unreadable: "list[lint.Finding]"


def _read_all(files: list[Path]) -> list[_File]:
    """All files, and those below folders, each once however often it is named."""
    known: dict[Path, _File] = {}
    for file in files:
        read = _read(file)
        if not any(documents or unreadable for documents, unreadable in read.values()):
            raise refusal(f"nothing to check in {file}; name a file of YAML or JSON, or a folder that has some")
        known |= {path: each for path, each in read.items() if path not in known}
    return list(known.values())


def _read(file: Path) -> dict[Path, _File]:
    """A file, or all manifests below a folder, each by the path that it has whatever it is called here."""
    from remediator.kube.manifests import lint

    read, path = {}, file
    try:
        for path in _manifests(file):
            read[path.resolve()] = _File(*lint.read(str(path), path.read_text("utf-8")))
    except OSError as failed:
        raise refusal(f"{failed.filename or path}: {failed.strerror}; name files that can be read") from None
    except UnicodeDecodeError:
        raise refusal(f"{path}: is not text in UTF-8; name files of YAML or JSON") from None
    return read


def _manifests(file: Path) -> list[Path]:
    """Raises OSError for a folder in it that cannot be read."""
    if not file.is_dir():
        return [file]
    below = (Path(folder, name) for folder, _, names in os.walk(file, onerror=_raise) for name in names)
    return sorted(path for path in below if path.suffix in MANIFESTS)


def _raise(error: OSError) -> None:
    raise error
