"""A control plane that is ready for a benchmark: manifests, nodes, and who may count what."""

import re
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from deploy.images.programs import binary
from remediator.core.names import EVICTIONS
from remediator.kube import api
from remediator.kube.wire.client import Client, Kind, check
from remediator.kube.wire.http import HttpTransport
from remediator_sim.plain import condition_status
from tests.bench import features, floor
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import create_nodes
from tests.harness.kinds import NODES
from tests.harness.waiting import until

ROOT = Path(__file__).parents[2]
CONTROLLER = "system:serviceaccount:remediator-system:remediator"
ACCOUNTS = ["system:serviceaccounts", "system:serviceaccounts:remediator-system"]
COPIED = ("noderemediations", "nodedisruptionbudgets")
COPIED_ADMISSION = ("controller", "users")  # what it asks of writers of nodes and of these kinds
LEFT_OUT = ("drain", "collect-diagnostics")
WITHOUT_IT = ("cloud-maintenance",)  # policies that name one of these
FLOOR_BUDGET: Kind[dict] = Kind(floor.GROUP, "v1alpha1", api.BUDGET.plural, api.BUDGET.name, dict)
READY_SECONDS = 120.0
MANIFESTS = Path(__file__).with_name("manifests.yaml")


def apply(plane: ControlPlane) -> None:
    """Everything in deploy/, then what the benchmark adds and leaves out."""
    kubectl(plane, "apply", "-k", str(ROOT / "deploy" / "crds"))
    kubectl(plane, "apply", "-f", "-", stdin=_of_the_floor("crds", COPIED))
    kubectl(plane, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    kubectl(plane, "apply", "-k", str(ROOT / "deploy"))
    kubectl(plane, "apply", "-f", "-", stdin=_of_the_floor("admission", COPIED_ADMISSION))
    kubectl(plane, "delete", "validatingwebhookconfiguration", EVICTIONS)  # nobody plays the Service that it asks
    kubectl(plane, "delete", "nopt", *LEFT_OUT)
    kubectl(plane, "delete", "rp", *WITHOUT_IT)
    kubectl(plane, "apply", "-f", str(MANIFESTS), "-f", str(features.FILE))


def _of_the_floor(folder: str, files: Sequence[str]) -> str:
    """Manifests for the floor: of its kinds, and of admission that asks its account what ours asks the controller."""
    text = "---\n".join((ROOT / "deploy" / folder / f"{name}.yaml").read_text() for name in files)
    text = text.replace("remediator.dev", floor.GROUP).replace(CONTROLLER, "bench-floor")
    return re.sub(r"(name|policyName): remediator-", r"\1: bench-remediator-", text)


def kubectl(plane: ControlPlane, *arguments: str, stdin: str | None = None) -> str:
    """What kubectl says to an administrator. Raises CalledProcessError; what it says of the error goes to stderr."""
    command = [str(binary("kubectl")), "--kubeconfig", str(plane.kubeconfig), *arguments]
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout


@asynccontextmanager
async def as_controller(plane: ControlPlane) -> AsyncIterator[Client]:
    """Speaks as the account of the controller: nobody else may write what it decides on."""
    transport = await HttpTransport.from_kubeconfig(plane.kubeconfig_for(CONTROLLER, ACCOUNTS))
    try:
        yield Client(transport)
    finally:
        await transport.close()


def in_pod(plane: ControlPlane, folder: Path) -> dict[str, str]:
    """The variables of the controller in a Pod, whose service account is mounted at `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(kubectl(plane, "create", "token", "remediator", "-n", "remediator-system"))
    (folder / "ca.crt").write_bytes(plane.ca_file.read_bytes())
    host, port = plane.url.removeprefix("https://").split(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "TOKEN_DIR": str(folder)}


async def populate(client: Client, count: int) -> list[str]:
    """The ledger of the floor, and `count` nodes that KWOK has made Ready; gives their names."""
    spec = {"selector": {"matchLabels": {"floor": "true"}}, "maxUnavailable": "100%"}
    body = {"apiVersion": FLOOR_BUDGET.api_version, "kind": FLOOR_BUDGET.name, "metadata": {"name": floor.BUDGET}}
    await client.create(FLOOR_BUDGET, {**body, "spec": spec})
    names = await create_nodes(client, count)

    async def ready() -> bool:
        return all(condition_status(node, "Ready") == "True" for node in await client.list_all(NODES))

    await until(ready, READY_SECONDS)
    return names


async def works(client: Client) -> bool:
    """Whether a controller leads and has said so of everything that it must see before it can act."""
    policies, budgets = await client.list_all(api.POLICY), await client.list_all(api.BUDGET)
    ready = [
        any(found.type == "Ready" and found.status == "True" for found in one.status.conditions) for one in policies
    ]
    return all([*ready, *(one.status.adopted_uid == one.metadata.uid for one in budgets)])


async def writes(client: Client) -> dict[str, int]:
    """Writes of the controller that the API server has counted: those of its Lease, and all others."""
    reply = check(await client.transport.request("GET", "/metrics", timeout=60))
    lines = [line for line in reply.body.decode().splitlines() if line.startswith(_COUNTED)]
    return {flow: sum(int(float(line.split()[-1])) for line in lines if f'"bench-{flow}"' in line) for flow in _FLOWS}


_COUNTED, _FLOWS = "apiserver_flowcontrol_dispatched_requests_total", ("leases", "writes")
