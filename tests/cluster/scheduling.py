"""A real kube-scheduler of a test's own beside a real control plane, and the extender that it asks."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from aiohttp import web

from deploy.images.programs import binary
from remediator.core import names
from remediator.kube import api
from remediator.kube.informers import Informers
from remediator.kube.manifests import crd
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator.metrics import REGISTRY
from remediator.scheduler.extender import Extender
from remediator.scheduler.reasons import VerdictReason
from remediator.web import certificates, gpushare
from remediator.web import extender as page
from remediator.web.caller import Callers
from remediator.web.endpoints import EXTENDER, KUBE_SCHEDULER
from remediator.web.listener import Endpoint
from remediator_sim.ports import free_ports
from tests.cluster.control_plane import HOST, ControlPlane
from tests.cluster.nodes import gpu_node
from tests.cluster.processes import Child
from tests.harness.endpoints import HOUR, NOW, authority, server_context
from tests.harness.kinds import ACCOUNTS, CASES, CRDS, NAMESPACES, NODES, PODS, POLICIES, Object
from tests.harness.late_news import LateNews
from tests.harness.replica import an_extender, at_work, verdict_of
from tests.harness.scheduler import GPU
from tests.harness.waiting import until

DEPLOY = Path(__file__).parents[2] / "deploy"
CONFIG, SHARED_CONFIG = (DEPLOY / folder / "scheduler-config.yaml" for folder in ("scheduler", "shared-gpus"))
VERSIONS = ("kube-scheduler", "kube-scheduler-1.34")
BOTH = ("sick", "well")
CONDITION = "GpuLost"
CORDON = "node.kubernetes.io/unschedulable"  # the taint that the cluster adds
OURS = [{"key": key, "operator": "Exists"} for key in (names.CASE_TAINT, names.DEGRADED_TAINT, CORDON)]
SECONDS = 60.0
Made = Callable[[Client], tuple[Extender, Informers]]


@dataclass(frozen=True)
class Setting:
    """A control plane with nodes of this test's own, and an extender that answers on `port`."""

    plane: ControlPlane
    client: Client
    extender: Extender
    news: asyncio.Event
    port: int
    space: str
    nodes: list[str] = field(default_factory=list)

    @property
    def mark(self) -> str:
        """What the names of all that is this test's own begin with."""
        return self.space

    def node(self, short: str) -> str:
        """The name of one of its nodes."""
        return f"{self.mark}-{short}"

    def elsewhere(self) -> "Setting":
        """The same with a port on which nobody answers."""
        return replace(self, port=free_ports(1)[0])


@asynccontextmanager
async def set_up(plane: ControlPlane, made: Made = an_extender) -> AsyncIterator[Setting]:
    """An extender that answers, and a policy that only watches; what a test makes goes with it."""
    mark = f"s{uuid.uuid4().hex[:6]}"
    transport = LateNews(await HttpTransport.from_kubeconfig(plane.kubeconfig), (NODES.path(),))
    client, (port,) = Client(transport), free_ports(1)
    await _define(client, api.POLICY, api.CASE, api.GPU_LEDGER)
    await client.create(POLICIES, _policy(mark))
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": mark}})
    extender, informers = made(client)
    found = Setting(plane, client, extender, transport.arrives, port, mark)
    try:
        async with answering(found), at_work(informers.run(), extender.run()):
            await until(extender.ready, SECONDS)
            await until(lambda: _has_account(found), SECONDS)
            yield found
    finally:
        await _clear(found)
        await transport.close()


@asynccontextmanager
async def answering(setting: Setting) -> AsyncIterator[None]:
    """The extender answers on the port of the setting until the block is left."""
    app, context, extender = web.Application(), server_context(), setting.extender
    app.add_routes(page.routes(extender, page.bodies(False)))
    if extender.shared is not None:
        app.add_routes(gpushare.routes(extender, extender.shared, page.bodies(False)))
    endpoint = Endpoint("extender", app, EXTENDER, Callers(KUBE_SCHEDULER, None), lambda: context)
    async with endpoint.served(f"{HOST}:{setting.port}"):
        yield


