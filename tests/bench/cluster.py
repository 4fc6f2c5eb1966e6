"""A control plane that is ready for a benchmark: manifests, nodes, and who may count what."""

import subprocess
from pathlib import Path

from deploy.images.programs import binary
from remediator.kube import api
from remediator.kube.wire.client import Client, Kind, check
from remediator_sim.plain import condition_status
from tests.bench import floor
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import create_nodes
from tests.harness.kinds import NODES
from tests.harness.waiting import until

ROOT = Path(__file__).parents[2]
CONTROLLER = "system:serviceaccount:remediator-system:remediator"
ACCOUNTS = ["system:serviceaccounts", "system:serviceaccounts:remediator-system"]
COPIED = ("noderemediations", "nodedisruptionbudgets")
LEFT_OUT = ("drain", "collect-diagnostics")
FLOOR_BUDGET: Kind[dict] = Kind(floor.GROUP, "v1alpha1", api.BUDGET.plural, api.BUDGET.name, dict)
READY_SECONDS = 120.0


def apply(plane: ControlPlane) -> None:
    """Everything in deploy/, then what the benchmark adds and leaves out."""
    kubectl(plane, "apply", "-k", str(ROOT / "deploy" / "crds"))
    copies = [(ROOT / "deploy" / "crds" / f"{plural}.yaml").read_text() for plural in COPIED]
    kubectl(
        plane, "apply", "-f", "-", stdin="---\n".join(text.replace("remediator.dev", floor.GROUP) for text in copies)
    )
    kubectl(plane, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    kubectl(plane, "apply", "-k", str(ROOT / "deploy"))
    kubectl(plane, "delete", "nopt", *LEFT_OUT)
    kubectl(plane, "apply", "-f", str(Path(__file__).with_name("manifests.yaml")))


def kubectl(plane: ControlPlane, *arguments: str, stdin: str | None = None) -> None:
    """Run kubectl as administrator. Raises CalledProcessError; what it says of the error goes to stderr."""
    command = [str(binary("kubectl")), "--kubeconfig", str(plane.kubeconfig), *arguments]
    subprocess.run(command, input=stdin, stdout=subprocess.DEVNULL, text=True, timeout=120, check=True)


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
