"""A real Kueue beside a control plane: its own manifests, rights and webhooks, its manager as a process."""

import asyncio
import base64
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import requests
import yaml

from deploy.images.programs import binary, manifests
from remediator.kube.wire.client import Client
from remediator_sim.accounts import token
from remediator_sim.kubeconfig import write_kubeconfig
from remediator_sim.manifests import LOADER
from remediator_sim.ports import free_ports
from tests.cluster.control_plane import HOST, ControlPlane
from tests.cluster.processes import Child
from tests.harness.kinds import SECRETS, Object
from tests.harness.waiting import until

SPACE, ACCOUNT = "kueue-system", "kueue-controller-manager"
SECRET, SERVICE = "kueue-webhook-server-cert", "kueue-webhook-service"
# The manager runs here as a process, and nothing scrapes it or asks for its queues.
LEFT_OUT = {"APIService", "ConfigMap", "Deployment"}
SECONDS = 60.0


@asynccontextmanager
async def kueue(plane: ControlPlane, admin: Client, folder: Path) -> AsyncIterator[None]:
    """Kueue as its manifests install it, until the block is left; jobs of `batch` are all that it looks after."""
    webhook, health = free_ports(2)
    documents = [reached(document, webhook) for document in shipped() if kept(document)]
    apply(plane, documents)
    granted = await token(admin, ACCOUNT, SPACE)
    kubeconfig = write_kubeconfig(folder, "kueue", plane.url, granted, plane.ca_file)
    certificates = folder / "kueue-certificates"
    certificates.mkdir()
    config = folder / "kueue.json"
    config.write_text(json.dumps(configuration(webhook, health, certificates)))
    child = Child([binary("kueue"), f"--config={config}", f"--kubeconfig={kubeconfig}"], folder / "kueue.log")
    try:
        await mount(admin, child, certificates)
        await asyncio.to_thread(child.wait_until, lambda: answers(f"http://{HOST}:{health}/readyz"), SECONDS)
        yield
    finally:
        child.stop()


def shipped() -> list[Object]:
    """What `kubectl apply -k config/default` installs."""
    command = [binary("kubectl"), "kustomize", manifests() / "default"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return [document for document in yaml.load_all(done.stdout, LOADER) if document]


def kept(document: Object) -> bool:
    """Whether it is of use without a Pod of the manager."""
    of_another = document["kind"] == "Service" and document["metadata"]["name"] != SERVICE
    return document["kind"] not in LEFT_OUT and not of_another


def reached(document: Object, port: int) -> Object:
    """The same, the webhooks at a port of this machine: the API server follows the name that the Service has."""
    if document["kind"] == "Service":
        return {**document, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    for service in services(document):
        service["port"] = port
    return document


def services(part: Any) -> list[Object]:
    """Each reference to a Service in the clientConfig of a webhook."""
    if isinstance(part, list):
        return [service for each in part for service in services(each)]
    if not isinstance(part, dict):
        return []
    mine = [part["clientConfig"]["service"]] if "service" in (part.get("clientConfig") or {}) else []
    return mine + [service for each in part.values() for service in services(each)]


def apply(plane: ControlPlane, documents: list[Object]) -> None:
    """Its kinds are larger than what kubectl would note of them, hence --server-side."""
    command = [binary("kubectl"), f"--kubeconfig={plane.kubeconfig}", "apply", "--server-side", "-f", "-"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def configuration(webhook: int, health: int, certificates: Path) -> Object:
    """Kueue's defaults, everything on loopback."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": SPACE,
        "health": {"healthProbeBindAddress": f"{HOST}:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": HOST, "port": webhook, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True, "webhookServiceName": SERVICE, "webhookSecretName": SECRET},
        "integrations": {"frameworks": ["batch/job"]},
        "featureGates": {"VisibilityOnDemand": False},  # a server that listens on all addresses
    }


async def mount(admin: Client, child: Child, folder: Path) -> None:
    """The certificates that Kueue writes into a Secret, as files: what the kubelet does for its Pod."""

    async def written() -> dict[str, str]:
        child.check()
        data: dict[str, str] = (await admin.get(SECRETS, SECRET, namespace=SPACE)).get("data") or {}
        return data if "tls.crt" in data else {}

    for name, text in (await until(written, SECONDS)).items():
        (folder / name).write_bytes(base64.b64decode(text))


def answers(url: str) -> bool:
    """Whether it says that it is ready."""
    try:
        return requests.get(url, timeout=2).ok
    except requests.RequestException:
        return False
