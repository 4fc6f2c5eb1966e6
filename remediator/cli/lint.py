"""`remediator lint`: check manifests before they are applied."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from remediator.cli.common import ApiPodsNodeSelector, amount, app, asking, err, refusal
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.hosts import HostKind
from remediator.core.places import ApiNodes

if TYPE_CHECKING:
    from remediator.kube.manifests import advice, lint

TEMPLATES_HELP = "name the folder that has them, too, such as operations, or each with --template"
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
        Path | None, typer.Option(help="A cluster that selectors and budgets are tried on. Left out: none is asked.")
    ] = None,
    platform: Annotated[
        list[HostKind] | None,
        typer.Option(help="What the nodes run on (docs/hosts.md); those of a cluster show it themselves."),
    ] = None,
) -> None:
    """Check policies, budgets, templates and rules of the janitor before they are used. Exit 1 where anything is wrong.

    Exit 2 where a file or a folder has nothing to check: the others are checked all the same.
    """
    from remediator.kube.manifests import advice, lint

    read, without = _read_all(files)
    if not read:
        raise _nothing_in(without)
    documents = [document for file in read for document in file.documents]
    findings = [finding for file in read for finding in file.unreadable]
    chosen = _chosen(api_pods_node_selector)
    cluster = asyncio.run(_cluster(kubeconfig)) if kubeconfig else None
    nodes = cluster.nodes if cluster else ()
    findings += lint.lint(documents, frozenset(known or ()), tuple(platform or ()), nodes)
    for finding in findings:
        typer.echo(str(finding))
    for line in advice.counts(documents, cluster):
        typer.echo(line, err=True)
    for warning in advice.warnings(documents, chosen, frozenset(known or ()), cluster):
        typer.echo(f"warning: {warning}", err=True)
    if absent := lint.without_templates(findings):
        typer.echo(f"{amount(absent, 'finding')} of templates that none of these files has; {TEMPLATES_HELP}", err=True)
    typer.echo(f"{amount(len(documents), 'document')}, {amount(len(findings), 'finding')}", err=True)
    if without:
        raise _nothing_in(without)
    raise typer.Exit(1 if findings else 0)


def _nothing_in(files: list[Path]) -> typer.Exit:
    return [
        refusal(f"nothing to check in {file}; name a file of YAML or JSON, or a folder that has some") for file in files
    ][-1]


def _chosen(selector: str) -> ApiNodes:
    try:
        return ApiNodes(selector)
    except ValueError as wrong:
        raise refusal(f"--api-pods-node-selector: {wrong}") from None


async def _cluster(kubeconfig: Path) -> "advice.Cluster":
    """What the manifests are tried on. A cluster may lack our kinds yet, or this user may not read them."""
    from remediator.kube.informers import Informers
    from remediator.kube.manifests.advice import Cluster

    async with asking(kubeconfig) as client:
        informers = Informers(client, SYSTEM, names.Namespaces())
        nodes, policies, budgets, templates = (
            informers.nodes,
            informers.policies,
            informers.budgets,
            informers.templates,
        )
        left_out = await informers.read(optional=("policies", "budgets", "templates"))
        for why in left_out:
            err.print(f"remediator: what is said of objects in the cluster may be incomplete: {why}")
        return Cluster(tuple(nodes), tuple(policies), None if left_out else tuple(budgets), tuple(templates))


class _LintFile(NamedTuple):
    """What a file has: its documents, and what of it cannot be read."""

    documents: "list[lint.Document]"
    unreadable: "list[lint.LintError]"


def _read_all(files: list[Path]) -> tuple[list[_LintFile], list[Path]]:
    """All files, and those below folders, each once however often it is named; and what has nothing to check."""
    known: dict[Path, _LintFile] = {}
    without: list[Path] = []
    for file in files:
        read = _read(file)
        if any(documents or unreadable for documents, unreadable in read.values()):
            known |= {path: each for path, each in read.items() if path not in known}
        else:
            without.append(file)
    return list(known.values()), without


def _read(file: Path) -> dict[Path, _LintFile]:
    """A file, or all manifests below a folder, each by the path that it has whatever it is called here."""
    from remediator.cli.rules_file import wrong_rules
    from remediator.kube.manifests import lint

    read, path = {}, file
    try:
        for path in _manifests(file):
            text = path.read_text("utf-8")
            documents, unreadable = lint.read(str(path), text)
            read[path.resolve()] = _LintFile(documents, [*unreadable, *wrong_rules(documents, text)])
    except OSError as failed:
        raise refusal(f"{failed.filename or path}: {failed.strerror}; name files that can be read") from None
    except UnicodeDecodeError:
        raise refusal(f"{path}: is not text in UTF-8; name files of YAML or JSON") from None
    return read


def _manifests(file: Path) -> list[Path]:
    """A file, or those below a folder; templates of Helm charts are none before Helm has filled them in.

    Raises OSError for a folder in it that cannot be read.
    """
    if not file.is_dir():
        return [file]
    below = []
    for folder, folders, inside in os.walk(file, onerror=_raise):
        if "Chart.yaml" in inside:
            folders[:] = [name for name in folders if name != "templates"]
        below += [Path(folder, name) for name in inside]
    return sorted(path for path in below if path.suffix in MANIFESTS)


def _raise(error: OSError) -> None:
    raise error
