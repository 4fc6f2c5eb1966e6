"""The command line: run the controller, write the CRDs, check manifests, explain a node, show the demo."""

import asyncio
import contextlib
import importlib
import importlib.util
import io
import os
import random
import signal
import sys
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from remediator import metrics
from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.controller.explain import explain as explained
from remediator.controller.explain import snapshot
from remediator.core import names, retention
from remediator.core.breaker import Breaker
from remediator.kube.manifests import crd, lint
from remediator.kube.runtime.backoff import full_jitter
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, check, decode
from remediator.kube.wire.http import HttpTransport
from remediator.settings import Settings, identity

app = typer.Typer(
    help="Finds sick GPU nodes, repairs them where that is safe, and hands a person a complete case where it is not.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
out, err = (
    Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False) for stderr in (False, True)
)
MANIFESTS = (".yaml", ".yml", ".json")  # what `kubectl apply -f FOLDER` takes
SIMULATOR = "remediator_sim"  # a distribution of its own, which the product never imports
LONGEST_WINDOW = int(retention.AGE.total_seconds())  # what began before that is no longer known

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        envvar="KUBECONFIG", help="How to reach the cluster from outside. Left out: the Pod's own service account."
    ),
]

Namespace = Annotated[
    str,
    typer.Option(envvar="POD_NAMESPACE", help="The controller's namespace: of its Leases and of the pause annotation."),
]


def _refusal(why: object) -> typer.Exit:
    """Say in one sentence what cannot be done and what would help; to be raised, and exits 2."""
    err.print(f"remediator: {why}")
    return typer.Exit(2)


async def _connect(kubeconfig: Path | None) -> HttpTransport:
    """A connection from the kubeconfig, or from inside a Pod; one sentence and exit 2 where neither works."""
    try:
        return await (HttpTransport.from_kubeconfig(kubeconfig) if kubeconfig else HttpTransport.in_cluster())
    except Exception as failed:
        if kubeconfig is None:
            raise _refusal(
                f"no --kubeconfig given, and no service account of a Pod here ({failed}); give --kubeconfig FILE"
            ) from None
        why = f"kubeconfig {kubeconfig}: {str(failed) or type(failed).__name__}"
        raise _refusal(f"{why}; correct it, or give another with --kubeconfig or KUBECONFIG") from None


async def _answers(transport: HttpTransport) -> None:
    """Wait until the API server answers; say once that it does not."""
    failures = 0
    while True:
        try:
            decode(check(await transport.request("GET", "/version", timeout=10)).body, dict)
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
        return Replica(client, settings, SYSTEM)
    except (OSError, ValueError) as wrong:
        raise _refusal(wrong) from None


async def _run(kubeconfig: Path | None, settings: Settings) -> None:
    transport = await _connect(kubeconfig)
    try:
        replica = _replica(Client(transport), settings)
        await _answers(transport)
        await replica.run()
    except OSError as wrong:  # of what it listens on; what its parts raise comes as a group
        raise _refusal(wrong) from None
    finally:
        await transport.close()


