"""`remediator run`: one replica of the controller."""

from dataclasses import asdict
from typing import Annotated

import typer

from remediator import process
from remediator.cli.common import (
    ApiPodsNodeSelector,
    Kubeconfig,
    Namespace,
    OperationsNamespace,
    app,
    refusal,
)
from remediator.cli.groups import with_groups
from remediator.cli.run_options import (
    DRIFT_LABELS,
    AlertmanagerOptions,
    BundleStore,
    DeviceTaints,
    DriftLabels,
    ExtenderOptions,
    LimitOptions,
    LogOptions,
    NodeLeases,
    PrometheusOptions,
    RequestsFrom,
    ServingOptions,
    TicketOptions,
)
from remediator.core import names
from remediator.settings import Settings, identity

begin = process.run  # what is done with the options; a command line that only reads them has another


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
    drift_labels: DriftLabels = DRIFT_LABELS,
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
            drift_labels=drift_labels,
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
    try:
        begin(process.RunOptions(kubeconfig, settings, log.log_level, log.log_json))
    except process.Unrunnable as wrong:
        raise refusal(wrong) from None