async def _define(client: Client, *kinds: Kind[Any]) -> None:
    """Kinds of ours, if nobody has defined them yet."""
    for kind in kinds:
        with suppress(errors.AlreadyExists):
            await client.create(CRDS, crd.crd(kind))
        await until(lambda kind=kind: _serves(client, kind), SECONDS)


async def _serves(client: Client, kind: Kind[Any]) -> bool:
    try:
        await client.list_all(kind)
    except errors.NotFound:
        return False
    return True


def _policy(mark: str) -> Object:
    spec = {
        "mode": "Paused",
        "nodeSelector": {"matchLabels": {"mark": mark}},
        "when": [{"condition": CONDITION, "for": "1h"}],
        "ladder": [{"operation": "reboot"}],
    }
    return {"apiVersion": POLICIES.api_version, "kind": POLICIES.name, "metadata": {"name": mark}, "spec": spec}


async def add_node(setting: Setting, short: str, room: Mapping[str, str | None] | None = None, **meta: Object) -> None:
    """A node that is well. `room`: more that it offers, None for what it does not; `meta`: labels and annotations."""
    name = setting.node(short)
    setting.nodes.append(name)
    body = gpu_node(0)
    body["metadata"]["name"] = name
    body["metadata"]["labels"] = {"kubernetes.io/hostname": name, "mark": setting.mark, **meta.get("labels", {})}
    body["metadata"]["annotations"] |= meta.get("annotations", {})
    offers = body["status"]["capacity"] | (room or {})
    offers = {key: count for key, count in offers.items() if count is not None}
    body["status"] |= {"capacity": offers, "allocatable": offers}
    await setting.client.create(NODES, body)
    await say(setting, short, "False")

    async def ready() -> bool:
        """Known to us, and free of the taint that every new node has until the cluster has seen that it is ready."""
        tainted = (await setting.client.get(NODES, name))["spec"].get("taints")
        return not tainted and verdict_of(setting.extender, name) is VerdictReason.FIT

    await until(ready, SECONDS)


