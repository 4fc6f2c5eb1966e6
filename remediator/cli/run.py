"""`remediator run`: one replica of the controller."""

import asyncio
import contextlib
import random
import signal
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remediator import collector
from remediator.cli.common import (
    ApiPodsNodeSelector,
    Kubeconfig,
    Namespace,
    OperationsNamespace,
    Starts,
    Window,
    app,
    connect,
    err,
    refusal,
)
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.kube.runtime.backoff import full_jitter
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, check, decode
from remediator.settings import ExtenderScore, Level, Settings, identity

if TYPE_CHECKING:
    from remediator.app import Replica
    from remediator.kube.wire.http import HttpTransport


CertFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="Certificate to serve extender and webhook with. Left out: one of our own, in the Secret "
        f"{names.SERVING_SECRET}.",
    ),
]


async def _answers(transport: "HttpTransport") -> None:
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


async def _until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Run until done, or until SIGINT or SIGTERM cancels it; either way everything it started has ended."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _replica(client: Client, settings: Settings) -> "Replica":
    # Only here, because all parts of a replica take half a second to import, which other commands need not wait for.
    from remediator.app import Replica

    try:
        return Replica(client, settings, SYSTEM)
    except (OSError, ValueError) as wrong:
        raise refusal(wrong) from None


async def _run(kubeconfig: Path | None, settings: Settings) -> None:
    transport = await connect(kubeconfig)
    try:
        replica = _replica(Client(transport), settings)
        collector.keep()  # before anybody is served
        await _answers(transport)
        await replica.run()
    except OSError as wrong:  # of what it listens on; what its parts raise comes as a group
        raise refusal(wrong) from None
    finally:
        await transport.close()


@app.command()
def run(
    api_pods_node_selector: ApiPodsNodeSelector,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    operations_namespace: OperationsNamespace = names.OPERATIONS_NAMESPACE,
    listen: Annotated[str, typer.Option(help="host:port for probes and metrics.")] = "127.0.0.1:8080",
    listen_extender: Annotated[
        str | None, typer.Option(help="host:port for the scheduler extender. Left out: nobody may ask it.")
    ] = None,
    listen_webhook: Annotated[
        str | None, typer.Option(help="host:port for Alertmanager. Left out: no webhook.")
    ] = None,
    no_tls: Annotated[
        bool, typer.Option("--no-tls", help="Extender and webhook in clear text, on loopback only, to try them out.")
    ] = False,
    tls_cert_file: CertFile = None,
    tls_key_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Key of --tls-cert-file; both are reread.")
    ] = None,
    client_ca_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Who signs callers' certificates. Left out: our own authority."),
    ] = None,
    extender_token_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File with a bearer token that may ask the extender, too."),
    ] = None,
    extender_whole_nodes: Annotated[
        bool, typer.Option("--extender-whole-nodes", help="Take requests of 96 MiB instead of 4: nodeCacheCapable off.")
    ] = False,
    gang_topology: Annotated[
        str,
        typer.Option(help="Labels by which Pods of a gang keep together, the narrowest domain first. Empty: none."),
    ] = ",".join(names.DOMAINS),
    shared_gpus: Annotated[
        bool,
        typer.Option(
            "--shared-gpus", envvar="SHARED_GPUS", help="Filter and bind Pods that ask for aliyun.com/gpu-mem."
        ),
    ] = False,
    extender_score: Annotated[
        ExtenderScore, typer.Option(help="How nodes are scored; docs/packing.md says which is right when.")
    ] = "fgd",
    extender_workload: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="YAML file with the kinds of Pods. Left out: learnt from Pods."),
    ] = None,
    drains: Annotated[int, typer.Option(min=1, help="How many nodes may drain at once.")] = 50,
    starts: Starts = 10,
    window: Window = 600,
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
    github_app_id: Annotated[
        str, typer.Option(help="The id or the client id of a GitHub App, in place of a token.")
    ] = "",
    github_app_installation_id: Annotated[int, typer.Option(min=0, help="The number of the App's installation.")] = 0,
    github_app_key_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File with the App's private key, PEM.")
    ] = None,
    github_spacing: Annotated[
        float, typer.Option(min=0.0, max=3600.0, help="Seconds between two writes to GitHub.")
    ] = 1.0,
    webhook_token_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File with a bearer token that may post to the webhook, too."),
    ] = None,
    webhook_mib: Annotated[int, typer.Option(min=1, max=64, help="Largest post to the webhook, in MiB.")] = 16,
    device_taints: Annotated[
        bool,
        typer.Option(
            "--device-taints",
            help="Watch ResourceSlices (DRA, Kubernetes 1.37) and write what their taints say as Conditions of nodes.",
        ),
    ] = False,
    prometheus_url: Annotated[
        str,
        typer.Option(help="Prometheus that is asked what policies want confirmed; left out, their cases are held."),
    ] = "",
    prometheus_token_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File with a bearer token for Prometheus.")
    ] = None,
    prometheus_ca_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Who signs the certificate of Prometheus, PEM."),
    ] = None,
    name: Annotated[str, typer.Option(help="Who we are in the lease; new for each process.")] = "",
    log_level: Annotated[Level, typer.Option(case_sensitive=False, help="What is said at least.")] = "info",
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
) -> None:
    """Run the controller: watch node Conditions, open cases, repair nodes. Several replicas may run; one leads."""
    try:
        settings = Settings(
            identity=name or identity(),
            namespace=namespace,
            operations_namespace=operations_namespace,
            breaker=Breaker(starts, timedelta(seconds=window)),
            api_pods_node_selector=api_pods_node_selector,
            drains=drains,
            lease_duration=lease_seconds,
            lease_renew=lease_seconds * 2 / 3,
            lease_retry=lease_seconds * 2 / 15,
            listen=listen,
            listen_extender=listen_extender,
            listen_webhook=listen_webhook,
            no_tls=no_tls,
            tls_cert_file=tls_cert_file,
            tls_key_file=tls_key_file,
            client_ca_file=client_ca_file,
            extender_token_file=extender_token_file,
            extender_whole_nodes=extender_whole_nodes,
            gang_topology=gang_topology,
            shared_gpus=shared_gpus,
            extender_score=extender_score,
            extender_workload=extender_workload,
            routes=routes,
            github_url=github_url,
            github_token_file=github_token_file,
            github_app_id=github_app_id,
            github_app_installation_id=github_app_installation_id,
            github_app_key_file=github_app_key_file,
            github_spacing=github_spacing,
            webhook_token_file=webhook_token_file,
            webhook_mib=webhook_mib,
            device_taints=device_taints,
            prometheus_url=prometheus_url,
            prometheus_token_file=prometheus_token_file,
            prometheus_ca_file=prometheus_ca_file,
        )
    except ValueError as wrong:
        raise refusal(wrong) from None
    # Only here, because other commands neither log nor count.
    from remediator import metrics

    metrics.configure(log_level, log_json)
    asyncio.run(_until_ended(_run(kubeconfig, settings)))
