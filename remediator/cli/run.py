"""`remediator run`: one replica of the controller."""

import asyncio
import contextlib
import random
import signal
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from remediator import collector
from remediator.cli.common import (
    ApiPodsNodeSelector,
    Kubeconfig,
    Namespace,
    OperationsNamespace,
    app,
    connect,
    err,
    refusal,
)
from remediator.cli.groups import with_groups
from remediator.cli.run_options import (
    AlertmanagerOptions,
    BundleStore,
    DeviceTaints,
    ExtenderOptions,
    LimitOptions,
    LogOptions,
    NodeLeases,
    PrometheusOptions,
    RequestsFrom,
    ServingOptions,
    TicketOptions,
)
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.kubernetes_version import too_old
from remediator.kube.runtime.backoff import full_jitter
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, check, decode
from remediator.settings import Settings, identity

if TYPE_CHECKING:
    from remediator.app import Replica
    from remediator.kube.wire.http import HttpTransport


async def answers(transport: "HttpTransport") -> str:
    """Wait until the API server answers; say once that it does not. Return its version, "" where it tells none."""
    failures = 0
    while True:
        try:
            version = decode(check(await transport.request("GET", "/version", timeout=10)).body, dict)
        except errors.ApiError as failed:
            if failures == 0:
                err.print(f"remediator: {failed.message}; trying again until it answers")
            await asyncio.sleep(full_jitter(failures, base=0.8, cap=30.0, rand=random.random))
            failures += 1
        else:
            return str(version.get("gitVersion") or "")


async def until_ended(work: Coroutine[Any, Any, None]) -> None:
    """Run until done, or until SIGINT or SIGTERM cancels it; either way everything it started has ended."""
    task = asyncio.ensure_future(work)
    _on_signal(task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _on_signal(react: Callable[[], object]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, react)


async def _until_handed_over(replica: "Replica") -> None:
    """The first signal asks it to hand over and to end; one more ends it at once, as `until_ended` does."""
    work = asyncio.ensure_future(replica.run())
    _on_signal(lambda: replica.end() or work.cancel())
    await work


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
        old = too_old(await answers(transport))
        if old:
            raise refusal(old)
        await _until_handed_over(replica)
    except OSError as wrong:  # of what it listens on; what its parts raise comes as a group
        raise refusal(wrong) from None
    finally:
        await transport.close()


@app.command()
@with_groups
def run(
    *,
    api_pods_node_selector: ApiPodsNodeSelector,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    operations_namespace: OperationsNamespace = names.OPERATIONS_NAMESPACE,
    serving: ServingOptions,
    extender: ExtenderOptions,
    limits: LimitOptions,
    tickets: TicketOptions,
    device_taints: DeviceTaints = False,
    requests_from: RequestsFrom = None,
    node_leases: NodeLeases = "",
    bundle_store: BundleStore = None,
    prometheus: PrometheusOptions,
    alertmanager: AlertmanagerOptions,
    name: Annotated[str, typer.Option(help="Who we are in the lease; new for each process.")] = "",
    log: LogOptions,
) -> None:
    """Run the controller: watch node Conditions, open cases, repair nodes. Several replicas may run; one leads."""
    try:
        settings = Settings(
            identity=name or identity(),
            namespace=namespace,
            operations_namespace=operations_namespace,
            api_pods_node_selector=api_pods_node_selector,
            device_taints=device_taints,
            requests_from=tuple(requests_from or ()),
            node_leases=node_leases,
            bundle_store=bundle_store,
            **limits.settings,
            **asdict(serving),
            **asdict(extender),
            **asdict(tickets),
            **asdict(prometheus),
            **alertmanager.settings,
        )
    except ValueError as wrong:
        raise refusal(wrong) from None
    # Only here, because other commands neither log nor count.
    from remediator import metrics

    metrics.configure(log.log_level, log.log_json, SYSTEM)
    asyncio.run(until_ended(_run(kubeconfig, settings)))
