"""The command line: run the controller, write the CRDs, check manifests, explain a node."""

import asyncio
import contextlib
import random
import signal
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from remediator import telemetry
from remediator.controller.explain import explain as explained
from remediator.controller.explain import snapshot
from remediator.controller.perform import now
from remediator.core.breaker import Breaker
from remediator.kube import crd, errors, lint
from remediator.kube.backoff import full_jitter
from remediator.kube.client import Client, check
from remediator.kube.http import HttpTransport
from remediator.replica import Replica
from remediator.settings import Settings, identity

app = typer.Typer(
    help="Finds sick GPU nodes, repairs them where that is safe, and hands a person a complete case where it is not.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
out, err = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True, highlight=False)

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        envvar="KUBECONFIG", help="How to reach the cluster from outside. Left out: the Pod's own service account."
    ),
]


async def _connect(kubeconfig: Path | None) -> HttpTransport:
    """A connection from the kubeconfig, or from inside a Pod; one sentence and exit 2 where neither works."""
    try:
        return await (HttpTransport.from_kubeconfig(kubeconfig) if kubeconfig else HttpTransport.in_cluster())
    except Exception as failed:
        where = f"kubeconfig {kubeconfig}" if kubeconfig else "no --kubeconfig given, and this is not a Pod"
        err.print(f"remediator: {where}: {failed}")
        raise typer.Exit(2) from None


async def _answers(transport: HttpTransport) -> None:
    """Wait until the API server answers; say once that it does not."""
    failures = 0
    while True:
        try:
            check(await transport.request("GET", "/version", timeout=10))
        except errors.ApiError as failed:
            if failures == 0:
                err.print(f"remediator: {failed.message}; trying again until it answers")
            await asyncio.sleep(full_jitter(failures, base=0.8, cap=30.0, rand=random.random))
            failures += 1
        else:
            return


async def _until_told(work: Coroutine[Any, Any, None]) -> None:
    """Run until done, or until SIGINT or SIGTERM cancels it; either way everything it started has ended."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _replica(client: Client, settings: Settings) -> Replica:
    try:
        return Replica(client, settings)
    except (OSError, ValueError) as wrong:
        err.print(f"remediator: {wrong}")
        raise typer.Exit(2) from None


async def _run(kubeconfig: Path | None, settings: Settings) -> None:
    transport = await _connect(kubeconfig)
    try:
        replica = _replica(Client(transport), settings)
        await _answers(transport)
        await replica.run()
    finally:
        await transport.close()


@app.command()
def run(
    kubeconfig: Kubeconfig = None,
    listen: Annotated[
        str, typer.Option(help="host:port for probes, metrics, the scheduler extender and webhooks.")
    ] = "127.0.0.1:8080",
    drains: Annotated[int, typer.Option(min=1, help="How many nodes may drain at once.")] = 50,
    starts: Annotated[int, typer.Option(min=1, help="Most disruptive starts in the whole fleet in --window.")] = 10,
    window: Annotated[int, typer.Option(min=1, help="Seconds over which --starts are counted.")] = 600,
    lease_seconds: Annotated[
        float, typer.Option(min=1.0, help="How long the leader's lease lasts without being renewed.")
    ] = 15.0,
    routes: Annotated[
        Path | None, typer.Option(help="YAML file that says which repository issues go to. Left out: no tickets.")
    ] = None,
    github_url: Annotated[
        str, typer.Option(help="GitHub's REST API; https://HOST/api/v3 for an Enterprise Server.")
    ] = "https://api.github.com",
    github_token_file: Annotated[Path | None, typer.Option(help="File with a token that may write issues.")] = None,
    github_spacing: Annotated[float, typer.Option(min=0.0, help="Seconds between two writes to GitHub.")] = 1.0,
    webhook_token_file: Annotated[
        Path | None, typer.Option(help="File with the bearer token of Alertmanager. Left out: no webhook.")
    ] = None,
    name: Annotated[str, typer.Option(help="Who we are in the lease; new for each process.")] = "",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
) -> None:
    """Run the controller: watch node Conditions, open cases, repair nodes. Several replicas may run; one leads."""
    telemetry.configure(log_level, log_json)
    settings = Settings(
        identity=name or identity(),
        breaker=Breaker(starts, timedelta(seconds=window)),
        drains=drains,
        lease_duration=lease_seconds,
        lease_renew=lease_seconds * 2 / 3,
        lease_retry=lease_seconds * 2 / 15,
        listen=listen,
        routes=routes,
        github_url=github_url,
        github_token_file=github_token_file,
        github_spacing=github_spacing,
        webhook_token_file=webhook_token_file,
    )
    asyncio.run(_until_told(_run(kubeconfig, settings)))


@app.command()
def crds(
    output: Annotated[Path | None, typer.Option(help="Folder to write one file per kind into; else to stdout.")] = None,
) -> None:
    """Write the CustomResourceDefinitions of Remediator's kinds."""
    for filename, text in crd.render().items():
        if output is None:
            typer.echo(f"---\n{text}", nl=False)
        else:
            output.mkdir(parents=True, exist_ok=True)
            (output / filename).write_text(text)


@app.command(name="lint")
def lint_files(
    files: Annotated[list[Path], typer.Argument(help="YAML files, or folders of them.")],
    known: Annotated[
        list[str] | None, typer.Option("--template", help="A NodeOperationTemplate that is in the cluster already.")
    ] = None,
) -> None:
    """Check policies, budgets and templates before they are applied. Exit 1 where anything is wrong."""
    documents, findings = [], []
    for path in (found for file in files for found in (sorted(file.rglob("*.yaml")) if file.is_dir() else [file])):
        try:
            read, wrong = lint.read(str(path), path.read_text())
        except (OSError, UnicodeDecodeError) as failed:
            err.print(f"remediator: {path}: {failed}")
            raise typer.Exit(2) from None
        documents += read
        findings += wrong
    findings += lint.lint(documents, frozenset(known or ()))
    for finding in findings:
        typer.echo(str(finding))
    typer.echo(f"{len(documents)} documents, {len(findings)} findings", err=True)
    raise typer.Exit(1 if findings else 0)


@app.command()
def explain(node: Annotated[str, typer.Argument(help="Name of the node.")], kubeconfig: Kubeconfig = None) -> None:
    """Say why a node is, or is not, being repaired. Reads the cluster, changes nothing."""
    raise typer.Exit(asyncio.run(_explain(node, kubeconfig)))


async def _explain(name: str, kubeconfig: Path | None) -> int:
    transport = await _connect(kubeconfig)
    try:
        seen = await snapshot(Client(transport))
    except errors.ApiError as failed:
        err.print(f"remediator: {failed.message}")
        return 2
    finally:
        await transport.close()
    node = seen.nodes.get(name)
    if node is None:
        err.print(f"remediator: no node {name} in the cluster")
        return 1
    for line in explained(seen, node, Breaker(), now()):
        out.print(line, markup=False)
    return 0


def main() -> None:
    """The entry point."""
    app()