@app.command()
def run(
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    operations_namespace: Annotated[
        str, typer.Option(envvar="OPERATIONS_NAMESPACE", help="The namespace in which the Pods of operations run.")
    ] = names.OPERATIONS_NAMESPACE,
    listen: Annotated[
        str, typer.Option(help="host:port for probes, metrics, the scheduler extender and webhooks.")
    ] = "127.0.0.1:8080",
    drains: Annotated[int, typer.Option(min=1, help="How many nodes may drain at once.")] = 50,
    starts: Annotated[int, typer.Option(min=1, help="Most disruptive starts in the whole fleet in --window.")] = 10,
    window: Annotated[
        int, typer.Option(min=1, max=LONGEST_WINDOW, help="Seconds over which --starts are counted.")
    ] = 600,
    lease_seconds: Annotated[
        float, typer.Option(min=1.0, max=3600.0, help="How long the leader's lease lasts without being renewed.")
    ] = 15.0,
    routes: Annotated[
        Path | None, typer.Option(help="YAML file that says which repository issues go to. Left out: no tickets.")
    ] = None,
    github_url: Annotated[
        str, typer.Option(help="GitHub's REST API; https://HOST/api/v3 for an Enterprise Server.")
    ] = "https://api.github.com",
    github_token_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File with a token that may write issues.")
    ] = None,
    github_spacing: Annotated[
        float, typer.Option(min=0.0, max=3600.0, help="Seconds between two writes to GitHub.")
    ] = 1.0,
    webhook_token_file: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="File with the bearer token of Alertmanager. Left out: no webhook."
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="Who we are in the lease; new for each process.")] = "",
    log_level: Annotated[metrics.Level, typer.Option(case_sensitive=False, help="What is said at least.")] = "info",
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
) -> None:
    """Run the controller: watch node Conditions, open cases, repair nodes. Several replicas may run; one leads."""
    try:
        settings = Settings(
            identity=name or identity(),
            namespace=namespace,
            operations_namespace=operations_namespace,
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
    except ValueError as wrong:
        raise _refusal(wrong) from None
    metrics.configure(log_level, log_json)
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
            _write(output, filename, text)


def _write(folder: Path, filename: str, text: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / filename).write_text(text)
    except OSError as failed:
        why = f"--output {folder}: {failed.strerror or failed}"
        raise _refusal(f"{why}; name a folder that may be written, or none for stdout") from None


@app.command(name="lint")
def lint_files(
    files: Annotated[
        list[Path], typer.Argument(help="Files of YAML or JSON, or folders of .yaml, .yml and .json files.")
    ],
    known: Annotated[
        list[str] | None, typer.Option("--template", help="A NodeOperationTemplate that is in the cluster already.")
    ] = None,
) -> None:
    """Check policies, budgets and templates before they are applied. Exit 1 where anything is wrong."""
    documents: list[lint.Document] = []
    findings: list[lint.Finding] = []
    for file in files:
        read, wrong = _read(file)
        if not read and not wrong:
            raise _refusal(f"nothing to check in {file}; name a file of YAML or JSON, or a folder that has some")
        documents += read
        findings += wrong
    findings += lint.lint(documents, frozenset(known or ()))
    for finding in findings:
        typer.echo(str(finding))
    typer.echo(f"{len(documents)} documents, {len(findings)} findings", err=True)
    raise typer.Exit(1 if findings else 0)


def _read(file: Path) -> tuple[list[lint.Document], list[lint.Finding]]:
    """The documents of a file, or of all manifests below a folder, and what cannot be read in them."""
    documents, findings, path = [], [], file
    try:
        for path in _manifests(file):
            read, wrong = lint.read(str(path), path.read_text("utf-8"))
            documents += read
            findings += wrong
    except OSError as failed:
        raise _refusal(f"{failed.filename or path}: {failed.strerror}; name files that can be read") from None
    except UnicodeDecodeError:
        raise _refusal(f"{path}: is not text in UTF-8; name files of YAML or JSON") from None
    return documents, findings


def _manifests(file: Path) -> list[Path]:
    """Raises OSError for a folder in it that cannot be read."""
    if not file.is_dir():
        return [file]
    below = (Path(folder, name) for folder, _, names in os.walk(file, onerror=_raise) for name in names)
    return sorted(path for path in below if path.suffix in MANIFESTS)


def _raise(error: OSError) -> None:
    raise error


@app.command()
def explain(
    node: Annotated[str, typer.Argument(help="Name of the node.")],
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
) -> None:
    """Say why a node is, or is not, being repaired. Reads the cluster, changes nothing."""
    try:
        namespaces = Settings(namespace=namespace).namespaces
    except ValueError as wrong:
        raise _refusal(wrong) from None
    raise typer.Exit(asyncio.run(_explain(node, kubeconfig, namespaces)))


async def _explain(name: str, kubeconfig: Path | None, namespaces: names.Namespaces) -> int:
    transport = await _connect(kubeconfig)
    try:
        seen = await snapshot(Client(transport), namespaces)
    except errors.NotFound as failed:
        remedy = "is it an API server, and are Remediator's kinds in it (`remediator crds`)?"
        raise _refusal(f"the server of the kubeconfig says {failed.message!r}; {remedy}") from None
    except errors.ApiError as failed:
        raise _refusal(failed.message) from None
    finally:
        await transport.close()
    node = seen.nodes.get(name)
    if node is None:
        err.print(f"remediator: no node {name} in the cluster")
        return 1
    for line in explained(seen, node, Breaker(), SYSTEM.now()):
        out.print(line, markup=False)
    return 0


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def demo(context: typer.Context) -> None:
    """Let a simulated fleet fall ill and be repaired, on this machine. `remediator demo --help` lists the options."""
    if importlib.util.find_spec(SIMULATOR) is None:
        raise _refusal("the simulator is not installed: pip install 'remediator[sim]'")
    raise typer.Exit(importlib.import_module(f"{SIMULATOR}.scenarios.__main__").main(context.args))


def main() -> None:
    """The entry point."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name may be no text; stderr does so of itself
    app()