async def say(setting: Setting, short: str, status: str, condition: str = CONDITION) -> None:
    """What the detector of a node says from now on."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = {"type": condition, "status": status, "lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
    body = {"status": {"conditions": [found]}}
    await setting.client.patch(NODES, setting.node(short), body, subresource="status", content_type=STRATEGIC_PATCH)


async def fall_sick(setting: Setting) -> None:
    """The node `sick` is, and the extender knows."""
    await say(setting, "sick", "True")
    await until(lambda: verdict_of(setting.extender, setting.node("sick")) is VerdictReason.UNHEALTHY, SECONDS)


async def _has_account(setting: Setting) -> bool:
    try:
        await setting.client.get(ACCOUNTS, "default", namespace=setting.space)
    except errors.NotFound:
        return False
    return True


async def _clear(setting: Setting) -> None:
    """Other tests of the session use the same control plane."""
    for pod in await setting.client.list_all(PODS, namespace=setting.space):
        await vanish(setting, pod["metadata"]["name"])
    made = ((POLICIES, setting.mark), (CASES, setting.mark), (NAMESPACES, setting.space))
    for kind, name in (*((NODES, node) for node in setting.nodes), *made):
        with suppress(errors.NotFound):
            await setting.client.delete(kind, name)


async def vanish(setting: Setting, pod: str) -> None:
    """The Pod goes at once."""
    path = PODS.path(pod, setting.space)
    await setting.client.transport.request("DELETE", path, body=b'{"gracePeriodSeconds":0}')


@asynccontextmanager
async def scheduler(
    setting: Setting,
    folder: Path,
    *,
    extended: bool = True,
    shows: bool = True,
    program: str = "kube-scheduler",
    shipped: Path = CONFIG,
    counts: bool = True,
    changes: Mapping[str, Any] | None = None,
) -> AsyncIterator[str]:
    """A kube-scheduler of its own name, with a shipped configuration; gives the name.

    `extended`: with extenders; `shows`: to whom it shows its certificate; `counts`: it counts what they manage, too;
    `changes`: of the extenders' entries.
    """
    name = f"{setting.mark}-{'extended' if extended else 'plain'}"
    path = folder / f"{name}.yaml"
    config = _config(setting, yaml.safe_load(shipped.read_text()), name, folder)
    if not extended:
        del config["extenders"]
    for extender in config.get("extenders", ()):
        if not shows:
            del extender["tlsConfig"]["certFile"], extender["tlsConfig"]["keyFile"]
        for resource in extender["managedResources"]:
            resource["ignoredByScheduler"] = not counts
        extender |= changes or {}
    path.write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    flags = [f"--config={path}", f"--bind-address={HOST}", f"--secure-port={port}"]
    child = Child([binary(program), *flags], folder / f"{name}.log")
    try:
        yield name
        child.check()
    finally:
        child.stop()


def _config(setting: Setting, config: Object, name: str, folder: Path) -> Object:
    """A shipped file with what a site must fill in; what the scheduler shows lies in the folder."""
    config["clientConnection"]["kubeconfig"] = str(setting.plane.kubeconfig)
    config["leaderElection"]["leaderElect"] = False
    config["profiles"] = [{"schedulerName": name}]
    fill_in(config, setting, folder)
    return config


def fill_in(config: Object, setting: Setting, folder: Path) -> None:
    """Where the extender is, and what is shown to it."""
    for file, text in certificates.for_caller(authority(), KUBE_SCHEDULER, HOUR, NOW).items():
        (folder / file).write_bytes(text)
    for extender in config["extenders"]:
        extender["urlPrefix"] = f"https://{HOST}:{setting.port}{urlsplit(extender['urlPrefix']).path}"
        for key in ("caFile", "certFile", "keyFile"):
            extender["tlsConfig"][key] = str(folder / Path(extender["tlsConfig"][key]).name)


async def start(
    setting: Setting,
    scheduler: str,
    name: str,
    at: tuple[str, ...] | list[str],
    gpus: int = 1,
    *,
    more: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> None:
    """A Pod for these nodes that tolerates everything that Remediator puts on a node.

    `more`: what it asks for besides GPUs; `notes`: its annotations; `spec`: more of it.
    """
    hosts = {"key": "kubernetes.io/hostname", "operator": "In", "values": [setting.node(short) for short in at]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [hosts]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required} | spec.pop("node_affinity", {})
    limits = ({GPU: str(gpus)} if gpus else {}) | dict(more or {})
    wants = {"requests": {"cpu": "10"}, "limits": limits} if limits else {}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": dict(notes or {}), "labels": dict(labels or {})},
        "spec": {
            "schedulerName": scheduler,
            "tolerations": OURS,
            "affinity": {"nodeAffinity": affinity},
            "containers": [{"name": "main", "image": "job:1", "resources": wants}],
            **spec,
        },
    }
    await setting.client.create(PODS, body, namespace=setting.space)


async def pod_of(setting: Setting, name: str) -> Object:
    """A Pod as it is now."""
    found: Object = await setting.client.get(PODS, name, namespace=setting.space)
    return found


async def lands(setting: Setting, name: str) -> str:
    """The node that the Pod was bound to, without the mark."""

    async def bound() -> str:
        node: str = (await pod_of(setting, name))["spec"].get("nodeName", "")
        return node

    return (await until(bound, SECONDS)).removeprefix(f"{setting.mark}-")


async def told(setting: Setting, name: str, *texts: str) -> None:
    """Wait until the Pod says that it waits, in these words."""

    async def says() -> bool:
        pod = await pod_of(setting, name)
        assert not pod["spec"].get("nodeName")
        said = [condition.get("message", "") for condition in pod.get("status", {}).get("conditions", [])]
        return any(all(text in message for text in texts) for message in said)

    await until(says, SECONDS)


async def leaving(setting: Setting, name: str) -> bool:
    """Whether a Pod has been evicted."""
    try:
        return bool((await pod_of(setting, name))["metadata"].get("deletionTimestamp"))
    except errors.NotFound:
        return True


async def rank(setting: Setting, name: str, value: int) -> str:
    """A priority of this test's own."""
    kind = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", dict)
    full = f"{setting.mark}-{name}"
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": full}, "value": value}
    await setting.client.create(kind, body)
    return full


def counted(what: str, **labels: str) -> float:
    """What a counter of the extender says."""
    return REGISTRY.get_sample_value(f"remediator_extender_{what}_total", labels) or 0.0
